"""What can be chosen by name: one registry by type, and a table is read by the type it goes to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lengthlab as ll
from lengthlab import registry
from lengthlab.errors import LabError
from lengthlab.models import Attention, Lstm, Model, Part, Positions, Scores, chain, named, parallel, residual
from lengthlab.registry import look_up, registered
from lengthlab.spec.plan import read_plan
from lengthlab.spec.run import Run

TOML = """[[run]]
task = "modulo"
model = {model}
schedule = "end-to-end"
"""
MINE = """
from dataclasses import dataclass
from typing import Protocol
from torch import nn
import lengthlab as ll
from lengthlab.models import AnyModel, Lstm, Model, Part, Positions, chain

class Curve(Protocol):
    def at(self, x: float) -> float: ...

@dataclass(frozen=True)
class Line:
    slope: float = 1.0
    def at(self, x: float) -> float:
        return x * self.slope

@ll.register(Part, "gate of mine")
@dataclass(frozen=True)
class Gate:
    positions: int = 3
    scores: tuple[float, ...] = ()
    curve: Curve = Line()
    line: Line = Line()
    inner: Part | None = None

    def build(self, width: int) -> nn.Module:
        return nn.Linear(width, width)

def wrapped(model: AnyModel, positions: str = "left", body: Part = Lstm()) -> Model:
    return Model(f"{model.name} {positions}", 8, body)
"""


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test registers is gone after it."""
    monkeypatch.setattr(registry, "_MAKERS", {kind: dict(makers) for kind, makers in registry._MAKERS.items()})
    return


def model_of(folder: Path, model: str, text: str = MINE) -> Model:
    (folder / "mine.py").write_text(text)
    (folder / "run.toml").write_text(TOML.format(model=model))
    (run,) = read_plan(folder / "run.toml")
    assert Run.from_json(run.to_json()) == run
    assert isinstance(run.model, Model)
    return run.model


def complaint(folder: Path, model: str) -> str:
    with pytest.raises(LabError) as caught:
        model_of(folder, model)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_any_registered_part_can_be_composed_in_a_file(tmp_path: Path) -> None:
    attend = '{ kind = "named", name = "attention", part = { name = "residual", part = { name = "attention", heads = 2 } } }'
    sides = '{ name = "parallel", parts = ["lstm", { name = "lstm", layers = 2 }] }'
    made = model_of(
        tmp_path,
        f'{{ kind = "model", name = "mine", width = 16, body = {{ name = "chain", parts = [{sides}, {attend}] }} }}',
    )
    wanted = chain(parallel(Lstm(), Lstm(2)), named("attention", residual(Attention(heads=2))))
    assert made == Model("mine", 16, wanted)


def test_a_model_without_a_name_of_its_own_is_called_by_what_it_is(tmp_path: Path) -> None:
    made = model_of(tmp_path, '{ name = "model", width = 64, body = { name = "chain", parts = [{ name = "lstm" }] } }')
    assert made == Model("model", 64, chain(Lstm()))


def test_ones_own_part_is_named_at_any_depth(tmp_path: Path) -> None:
    gate = '{ name = "mine.py:Gate", positions = 7, scores = [1, 2.5], inner = "mine.py:Gate" }'
    made = model_of(tmp_path, f'{{ name = "model", width = 8, body = {{ name = "chain", parts = ["lstm", {gate}] }} }}')
    gate = made.body.parts[1]  # type: ignore[attr-defined]
    assert (gate.positions, gate.scores, gate.inner.positions) == (7, (1.0, 2.5), 3)


def test_a_table_is_read_by_the_type_it_goes_to_and_not_by_the_name_of_the_parameter(tmp_path: Path) -> None:
    made = model_of(tmp_path, '{ name = "mine.py:wrapped", model = { name = "lstm", width = 4 }, positions = "none" }')
    assert made.name == "lstm none"  # not attention's positions of that name
    told = complaint(tmp_path, '{ name = "model", width = 8, body = { name = "mine.py:Gate", positions = "rope" } }')
    assert "model.body.positions must be a whole number, not 'rope'" in told


def test_types_of_ones_own_take_tables_and_references(tmp_path: Path) -> None:
    gate = '{ name = "mine.py:Gate", line = { slope = 2 }, curve = { name = "mine.py:Line", slope = 3 } }'
    body = model_of(tmp_path, f'{{ name = "model", width = 8, body = {gate} }}').body
    assert (body.line.slope, body.curve.slope) == (2.0, 3.0)  # type: ignore[attr-defined]


def test_what_a_user_registers_is_chosen_by_name_like_ours(tmp_path: Path) -> None:
    model_of(tmp_path, '{ name = "mine.py:wrapped", model = "lstm" }', MINE + "# loaded by this test alone")
    made = model_of(tmp_path, '{ name = "model", width = 8, body = { name = "gate of mine", positions = 5 } }')
    assert made.body.positions == 5  # type: ignore[attr-defined]


def test_a_name_of_ours_cannot_be_taken() -> None:
    with pytest.raises(LabError, match="'lstm' is a part of the package: register yours under another name"):
        ll.register(Part, "lstm", Attention)
    ll.register(Part, "lstm", Lstm)


def test_an_unknown_name_of_any_kind_is_refused_with_the_nearest(tmp_path: Path) -> None:
    told = complaint(tmp_path, '{ name = "model", width = 8, body = { name = "chian", parts = [] } }')
    assert "unknown part 'chian'; did you mean 'chain'?" in told
    with pytest.raises(LabError, match="unknown positions 'rop'; did you mean 'rope'"):
        Attention(positions="rop")
    with pytest.raises(LabError, match="unknown scores"):
        look_up(Scores, "x")


def test_kinds_do_not_mix(tmp_path: Path) -> None:
    assert set(registered(Positions)) & set(registered(Part)) == set()
    told = complaint(tmp_path, '{ name = "model", width = 8, body = { name = "mine.py:Line" } }')
    assert "mine.py:Line made a Line, which is not a part: it lacks 'build'" in told
