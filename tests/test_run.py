"""A run is its content: same content, same id, on any machine and after any trip through JSON."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from dataclasses import dataclass, field, fields, is_dataclass, replace
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import Any, Literal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import lengthlab.models
from lengthlab.errors import LabError
from lengthlab.models import (
    MODELS,
    AnyModel,
    Attention,
    LogN,
    Lstm,
    Mlp,
    Model,
    Rope,
    chain,
    lstm,
    named,
    parallel,
    transformer,
)
from lengthlab.registry import built_in
from lengthlab.spec.hints import check_fields
from lengthlab.spec.optimizer import Adam
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import Mastered, Phase, Schedule, delayed, end_to_end, epochs
from lengthlab.spec.toml import make
from lengthlab.tasks import ModuloRecall, Task, modulo

quick = settings(max_examples=40)

RUN = Run(
    task=ModuloRecall(modulus=5, values=6, keys=32),
    model=MODELS["sandwich"](width=16, blocks=2, heads=2),
    schedule=delayed(20, joint=30, last=10),
    lengths=(2, 8),
    batch=4,
    seed=3,
    evaluate=(8, 16),
)


def through_json(run: Run) -> Run:
    return Run.from_json(json.loads(json.dumps(run.to_json())))


rates = st.floats(1e-6, 1.0)
few = st.integers(1, 2)
fixed = st.integers(1, 10**6) | st.floats(0.01, 2000.0).map(epochs)


@st.composite
def runs(pick: st.DrawFn) -> Run:
    """Any run of built-in things, each of its fields taking few enough values that two runs may well be equal in it."""
    questions = pick(st.sampled_from([("modulo", "recall"), ("modulo",), ("recall",)]))
    numbers = st.integers(2, 4)
    task = ModuloRecall(pick(numbers), pick(numbers), pick(st.integers(16, 18)), questions)
    name = pick(st.sampled_from(sorted(MODELS)))
    width = pick(st.sampled_from([4, 8]))
    choices: dict[str, Any] = {"blocks": pick(st.integers(1, 2)), "heads": pick(st.sampled_from([1, 2]))}
    choices |= {"mlp": pick(st.integers(1, 2)), "silent": pick(st.booleans())}
    positions, scores = pick(st.sampled_from(["rope", "none"])), pick(st.sampled_from(["none", "log-n"]))
    model = lstm(width) if name == "lstm" else MODELS[name](width, **choices, positions=positions, scores=scores)
    lr = pick(rates | st.builds(lambda part, rest: {"embedding": part, "rest": rest}, rates, rates))
    goals = st.builds(Mastered, st.just(questions[0]), st.floats(0.01, 1.0), few, few, few.map(lambda n: 50 * n))
    durations = fixed | goals
    joint, last = pick(durations), pick(st.just(0) | durations)
    schedule = end_to_end(joint, last, lr)
    if name != "lstm" and pick(st.booleans()):
        asks = pick(st.sampled_from([(), questions, questions[:1]]))
        schedule = delayed(
            pick(durations), joint, last, lr, asks=asks, covers=pick(st.sampled_from(["part", "sublayers", "function"]))
        )
    shortest = pick(st.integers(1, 3))
    evaluate = tuple(pick(st.lists(st.integers(1, 16), max_size=2)))
    lengths = (shortest, shortest + pick(st.integers(0, 2)))
    optimizer = Adam(pick(st.sampled_from([0.9, 0.0])), pick(st.sampled_from([0.999, 0.95])))
    return Run(task, model, schedule, lengths, pick(numbers), pick(numbers), evaluate, optimizer)


@given(runs())
@quick
def test_a_trip_through_json_gives_the_same_run_and_the_same_id(run: Run) -> None:
    again = through_json(run)
    assert again == run
    assert again.id == run.id
    assert again.to_json() == run.to_json()


@given(runs(), runs())
@quick
def test_runs_have_one_id_only_if_their_content_is_one(one: Run, other: Run) -> None:
    assert (one.id == other.id) == (replace(one, evaluate=()) == replace(other, evaluate=()))


CHANGES: dict[str, Any] = {
    "modulus": {"task": replace(RUN.task, modulus=6)},
    "values": {"task": replace(RUN.task, values=7)},
    "keys": {"task": replace(RUN.task, keys=33)},
    "questions": {"task": modulo(5, 6, 32)},
    "architecture": {"model": MODELS["hybrid-block"](width=16, blocks=2, heads=2)},
    "name of the model": {"model": replace(RUN.model, name="toast")},
    "width": {"model": MODELS["sandwich"](width=32, blocks=2, heads=2)},
    "blocks": {"model": MODELS["sandwich"](width=16, blocks=3, heads=2)},
    "heads": {"model": MODELS["sandwich"](width=16, blocks=2, heads=4)},
    "mlp": {"model": MODELS["sandwich"](width=16, blocks=2, heads=2, mlp=2)},
    "silent": {"model": MODELS["sandwich"](width=16, blocks=2, heads=2, silent=True)},
    "positions": {"model": MODELS["sandwich"](width=16, blocks=2, heads=2, positions="none")},
    "base of rope": {"model": MODELS["sandwich"](width=16, blocks=2, heads=2, positions=Rope(500.0))},
    "scores": {"model": MODELS["sandwich"](width=16, blocks=2, heads=2, scores="log-n")},
    "factor of log-n": {"model": MODELS["sandwich"](width=16, blocks=2, heads=2, scores=LogN(0.5))},
    "first": {"schedule": delayed(21, joint=30, last=10)},
    "joint": {"schedule": delayed(20, joint=31, last=10)},
    "last": {"schedule": delayed(20, joint=30, last=11)},
    "lr": {"schedule": delayed(20, joint=30, last=10, lr=2e-4)},
    "first lr": {"schedule": delayed(20, joint=30, last=10, first_lr=2e-4)},
    "lr by part": {"schedule": delayed(20, joint=30, last=10, lr={"attention": 1e-3, "rest": 1e-4})},
    "asks": {"schedule": delayed(20, joint=30, last=10, asks=("recall",))},
    "covers": {"schedule": delayed(20, joint=30, last=10, covers="function")},
    "epochs": {"schedule": delayed(epochs(20), joint=30, last=10)},
    "question to be mastered": {"schedule": delayed(Mastered("modulo"), joint=30, last=10)},
    "accuracy of mastery": {"schedule": delayed(Mastered(accuracy=0.9), joint=30, last=10)},
    "length of looks": {"schedule": delayed(Mastered(times=2), joint=30, last=10)},
    "number of looks": {"schedule": delayed(Mastered(looks=2), joint=30, last=10)},
    "time between looks": {"schedule": delayed(Mastered(every=50), joint=30, last=10)},
    "limit": {"schedule": delayed(Mastered(limit=500), joint=30, last=10)},
    "shortest": {"lengths": (1, 8)},
    "longest": {"lengths": (2, 9)},
    "batch": {"batch": 5},
    "seed": {"seed": 4},
    "beta1": {"optimizer": Adam(beta1=0.8)},
    "beta2": {"optimizer": Adam(beta2=0.95)},
}


def test_every_part_of_the_package_is_built_in() -> None:
    parts = {
        kind
        for file in walk_packages(lengthlab.models.__path__, "lengthlab.models.")
        for kind in vars(import_module(file.name)).values()
        if isinstance(kind, type) and is_dataclass(kind) and hasattr(kind, "build")
    }
    assert len(parts) > 15
    assert parts <= set(built_in().values())


def test_every_field_that_can_be_changed_is_changed_below() -> None:
    changed = {name for change in CHANGES.values() for name in change}
    assert changed | {"evaluate", "label"} == {field.name for field in fields(Run)}


def test_any_change_but_that_of_evaluate_is_another_run() -> None:
    ids = [RUN.id, *(replace(RUN, **change).id for change in CHANGES.values())]
    assert len(set(ids)) == 1 + len(CHANGES)


def test_measuring_elsewhere_is_the_same_run() -> None:
    assert replace(RUN, evaluate=()).id == replace(RUN, evaluate=(4, 32)).id == RUN.id


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (end_to_end(epochs(3)), end_to_end(epochs(3.0))),
        (end_to_end(5, lr=1), end_to_end(5, lr=1.0)),
        (end_to_end(Mastered(accuracy=1)), end_to_end(Mastered(accuracy=1.0))),
        (end_to_end(5, lr={"rest": 0.1, "lstm": 0.2}), end_to_end(5, lr={"lstm": 0.2, "rest": 0.1})),
        (Schedule("mine", (Phase(5, off=()),)), Schedule("mine", (Phase(5, off=[]),))),  # type: ignore[arg-type]
    ],
)
def test_one_schedule_written_in_two_ways_is_one_run(one: Schedule, other: Schedule) -> None:
    assert replace(RUN, schedule=one).id == replace(RUN, schedule=other).id


def test_the_usual_optimizer_is_not_part_of_the_content_and_older_runs_have_it() -> None:
    assert "optimizer" not in RUN.to_json()
    assert replace(RUN, optimizer=Adam(beta2=0.999)).id == RUN.id
    assert Run.from_json(RUN.to_json()).optimizer == Adam()


def test_an_optimizer_of_another_kind_is_refused() -> None:
    with pytest.raises(LabError, match="optimizer must be an optimizer, not Lstm"):
        Run.from_json(RUN.to_json() | {"optimizer": {"kind": "lstm"}})


@pytest.mark.parametrize(("name", "value"), [("beta1", 1.0), ("beta2", -0.1), ("beta2", float("nan"))])
def test_an_average_that_would_never_move_is_refused(name: str, value: float) -> None:
    with pytest.raises(LabError, match=f"optimizer.{name} must be at least 0 and less than 1"):
        Adam(**{name: value})


def test_an_id_is_short_and_safe_as_a_folder_name() -> None:
    assert len(RUN.id) == 20
    assert set(RUN.id) <= set("0123456789abcdef")


def weights(run: Run) -> list[Tensor]:
    return list(run.network().state_dict().values())


def test_the_seed_determines_the_weights() -> None:
    one, same, other = weights(RUN), weights(replace(RUN, batch=9)), weights(replace(RUN, seed=4))
    assert all(torch.equal(a, b) for a, b in zip(one, same, strict=True))
    assert not torch.equal(one[0], other[0])


@dataclass(frozen=True)
class Measured:
    """A model that computes while it is built, which cannot be done without real numbers."""

    name: str = "measured"

    def build(self, vocabulary: int) -> nn.Module:
        network = nn.Sequential(nn.Embedding(vocabulary, 4), nn.Linear(4, vocabulary))
        nn.init.constant_(network[1].bias, network[0].weight.std().item())
        return network


@pytest.mark.parametrize("model", [RUN.model, Measured()])
def test_neither_a_run_nor_its_network_touches_the_global_random_state(model: Any) -> None:
    before = torch.get_rng_state()
    # A vocabulary that no other test has, so that nothing is kept from before.
    Run(ModuloRecall(keys=61), model, end_to_end(5)).network()
    assert torch.equal(torch.get_rng_state(), before)


def test_steps_are_the_sum_of_the_phases() -> None:
    assert RUN.steps == 20 + 30 + 10
    assert replace(RUN, schedule=delayed(epochs(1), joint=epochs(0.5)), batch=64).steps == 256 + 128
    assert replace(RUN, schedule=delayed(Mastered(limit=500), joint=30)).ends == (500, 530)


def test_every_step_belongs_to_one_phase() -> None:
    assert [RUN.phase_at(step) for step in (0, 19, 20, 49, 50, 59, 60, 1000)] == [0, 0, 1, 1, 2, 2, 3, 3]
    at_batch = replace(RUN, schedule=delayed(epochs(1), joint=5), batch=64)
    assert [at_batch.phase_at(step) for step in (255, 256, 261)] == [0, 1, 2]


def test_a_run_is_measured_at_multiples_of_its_longest_length_as_far_as_the_task_reaches() -> None:
    assert RUN.measured_at == (8, 16)
    assert replace(RUN, evaluate=()).measured_at == (8, 16, 24, 32)
    assert replace(RUN, evaluate=(), lengths=(1, 12)).measured_at == (12, 24)


def test_the_title_says_label_or_model_and_schedule_and_seed() -> None:
    assert RUN.title == "sandwich delayed seed 3"
    assert replace(RUN, label="ours").title == "ours seed 3"


def test_lists_are_as_good_as_tuples() -> None:
    run = replace(RUN, lengths=[2, 8], evaluate=[8, 16])  # type: ignore[arg-type]
    assert run == RUN
    assert run.id == RUN.id


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"batch": 0}, "batch must be at least 1, not 0"),
        ({"seed": -1}, "seed must be at least 0, not -1"),
        ({"lengths": (5, 4)}, "lengths must be [shortest, longest]"),
        ({"lengths": (0, 4)}, "lengths must be [shortest, longest]"),
        ({"lengths": (1, 2, 3)}, "lengths must be [shortest, longest]"),
        ({"lengths": (1, 33)}, "length 33: task 'modulo-recall' reaches 32 at most"),
        ({"evaluate": (8, 1000)}, "length 1000: task 'modulo-recall' reaches 32 at most"),
        ({"evaluate": (0,)}, "length 0"),
        (
            {"schedule": delayed(5, asks=("parity",))},
            "the schedule asks 'parity', but task 'modulo-recall' asks only: modulo, recall",
        ),
        (
            {"task": modulo(keys=32), "schedule": delayed(5, asks=("recall",))},
            "the schedule asks 'recall', but task 'modulo' asks only",
        ),
        (
            {"schedule": delayed(Mastered("parity"), joint=5)},
            "the schedule waits until 'parity' is mastered, but task 'modulo-recall' is asked only: modulo",
        ),
        (
            {"schedule": delayed(Mastered("recall"), joint=5)},
            "the schedule waits until 'recall' is mastered, but task 'modulo-recall' is asked only: modulo",
        ),
        (
            {"schedule": delayed(Mastered(times=5), joint=5)},
            "the schedule looks at 5 times the longest length: length 40: task 'modulo-recall' reaches 32 at most",
        ),
        ({"model": lstm(16)}, "the schedule does not fit model 'lstm': no part of the model is named 'attention'"),
        (
            {"schedule": Schedule("mine", (Phase(5, off=("atend",)),))},
            "does not fit model 'sandwich': no part of the model is named 'atend'",
        ),
        (
            {"schedule": end_to_end(5, lr={"lsmt": 1e-3, "rest": 1e-4})},
            "no part of the model is named 'lsmt'; did you mean 'lstm'?",
        ),
        ({"model": transformer(width=16, heads=3)}, "model.heads = 3 does not divide model.width = 16"),
    ],
)
def test_a_run_that_could_not_be_trained_is_refused(change: dict[str, Any], told: str) -> None:
    with pytest.raises(LabError) as caught:
        replace(RUN, **change)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


JUNK = (
    None,
    "x",
    [1, "x"],
    {"kind": "lstm"},
    {"kind": "no"},
    {"kind": 5},
    {"kind": "lstm", "layers": "x"},
    {"kind": "lstm", "x": 1},
)


@pytest.mark.parametrize("key", sorted(set(RUN.to_json()) - {"files"}))
def test_content_that_is_not_of_a_run_is_refused(key: str) -> None:
    for junk in JUNK:
        with pytest.raises(LabError):
            Run.from_json(RUN.to_json() | {key: junk})


@pytest.mark.parametrize("key", sorted(set(RUN.to_json()) - {"evaluate"}))
def test_content_without_one_of_its_keys_is_refused(key: str) -> None:
    data = RUN.to_json()
    del data[key]
    with pytest.raises(LabError, match=key):
        Run.from_json(data)


def test_a_run_of_another_version_of_the_results_is_refused() -> None:
    with pytest.raises(LabError, match="made by another version of lengthlab"):
        Run.from_json(RUN.to_json() | {"results": -1})


MY_MODELS = """
from dataclasses import dataclass
from lengthlab.models import Lstm, Model, chain, residual
from torch import nn

