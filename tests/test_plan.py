"""A TOML file becomes the runs it says, and what is wrong with it is said in one line that names the file and the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from lengthlab.errors import LabError
from lengthlab.models import LogN, NoPositions, PlainScores, Rope, attention_on_lstm, lstm, sandwich, transformer
from lengthlab.spec.optimizer import Adam
from lengthlab.spec.plan import read_plan
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import Mastered, delayed, end_to_end, epochs
from lengthlab.spec.toml import override_value
from lengthlab.tasks import ModuloRecall, modulo, recall

# The example of the design, with keys enough for length 1000 and a schedule for the second run.
EXAMPLE = """
[[run]]
task = { name = "modulo-recall", modulus = 10, values = 10, keys = 1024 }
model = { name = "attention-on-lstm", width = 256, blocks = 4, positions = "none", scores = "log-n" }
schedule = { name = "delayed", first = 2_000, asks = ["modulo"], joint = 16_000, lr = 1e-4 }
lengths = [1, 25]
batch = 256
seeds = [0, 1, 2]
evaluate = [25, 50, 75, 100, 1000]

[[run]]
task = { name = "my_tasks.py:Digits", values = 3 }
model = { name = "my_models.py:three_lstms" }
schedule = "end-to-end"
"""

MY_TASKS = """
from dataclasses import dataclass
from lengthlab.tasks import ModuloRecall

@dataclass(frozen=True)
class Digits(ModuloRecall):
    spare: int = 0
"""

MY_MODELS = """
from lengthlab.models import Lstm, Model, chain

def three_lstms(width: int = 8) -> Model:
    return Model("three-lstms", width, chain(Lstm(), Lstm(), Lstm()))

def needs_width(width: int) -> Model:
    return three_lstms(width)

def takes_anything(**options):
    return three_lstms(**options)

class Plain:
    name = "plain"

    def build(self, vocabulary):
        return three_lstms().build(vocabulary)

def number() -> int:
    return 7

