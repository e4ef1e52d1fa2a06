# Two commands do everything on a fresh machine with Python 3.11 or newer: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test clean

demo: .venv/demo
	$(BIN)/lengthlab demo

test: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n 2 --dist loadfile

.venv/demo: pyproject.toml constraints.txt | .venv
	$(BIN)/pip install --quiet -c constraints.txt -e '.[report]'
	touch $@

.venv/test: pyproject.toml constraints.txt | .venv
	$(BIN)/pip install --quiet -c constraints.txt -e '.[report,huggingface,lightning,dev]'
	touch $@ .venv/demo

.venv:
	$(PYTHON) -m venv .venv

clean:
	rm -rf .venv