@dataclass(frozen=True)
class Gate:
    slope: float = 1.0

    def build(self, width: int) -> nn.Module:
        return nn.Sequential(nn.Linear(width, width), nn.LeakyReLU(self.slope))

def three_lstms(width: int = 8, slope: float = 0.5) -> Model:
    return Model("three-lstms", width, chain(Lstm(), Gate(slope), Lstm(), residual(Gate(slope)), Lstm()))
"""

MY_TASKS = """
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
import torch
from lengthlab.tasks import Batch, Task

@dataclass(frozen=True)
class Parity(Task):
    ones: int = 1

    name = "parity"
    questions = ("parity",)
    words = ("<pad>", "0", "1", "?")
    longest = None

    def chance(self, length: int) -> Mapping[str, float]:
        return {"parity": 0.5}

    def draw(self, n_B: torch.Tensor, generator: torch.Generator) -> Batch:
        n = int(n_B.max())
        bit_BN = torch.randint(2, (len(n_B), n), generator=generator, device=generator.device)
        token_B = bit_BN.sum(dim=1) % 2 + 1
        ask_B = torch.full_like(token_B, 3)
        tokens_BT = torch.cat((bit_BN + 1, ask_B[:, None], token_B[:, None]), dim=1)
        return Batch.asking(tokens_BT, {"parity": tokens_BT == 3}, torch.full_like(token_B, n + 2))

    def solve(self, words: Sequence[str]) -> Mapping[str, Sequence[str]]:
        return {"parity": (str(words[: words.index("?")].count("1") % 2),)}