ready = three_lstms()
"""

PLAIN = """
[[run]]
task = "modulo"
model = "sandwich"
schedule = { name = "delayed", first = 5, joint = 10 }
"""


def plan(folder: Path, text: str, overrides: Sequence[str] = ()) -> list[Run]:
    (folder / "my_tasks.py").write_text(MY_TASKS)
    (folder / "my_models.py").write_text(MY_MODELS)
    file = folder / "run.toml"
    file.write_text(text)
    return read_plan(file, overrides)


def one(folder: Path, text: str, *overrides: str) -> Run:
    (run,) = plan(folder, text, overrides)
    return run


def complaint(folder: Path, text: str, *overrides: str) -> str:
    """What a user is told: always one line."""
    with pytest.raises(LabError) as caught:
        plan(folder, text, overrides)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def with_line(line: str) -> str:
    """The plain run with one of its lines replaced, or one more."""
    key = line.partition(" ")[0]
    kept = [old for old in PLAIN.splitlines() if old.partition(" ")[0] != key]
    return "\n".join([*kept, line])


def with_first(written: str) -> str:
    return f'schedule = {{ name = "delayed", first = {written}, joint = 10 }}'


def test_the_example_of_the_design_is_read(tmp_path: Path) -> None:
    *first, own = plan(tmp_path, EXAMPLE)
    wanted = Run(
        ModuloRecall(modulus=10, values=10, keys=1024),
        attention_on_lstm(width=256, blocks=4, positions=NoPositions(), scores=LogN()),
        delayed(first=2_000, asks=("modulo",), joint=16_000, lr=1e-4),
        lengths=(1, 25),
        batch=256,
        evaluate=(25, 50, 75, 100, 1000),
    )
    assert [run.seed for run in first] == [0, 1, 2]
    assert first[0] == wanted
    assert first[0].id == wanted.id
    assert own.title == "three-lstms end-to-end seed 0"
    assert (type(own.task).__name__, own.task.values) == ("Digits", 3)  # type: ignore[attr-defined]
    assert list(own.to_json()["files"]) == ["my_tasks.py"]


def test_a_delay_without_a_length_is_left_to_training(tmp_path: Path) -> None:
    run = one(tmp_path, with_line('schedule = { name = "delayed", joint = 10 }'))
    assert run.schedule == delayed(joint=10).resolved(("modulo",))
    assert isinstance(run.schedule.phases[0].length, Mastered)


def test_a_name_alone_takes_every_default(tmp_path: Path) -> None:
    run = one(tmp_path, '[[run]]\ntask = "recall"\nmodel = "lstm"\nschedule = "end-to-end"')
    assert run == Run(recall(), lstm(), end_to_end())


WRITTEN_OUT = """
[[run]]
[run.task]
name = "modulo"
modulus = 3
[run.model]
name = "lstm"
width = 8
[run.schedule]
name = "end-to-end"
"""


def test_tables_can_be_written_out(tmp_path: Path) -> None:
    assert one(tmp_path, WRITTEN_OUT) == Run(modulo(modulus=3), lstm(8), end_to_end())


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("7", 7),
        ('"500 epochs"', epochs(500.0)),
        ('"1 epoch"', epochs(1.0)),
        ('"0.5 epochs"', epochs(0.5)),
        ('{ question = "modulo", accuracy = 1, times = 2 }', Mastered("modulo", accuracy=1.0, times=2)),
        ("{ looks = 2, every = 50, limit = 500 }", Mastered("modulo", looks=2, every=50, limit=500)),
        ("{}", Mastered("modulo")),
    ],
)
def test_a_phase_is_given_in_steps_or_epochs_or_by_what_is_to_be_mastered(tmp_path: Path, written: str, meant: object) -> None:
    run = one(tmp_path, with_line(f'schedule = {{ name = "end-to-end", joint = {written} }}'))
    assert run.schedule.phases[0].length == meant


def test_epochs_in_a_file_and_epochs_in_python_are_one_run(tmp_path: Path) -> None:
    run = one(tmp_path, with_line('schedule = { name = "end-to-end", joint = "500 epochs" }'))
    assert run.id == Run(modulo(), sandwich(), end_to_end(epochs(500))).id
    assert run.id == one(tmp_path, with_line('schedule = "end-to-end"')).id


def test_a_learning_rate_is_one_for_all_or_one_by_part(tmp_path: Path) -> None:
    text = 'schedule = {{ name = "delayed", first = 5, joint = 10, lr = {} }}'
    one_rate = one(tmp_path, with_line(text.format("1")))
    by_part = one(tmp_path, with_line(text.format("{ attention = 1e-3, rest = 1 }")))
    assert [phase.lr for phase in one_rate.schedule.phases] == [1.0, 1.0]
    assert [phase.rates for phase in by_part.schedule.phases] == [{"attention": 1e-3, "rest": 1.0}] * 2


def test_one_rate_in_a_file_and_in_python_is_one_run(tmp_path: Path) -> None:
    run = one(tmp_path, with_line('schedule = { name = "delayed", first = 5, joint = 10, lr = 1 }'))
    assert run.id == Run(modulo(), sandwich(), delayed(5, joint=10, lr=1)).id


def test_how_soon_adam_forgets_can_be_chosen(tmp_path: Path) -> None:
    chosen = one(tmp_path, with_line("optimizer = { beta2 = 0.95 }"))
    assert chosen == replace(one(tmp_path, PLAIN), optimizer=Adam(beta2=0.95))


def test_what_is_delayed_and_asked_can_be_chosen(tmp_path: Path) -> None:
    text = 'schedule = { name = "delayed", first = 5, joint = 9, asks = [], covers = "function", first_lr = 0.5, last = 3 }'
    assert one(tmp_path, with_line(text)).schedule == delayed(5, joint=9, asks=(), covers="function", first_lr=0.5, last=3)


@pytest.mark.parametrize(
    ("positions", "scores", "parts"),
    [
        ('"rope"', '"none"', (Rope(), PlainScores())),
        ('"none"', '"log-n"', (NoPositions(), LogN())),
        ('{ name = "rope", base = 500 }', '{ name = "log-n", first = 1 }', (Rope(500.0), LogN(1.0))),
        ('{ name = "none" }', '{ name = "none" }', (NoPositions(), PlainScores())),
    ],
)
def test_positions_and_scores_are_chosen_by_name_or_table(tmp_path: Path, positions: str, scores: str, parts: tuple) -> None:
    model = f'model = {{ name = "transformer", width = 16, heads = 2, positions = {positions}, scores = {scores} }}'
    made = one(tmp_path, with_line(model)).model
    assert made == transformer(16, heads=2, positions=parts[0], scores=parts[1])


def test_seeds_make_a_run_each_and_one_seed_one_run(tmp_path: Path) -> None:
    runs = plan(tmp_path, with_line("seeds = [4, 0, 7]"))
    assert [run.seed for run in runs] == [4, 0, 7]
    assert len({run.id for run in runs}) == 3
    assert one(tmp_path, with_line("seed = 4")) == runs[0]


def test_runs_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    runs = plan(tmp_path, with_line("seeds = [0, 1]") + PLAIN.replace("sandwich", "transformer"))
    assert [run.title for run in runs] == ["sandwich delayed seed 0", "sandwich delayed seed 1", "transformer delayed seed 0"]


@pytest.mark.parametrize(
    ("override", "line"),
    [
        ("batch=32", "batch = 32"),
        ("lengths=[2, 9]", "lengths = [2, 9]"),
        ("task.modulus=7", 'task = { name = "modulo", modulus = 7 }'),
        ("task=recall-and-more", None),
        ("model=transformer", 'model = "transformer"'),
        ('model="transformer"', 'model = "transformer"'),
        ("model.width=128", 'model = { name = "sandwich", width = 128 }'),
        ("model.name=transformer", 'model = "transformer"'),
        ("model.scores=log-n", 'model = { name = "sandwich", scores = "log-n" }'),
        ('model.scores={name="log-n", first=0.5}', 'model = { name = "sandwich", scores = { name = "log-n", first = 0.5 } }'),
        ("schedule.joint=3 epochs", 'schedule = { name = "delayed", first = 5, joint = "3 epochs" }'),
        ("schedule.first={question='modulo', looks=2}", with_first("{ question = 'modulo', looks = 2 }")),
        ("schedule.lr=1e-3", 'schedule = { name = "delayed", first = 5, joint = 10, lr = 1e-3 }'),
        ("schedule.lr.rest=1", 'schedule = { name = "delayed", first = 5, joint = 10, lr = { rest = 1 } }'),
        ("schedule.asks=[]", 'schedule = { name = "delayed", first = 5, joint = 10, asks = [] }'),
        ("optimizer.beta2=0.95", "optimizer = { beta2 = 0.95 }"),
        ("seed=9", "seed = 9"),
        (" seed = 9", "seed = 9"),
    ],
)
def test_an_override_is_as_good_as_a_line_in_the_file(tmp_path: Path, override: str, line: str | None) -> None:
    if line is None:
        assert "unknown task 'recall-and-more'" in complaint(tmp_path, PLAIN, override)
    else:
        assert one(tmp_path, PLAIN, override) == one(tmp_path, with_line(line))


def test_an_override_reaches_into_a_part_given_by_name(tmp_path: Path) -> None:
    text = with_line('model = { name = "sandwich", scores = "log-n" }')
    assert one(tmp_path, text, "model.scores.first=0.5").model == sandwich(scores=LogN(0.5))


def test_overrides_are_applied_to_every_run_in_their_order(tmp_path: Path) -> None:
    runs = plan(
        tmp_path, PLAIN + PLAIN.replace("sandwich", "transformer"), ["model.width=16", "model.width=32", "model.heads=2"]
    )
    assert [run.model for run in runs] == [sandwich(32, heads=2), transformer(32, heads=2)]


def test_an_override_of_seed_replaces_seeds_and_the_other_way_round(tmp_path: Path) -> None:
    assert [run.seed for run in plan(tmp_path, with_line("seeds = [0, 1]"), ["seed=5"])] == [5]
    assert [run.seed for run in plan(tmp_path, with_line("seed = 5"), ["seeds=[0, 1]"])] == [0, 1]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("seeed = 1", "unknown key 'seeed'; did you mean 'seed'?"),
        ("lenghts = [1, 2]", "unknown key 'lenghts'; did you mean 'lengths'?"),
        ('task = { name = "modulo", modullus = 3 }', "unknown key 'task.modullus' for modulo; did you mean 'modulus'?"),
        ('task = { name = "recall", modulus = 3 }', "unknown key 'task.modulus' for recall"),
        ('model = { name = "lstm", widht = 3 }', "unknown key 'model.widht' for lstm; did you mean 'width'?"),
        ('model = { name = "sandwich", head = 3 }', "unknown key 'model.head' for sandwich; did you mean 'heads'?"),
        (
            'model = { name = "sandwich", scores = { name = "log-n", frist = 1 } }',
            "'model.scores.frist' for log-n; did you mean 'first'?",
        ),
        (
            'model = { name = "sandwich", positions = { name = "none", base = 1 } }',
            "'model.positions.base' for none",
        ),
        ('model = { name = "my_models.py:three_lstms", widht = 3 }', "did you mean 'width'?"),
        ('schedule = { name = "delayed", fist = 3 }', "unknown key 'schedule.fist' for delayed; did you mean 'first'?"),
        ('schedule = { name = "end-to-end", first = 3 }', "unknown key 'schedule.first' for end-to-end"),
        ("optimizer = { beta = 0.95 }", "unknown key 'optimizer.beta' for Adam; did you mean 'beta2'?"),
        (with_first("{ acuracy = 0.9 }"), "'schedule.first.acuracy' for Mastered; did you mean 'accuracy'?"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest(tmp_path: Path, line: str, told: str) -> None:
    text = complaint(tmp_path, with_line(line))
    assert text.startswith(f"{tmp_path / 'run.toml'}, run 1: unknown key")
    assert told in text


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('task = "modlo"', "unknown task 'modlo'; did you mean 'modulo'?"),
        ('model = "sandwhich"', "unknown model 'sandwhich'; did you mean 'sandwich'?"),
        ('schedule = "delay"', "unknown schedule 'delay'; did you mean 'delayed'?"),
        ('model = { name = "sandwich", positions = "rop" }', "unknown positions 'rop'; did you mean 'rope'?"),
        ('model = { name = "sandwich", scores = "logn" }', "unknown scores 'logn'; did you mean 'log-n'?"),
        ('model = "my_models.py:four_lstms"', "my_models.py has no 'four_lstms'; did you mean 'three_lstms'?"),
        ('model = "their_models.py:lstms"', "'their_models.py:lstms' cannot be read"),
        (
            'schedule = { name = "delayed", first = 5, asks = ["recall"] }',
            "the schedule asks 'recall', but task 'modulo' asks only",
        ),
        ('schedule = { name = "delayed", first = 5, lr = { lsmt = 1, rest = 1 } }', "did you mean 'lstm'?"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(tmp_path: Path, line: str, told: str) -> None:
    text = complaint(tmp_path, with_line(line))
    assert text.startswith(f"{tmp_path / 'run.toml'}, run 1: ")
    assert told in text


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('batch = "many"', "batch must be a whole number, not 'many'"),
        ("batch = 2.5", "batch must be a whole number, not 2.5"),
        ("batch = true", "batch must be a whole number, not True"),
        ("lengths = 25", "lengths must be a list, not 25"),
        ('lengths = [1, "x"]', "lengths must be a whole number, not 'x'"),
        ("lengths = [1, 2, 3]", "lengths must be [shortest, longest]"),
        ("evaluate = 25", "evaluate must be a list, not 25"),
        ("seeds = 3", "seeds must be a list, not 3"),
        ("seed = [1]", "seed"),
        ("seed = -1", "seed must be at least 0, not -1"),
        ("task = 3", "task must be a name, or a table with a 'name', not 3"),
        ("task = { modulus = 3 }", "task must be a name, or a table with a 'name'"),
        ('model = ["lstm"]', "model must be a name, or a table with a 'name'"),
        ('model = { name = ["lstm"] }', "model"),
        ('model = { name = "lstm", width = "wide" }', "model.width must be a whole number, not 'wide'"),
        ('model = { name = "sandwich", scores = 3 }', "scores must be a name, or a table with a 'name', not 3"),
        (
            'schedule = { name = "end-to-end", joint = 2.5 }',
            'schedule.joint must be a number of steps, "500 epochs" or { question = "modulo" }, not 2.5',
        ),
        (with_first("5, settle = 2.5"), 'schedule.settle must be a number of steps or "500 epochs", not 2.5'),
        (with_first("5, settle = { times = 2 }"), 'schedule.settle must be a number of steps or "500 epochs", not'),
        ('schedule = { name = "end-to-end", joint = "ten epochs" }', "schedule.joint must be a number of steps"),
        ('schedule = { name = "end-to-end", joint = "-1 epochs" }', "schedule.joint must be a number of steps"),
        ('schedule = { name = "end-to-end", joint = "inf epochs" }', "schedule.joint must be a number of steps"),
        ('schedule = { name = "end-to-end", joint = "5 steps" }', "schedule.joint must be a number of steps"),
        ('schedule = { name = "end-to-end", joint = true }', "schedule.joint must be a number of steps"),
        (with_first("{ question = 3 }"), "schedule.first.question must be a text in quotes, not 3"),
        (with_first('{ accuracy = "high" }'), "schedule.first.accuracy must be a number, not 'high'"),
        (with_first("{ accuracy = 1.5 }"), "schedule.first: accuracy must be above 0 and at most 1, not 1.5"),
        (with_first("{ accuracy = nan }"), "schedule.first: accuracy must be above 0 and at most 1, not nan"),
        (with_first("{ times = 1.5 }"), "schedule.first.times must be a whole number, not 1.5"),
        (with_first("{ looks = 0 }"), "schedule.first: looks must be at least 1, not 0"),
        (with_first("{ every = 75 }"), "schedule.first: every must be a multiple of 50, the steps made in one go, not 75"),
        (with_first("{ limit = 50 }"), "schedule.first: limit must be more than every = 100, or nobody looks, not 50"),
        (with_first('{ question = "recall" }'), "waits until 'recall' is mastered, but task 'modulo' is asked only: modulo"),
        (
            with_first("{ times = 6 }"),
            "the schedule looks at 6 times the longest length: length 150: task 'modulo' reaches 128",
        ),
        ('schedule = { name = "end-to-end", lr = "fast" }', "unknown rate 'fast'; there is: cosine, linear, warm-up"),
        ('schedule = { name = "end-to-end", lr = { rest = "fast" } }', "unknown rate 'fast'"),
        ('schedule = { name = "end-to-end", lr = { lstm = 1 } }', "needs a 'rest'"),
        ('schedule = { name = "end-to-end", lr = nan }', "schedule.lr must be at least 0, not nan"),
        ('schedule = { name = "delayed", first = 5, asks = "modulo" }', "schedule.asks must be a list, not 'modulo'"),
        (
            'schedule = { name = "delayed", first = 5, covers = "all" }',
            "schedule.covers must be 'part', 'sublayers' or 'function', not 'all'",
        ),
        (
            'schedule = { name = "delayed", first = 5, covers = [] }',
            "schedule.covers must be 'part', 'sublayers' or",
        ),
        ("optimizer = 0.95", "optimizer must be a table with beta1, beta2, clip, not 0.95"),
        ("optimizer = { beta2 = 1 }", "optimizer.beta2 must be at least 0 and less than 1, not 1.0"),
        ('optimizer = { beta2 = "few" }', "optimizer.beta2 must be a number, not 'few'"),
        ("evaluate = [1000]", "length 1000: task 'modulo' reaches 128 at most"),
        ("seeds = []", "seeds"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(tmp_path: Path, line: str, told: str) -> None:
    text = complaint(tmp_path, with_line(line))
    assert text.startswith(f"{tmp_path / 'run.toml'}, run 1: ")
    assert told in text


@pytest.mark.parametrize("key", ["task", "model", "schedule"])
def test_a_missing_key_is_named(tmp_path: Path, key: str) -> None:
    text = "\n".join(line for line in PLAIN.splitlines() if not line.startswith(key))
    assert complaint(tmp_path, text) == f"{tmp_path / 'run.toml'}, run 1: '{key}' is missing"


def test_seed_and_seeds_together_are_refused(tmp_path: Path) -> None:
    text = complaint(tmp_path, with_line("seed = 1") + "\nseeds = [1, 2]")
    assert text == f"{tmp_path / 'run.toml'}, run 1: give 'seed' or 'seeds', not both"


def test_the_run_that_is_wrong_is_named(tmp_path: Path) -> None:
    text = complaint(tmp_path, PLAIN + PLAIN + with_line("batch = 0"))
    assert text == f"{tmp_path / 'run.toml'}, run 3: batch must be at least 1, not 0"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[run]\n", "is not valid TOML"),
        ("", "has no [[run]] table"),
        ("[run]\ntask = 3", "run 1: 'model' is missing"),
        ("run = []", "has no [[run]] table"),
        ("run = [1]", "[[run]] table"),
        ("[[runs]]\n", "unknown key 'runs'; runs are written as [[run]] tables"),
        ('task = "modulo"\n' + PLAIN, "unknown key 'task'; runs are written as [[run]] tables"),
    ],
)
def test_a_file_that_holds_no_runs_is_named(tmp_path: Path, text: str, told: str) -> None:
    said = complaint(tmp_path, text)
    assert said.startswith(str(tmp_path / "run.toml"))
    assert told in said


def test_a_file_that_is_no_text_or_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    for name, told in (("bytes.toml", "is not text: save it as UTF-8"), ("none.toml", "No such file"), (".", "directory")):
        with pytest.raises(LabError, match=told) as caught:
            read_plan(tmp_path / name)
        assert str(caught.value).startswith(str(tmp_path / name))


@pytest.mark.parametrize("override", ["batch", "=3", "", "model.width"])
def test_an_override_without_a_value_is_refused(tmp_path: Path, override: str) -> None:
    assert f"--set {override}: write it as key=value" in complaint(tmp_path, PLAIN, override)


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("bacth=3", "unknown key 'bacth'; did you mean 'batch'?"),
        ("model.widht=3", "did you mean 'width'?"),
        ("batch=many", "batch must be a whole number, not 'many'"),
        ("model.=3", "unknown key"),
        ("batch.size=3", "batch"),
        ("lengths.longest=3", "lengths"),
    ],
)
def test_an_override_is_checked_like_the_file(tmp_path: Path, override: str, told: str) -> None:
    text = complaint(tmp_path, with_line("batch = 4") + "\nlengths = [1, 2]", override)
    assert text.startswith(f"{tmp_path / 'run.toml'}, run 1: ")
    assert told in text


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("needs_width", "width"),
        ("number", "made an int, which is not a model: it lacks 'name' and 'build'"),
        ("ready", "ready"),
    ],
)
def test_a_maker_of_ones_own_that_cannot_be_used_is_named(tmp_path: Path, reference: str, told: str) -> None:
    text = complaint(tmp_path, with_line(f'model = "my_models.py:{reference}"'))
    assert text.startswith(f"{tmp_path / 'run.toml'}, run 1: ")
    assert told in text


def test_a_maker_of_ones_own_may_take_loose_options(tmp_path: Path) -> None:
    text = with_line('model = "my_models.py:takes_anything"')
    assert one(tmp_path, text, "schedule=end-to-end").model.name == "three-lstms"


def test_a_model_of_ones_own_that_is_no_data_is_refused(tmp_path: Path) -> None:
    text = with_line('model = "my_models.py:Plain"')
    with pytest.raises(LabError, match="Plain"):
        _ = one(tmp_path, text, "schedule=end-to-end").id


def test_a_schedule_of_ones_own_that_is_none_is_refused(tmp_path: Path) -> None:
    text = complaint(tmp_path, with_line('schedule = "my_models.py:number"'))
    assert text.startswith(f"{tmp_path / 'run.toml'}, run 1: ")
    assert "schedule" in text


@pytest.mark.parametrize("text", ["def (", "1 / 0", "raise ValueError('one\\ntwo')"])
def test_a_file_of_ones_own_that_cannot_be_run_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "broken.py").write_text(text)
    assert "run 1: broken.py cannot be loaded: " in complaint(tmp_path, with_line('model = "broken.py:thing"'))


def test_a_seed_of_a_task_is_no_seed_of_the_run() -> None:
    table = {"seed": 1, "task": {"name": "x", "seeds": [1, 2]}}
    override_value(table, "task.seed=3")
    assert table == {"seed": 1, "task": {"name": "x", "seeds": [1, 2], "seed": 3}}
    override_value(table, "seeds=[4, 5]")
    assert table["seeds"] == [4, 5]
    assert "seed" not in table
