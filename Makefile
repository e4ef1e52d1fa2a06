# Two commands do everything on a fresh machine with Python 3.11 or newer: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-real torture test-libraries test-browser test-objects test-trackers test-cluster pages screenshots survey lock clean

demo: .venv/demo
	$(BIN)/lengthlab demo

test: .venv/test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy & types=$$!; $(BIN)/pytest -n 2 --dist loadfile && wait $$types  # mypy has one core at most

# The switch in real models, in several processes, in trainers, compiled; the bench.
test-real: .venv/test
	$(BIN)/pytest -n 2 --dist loadfile tests/real

# A thousand wrong inputs, broken folders and killed runs, each of which must end in one line.
torture: .venv/test
	$(BIN)/pytest -n 2 --dist loadfile tests/torture

# Recipes and models of libraries that the package does not need: beside .venv, so that they change nothing in it.
test-libraries: .libraries/site-packages
	PYTHONPATH=.libraries/site-packages:tests $(BIN)/pytest -n 2 -W ignore tests/libraries  # warnings of theirs are theirs

.libraries/site-packages: tests/libraries/requirements.txt constraints.txt | .venv/test
	rm -rf $@
	$(BIN)/pip install --quiet --no-deps -c constraints.txt --target $@ -r $<
	touch $@

# The page in a real browser: Debian's chromium, or what CHROMIUM names.
test-browser: .browser/site-packages
	PYTHONPATH=.browser/site-packages:tests $(BIN)/pytest tests/browser

.browser/site-packages: tests/browser/requirements.txt constraints.txt | .venv/test
	rm -rf $@
	$(BIN)/pip install --quiet --no-deps -c constraints.txt --target $@ -r $<
	touch $@

# Claims and workers in an object store, against a real server of S3.
test-objects: .objects/site-packages
	PYTHONPATH=.objects/site-packages:tests $(BIN)/pytest -W ignore tests/objects

.objects/site-packages: tests/objects/requirements.txt constraints.txt | .venv/test
	rm -rf $@
	$(BIN)/pip install --quiet --target $@ -r $<
	touch $@

# Trackers of others, for real: what they wrote is read back.
test-trackers: .trackers/site-packages
	PYTHONPATH=.trackers/site-packages:tests $(BIN)/pytest -n 2 --dist load -W ignore tests/trackers

.trackers/site-packages: tests/trackers/requirements.txt constraints.txt | .venv/test
	rm -rf $@
	$(BIN)/pip install --quiet --no-deps -c constraints.txt --target $@ -r $<
	touch $@

# Runs on a cluster: Ray with several nodes on this machine, one of them killed, and the jobs of Slurm as processes.
test-cluster: .cluster/site-packages
	PYTHONPATH=.cluster/site-packages:tests $(BIN)/pytest -n 2 --dist loadfile -W ignore tests/cluster

.cluster/site-packages: tests/cluster/requirements.txt constraints.txt | .venv/test
	rm -rf $@
	$(BIN)/pip install --quiet --no-deps -c constraints.txt --target $@ -r $<
	touch $@

# The committed pages and figures, anew from published rows.
pages: .venv/demo
	$(BIN)/lengthlab reproduce dat --from published --size short --page docs/results.md
	$(BIN)/lengthlab reproduce far --from published --size gpu --page docs/far/far.md
	$(BIN)/lengthlab reproduce far --from published --size cpu --page docs/far/far-cpu.md
	$(BIN)/lengthlab reproduce remedies --from published --size gpu --page docs/far/remedies.md
	$(BIN)/lengthlab reproduce plateau --from published --size cpu --page docs/far/plateau-cpu.md
	$(BIN)/lengthlab reproduce born --from published --size gpu --page docs/theory/born.md
	$(BIN)/lengthlab reproduce born --from published --size cpu --page docs/theory/born-cpu.md
	$(BIN)/lengthlab reproduce crasp --from published --size gpu --page docs/theory/crasp.md
	$(BIN)/lengthlab reproduce crasp --from published --size cpu --page docs/theory/crasp-cpu.md
	$(BIN)/lengthlab reproduce coupling --from published --size gpu --page docs/coupling/coupling.md
	$(BIN)/lengthlab reproduce coupling --from published --size cpu --page docs/coupling/coupling-cpu.md
	$(BIN)/lengthlab reproduce recurrences --from published --size gpu --page docs/recurrences/recurrences.md
	$(BIN)/lengthlab reproduce recurrences --from published --size cpu --page docs/recurrences/recurrences-cpu.md
	$(BIN)/lengthlab reproduce hard-states --from published --size gpu --page docs/recurrences/hard-states.md
	$(BIN)/lengthlab reproduce hard-states --from published --size cpu --page docs/recurrences/hard-states-cpu.md
	$(BIN)/lengthlab reproduce passkey --from published --size gpu --page docs/long-memory/passkey.md
	$(BIN)/lengthlab reproduce passkey --from published --size cpu --page docs/long-memory/passkey-cpu.md
	$(BIN)/lengthlab reproduce needles --from published --size gpu --page docs/long-memory/needles.md
	$(BIN)/lengthlab reproduce needles --from published --size cpu --page docs/long-memory/needles-cpu.md
	$(BIN)/lengthlab reproduce variable-tracking --from published --size gpu --page docs/long-memory/variable-tracking.md
	$(BIN)/lengthlab reproduce variable-tracking --from published --size cpu --page docs/long-memory/variable-tracking-cpu.md
	$(BIN)/lengthlab reproduce long-memory --from published --size cpu --page docs/long-memory/long-memory-cpu.md
	$(BIN)/lengthlab reproduce hints --from published --size cpu --page docs/other-tasks/hints-cpu.md
	$(BIN)/lengthlab reproduce association --from published --size cpu --page docs/other-tasks/association-cpu.md
	$(BIN)/lengthlab reproduce auxiliary --from published --size cpu --page docs/other-tasks/auxiliary-cpu.md
	$(BIN)/lengthlab reproduce rules --from published --size cpu --page docs/rules/rules-cpu.md
	$(BIN)/lengthlab reproduce --check

# The pictures of the page in the README: trains the demo and looks into it first, where that is not done.
screenshots: .browser/site-packages .venv/demo
	PYTHONPATH=.browser/site-packages:tests $(BIN)/python tests/browser/screenshots.py runs docs/page

# Delayed attention tried on every type of model that transformers has: about eight minutes on two cores.
survey: .venv/test
	$(BIN)/lengthlab delay --survey --page docs/survey.md

# What `make test` installs, and what builds the package, with hashes, for the platform it is called on. Needs uv; CPU_TORCH is the
# folder or page that has the CPU build of torch.
lock:
	printf 'hatchling\neditables\n' | uv pip compile --quiet pyproject.toml - -c constraints.txt --generate-hashes --no-annotate \
		--extra report --extra serve --extra huggingface --extra lightning --extra dev --python-version 3.11 \
		$(if $(CPU_TORCH),--find-links $(CPU_TORCH)) --custom-compile-command 'make lock' --output-file requirements.lock

.venv/demo: pyproject.toml constraints.txt | .venv
	$(BIN)/pip install --quiet -c constraints.txt -e '.[report,serve]'
	touch $@

.venv/test: pyproject.toml constraints.txt | .venv
	$(BIN)/pip install --quiet -c constraints.txt -e '.[report,serve,huggingface,lightning,dev]'
	touch $@ .venv/demo

.venv:
	$(PYTHON) -m venv .venv

clean:
	rm -rf .venv .libraries .browser .objects .trackers .cluster