"""


def own_run(folder: Path, models: str = MY_MODELS, tasks: str = MY_TASKS) -> Run:
    """A run of a task and a model of one's own, read as a plan reads them."""
    (folder / "my_models.py").write_text(models)
    (folder / "my_tasks.py").write_text(tasks)
    return Run(
        task=make(Task, {"name": "my_tasks.py:Parity", "ones": 2}, folder),
        model=make(AnyModel, "my_models.py:three_lstms", folder),
        schedule=end_to_end(5),
        lengths=(1, 40),
        batch=2,
    )


def test_ones_own_files_travel_with_the_run_as_text(tmp_path: Path) -> None:
    data = own_run(tmp_path).to_json()
    assert data["files"] == {"my_models.py": MY_MODELS, "my_tasks.py": MY_TASKS}
    assert data["task"] == {"kind": "my_tasks.py:Parity", "ones": 2}
    assert data["model"]["body"]["parts"][1] == {"kind": "my_models.py:Gate", "slope": 0.5}


def test_a_run_of_ones_own_files_is_made_again_without_them(tmp_path: Path) -> None:
    run = own_run(tmp_path)
    text = json.dumps(run.to_json())
    for name in ("my_models.py", "my_tasks.py"):
        (tmp_path / name).unlink()
    again = Run.from_json(json.loads(text))
    assert again == run
    assert again.id == run.id
    assert all(torch.equal(a, b) for a, b in zip(weights(again), weights(run), strict=True))
    assert again.task.sample(2, (3, 3), torch.Generator()).tokens_BT.shape == (2, 5)


READ_IDS = """
import json, sys
from lengthlab.spec.run import Run
print(*(Run.from_json(data).id for data in json.load(sys.stdin)))
"""


def test_an_id_is_the_same_in_every_process(tmp_path: Path) -> None:
    by_part = replace(RUN, schedule=end_to_end(5, lr={"attention": 0.1, "lstm": 0.2, "rest": 0.3}))
    sent = [RUN, by_part, own_run(tmp_path)]
    (tmp_path / "elsewhere").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", READ_IDS],
        input=json.dumps([run.to_json() for run in sent]),
        cwd=tmp_path / "elsewhere",
        env=os.environ | {"PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [run.id for run in sent]


@pytest.mark.parametrize(
    "edit", [{"models": MY_MODELS + "# a second thought\n"}, {"tasks": MY_TASKS.replace("% 2 + 1", "% 2 + 0 + 1")}]
)
def test_an_edited_file_is_another_run(tmp_path: Path, edit: dict[str, str]) -> None:
    before = own_run(tmp_path)
    after = own_run(tmp_path, **edit)
    assert after.id != before.id
    assert own_run(tmp_path).id == before.id


def test_a_function_that_composes_built_in_parts_needs_no_file(tmp_path: Path) -> None:
    composed = (
        "from lengthlab.models import Lstm, Model, chain\ndef two():\n    return Model('two', 8, chain(Lstm(), Lstm()))\n"
    )
    (tmp_path / "mine.py").write_text(composed)
    run = replace(RUN, model=make(AnyModel, "mine.py:two", tmp_path), schedule=end_to_end(5))
    assert run.to_json()["files"] == {}
    assert run.id == replace(run, model=Model("two", 8, chain(Lstm(), Lstm()))).id


def test_two_files_of_one_name_cannot_be_in_one_run(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    mine = own_run(one).model
    theirs = own_run(other, MY_MODELS + "# theirs\n").model
    both = Model("all", 8, parallel(mine.body, named("theirs", theirs.body)))
    with pytest.raises(LabError, match=r"two different files of one run are named my_models\.py"):
        replace(own_run(one), model=both).to_json()


@dataclass(frozen=True)
class Kindly:
    """A part with a field that has the name under which JSON keeps the class."""

    kind: str = "soft"

    def build(self, width: int) -> nn.Module:
        return Mlp().build(width)


def test_a_field_named_kind_is_refused_since_it_would_hide_the_class() -> None:
    run = replace(RUN, model=Model("kindly", 8, chain(Kindly("hard"))), schedule=end_to_end(5))
    with pytest.raises(LabError, match="Kindly is named 'kind'"):
        run.to_json()


def test_a_part_defined_inside_a_function_is_refused_since_it_could_not_be_found_again() -> None:
    @dataclass(frozen=True)
    class Hidden:
        def build(self, width: int) -> nn.Module:
            return Mlp().build(width)

    with pytest.raises(LabError, match="Hidden"):
        replace(RUN, model=Model("hidden", 8, chain(Hidden())), schedule=end_to_end(5)).to_json()


def without_a_file(registered: bool) -> Any:
    """A part whose class was typed in somewhere and never written to a file."""
    module = ModuleType("typed_in")
    if registered:
        sys.modules["typed_in"] = module
    text = "from torch import nn\nclass Typed:\n    def build(self, width):\n        return nn.Identity()\n"
    exec(text, vars(module))
    return dataclass(frozen=True)(module.Typed)()


@pytest.mark.parametrize("registered", [True, False])
def test_a_class_without_a_source_file_is_refused(registered: bool) -> None:
    try:
        model = Model("typed", 8, chain(Lstm(), without_a_file(registered)))
        with pytest.raises(LabError, match="Typed has no source file, so a run with it could not be repeated"):
            replace(RUN, model=model, schedule=end_to_end(5)).to_json()
    finally:
        sys.modules.pop("typed_in", None)


def test_a_value_that_is_no_data_is_refused() -> None:
    run = Run(RUN.task, Tabled(sizes={"width": 4, "more": object()}), end_to_end(5))
    with pytest.raises(LabError, match="cannot be part of a run: use frozen dataclasses"):
        run.to_json()


@dataclass(frozen=True)
class Tabled:
    """A model with a table among its fields, which the text of the error above allows."""

    name: str = "tabled"
    sizes: Any = None

    def build(self, vocabulary: int) -> nn.Module:
        return nn.Sequential(nn.Embedding(vocabulary, self.sizes["width"]), nn.Linear(self.sizes["width"], vocabulary))


def test_a_model_may_have_a_dict_among_its_fields() -> None:
    run = Run(RUN.task, Tabled(sizes={"width": 4}), end_to_end(5))
    assert Run.from_json(run.to_json()).id == run.id


@dataclass(frozen=True)
class Sized:
    """A part of a user's own."""

    share: float = 1.0
    sizes: tuple[int, ...] = ()
    word: Literal["a", "b"] = "a"
    on: bool = False
    later: int = field(default=3, metadata={"added": "0.2"})
    untyped = None

    def build(self, width: int) -> nn.Module:
        return Mlp().build(width)


def with_part(part: Any) -> Run:
    return replace(RUN, model=Model("mine", 8, chain(part)), schedule=end_to_end(5))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (with_part(Attention(heads=2, positions=Rope(500))), with_part(Attention(heads=2, positions=Rope(500.0)))),
        (with_part(Attention(heads=2, scores=LogN(1))), with_part(Attention(heads=2, scores=LogN(1.0)))),
        (with_part(Sized(0)), with_part(Sized(-0.0))),
        (with_part(Sized(2)), with_part(Sized(2.0, later=3))),
    ],
)
def test_runs_that_are_equal_have_one_id(one: Run, other: Run) -> None:
    assert one == other
    assert one.id == other.id


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"schedule": Schedule(3, (Phase(5),))}, "schedule.name must be a text, not 3"),
        ({"schedule": Schedule("x", [Phase(5)])}, "schedule.phases must be a tuple (a phase each), not [Phase("),
        ({"schedule": end_to_end(5)} | {"batch": 8.0}, "batch must be a whole number, not 8.0"),
        ({"seed": True}, "seed must be a whole number, not True"),
        ({"lengths": (1, 2.0)}, "lengths must be a tuple (a whole number each), not (1, 2.0)"),
        ({"lengths": 5}, "lengths must be [shortest, longest], not 5"),
        ({"evaluate": 5}, "evaluate must be a tuple (a whole number each), not 5"),
        ({"task": 5}, "task must be a task, not 5"),
        ({"model": "lstm"}, "model must be a model, not 'lstm'"),
        ({"optimizer": Lstm()}, "optimizer must be an optimizer, not Lstm(layers=1)"),
    ],
)
def test_a_value_of_another_type_than_its_field_is_refused(change: dict[str, Any], told: str) -> None:
    with pytest.raises(LabError) as caught:
        replace(RUN, **change)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (Sized("x"), "share must be a number, not 'x'"),  # type: ignore[arg-type]
        (Sized(True), "share must be a number, not True"),
        (Sized(sizes=(1, 2.5)), "sizes must be a tuple (a whole number each), not (1, 2.5)"),  # type: ignore[arg-type]
        (Sized(word="c"), "word must be 'a' or 'b', not 'c'"),  # type: ignore[arg-type]
        (Sized(on=1), "on must be true or false, not 1"),  # type: ignore[arg-type]
        ("lstm", "model.body.parts must be a tuple (a part each), not ('lstm',)"),
    ],
)
def test_dataclasses_of_users_are_held_to_their_types_as_well(part: Any, told: str) -> None:
    with pytest.raises(LabError) as caught:
        with_part(part)
    assert told in str(caught.value)


def test_a_field_that_came_later_is_content_only_where_it_is_not_the_default() -> None:
    assert "later" not in with_part(Sized()).to_json()["model"]["body"]["parts"][0]
    assert with_part(Sized(later=4)).to_json()["model"]["body"]["parts"][0]["later"] == 4
    assert through_json(with_part(Sized(later=4))) == with_part(Sized(later=4))


def test_a_model_of_a_billion_parameters_is_checked_without_its_memory() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run = Run(RUN.task, lstm(width=11_500), end_to_end(5, lr={"lstm": 1e-3, "rest": 1e-4}))
    assert run.id
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**19  # half a gigabyte, in KiB; the weights take four


def test_half_a_step_is_refused() -> None:
    with pytest.raises(LabError, match=r"schedule.joint must be a whole number of steps, not 5\.5"):
        end_to_end(5.5)  # type: ignore[arg-type]


def test_a_field_that_says_list_and_no_more_takes_one_and_keeps_it() -> None:
    @dataclass(frozen=True)
    class Sized:
        sizes: list  # type: ignore[type-arg]

    for sizes in ([1, 2], (1, 2)):
        sized = Sized(sizes)  # type: ignore[arg-type]
        check_fields(sized, "model")
        assert sized.sizes == [1, 2]
