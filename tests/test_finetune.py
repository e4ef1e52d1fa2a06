"""What `lengthlab rules finetune` refuses in one line, and how answers are counted; tests/real has the training."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from command import Call
from lengthlab.integrations.rule_answers import Answer, counts_of, loop_errors
from rule_lms import save_small_lm

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
FOREVER = "def forever(xs):\n    while xs:\n        n = 1\n    return n\n"


@pytest.fixture(scope="module")
def lm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_small_lm(tmp_path_factory.mktemp("lm") / "small", table=200, layers=1, width=16)


@pytest.fixture
def tune(call: Call, lm: Path, tmp_path: Path) -> Call:
    def tune(task: str = "coin-flips", model: Path = lm, **options: object) -> object:
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        return call("rules", "finetune", "--model", model, "--task", task, "--store", tmp_path / "runs", *words)

    return tune


def test_a_folder_that_is_no_whole_model_is_refused(tune: Call, lm: Path, tmp_path: Path) -> None:
    tune(model=tmp_path / "nothing").refused("there is no folder")
    shutil.copytree(lm, tmp_path / "half")
    for file in (tmp_path / "half").glob("tokenizer*"):
        file.unlink()
    tune(model=tmp_path / "half", test="5", form="direct").refused("has no tokenizer")
    (tmp_path / "half" / "model.safetensors").unlink()
    tune(model=tmp_path / "half", test="5", form="direct").refused("has no weights")
    (tmp_path / "half" / "config.json").unlink()
    tune(model=tmp_path / "half").refused("has no config.json")
    assert not (tmp_path / "runs").exists()


def test_an_unknown_rule_and_one_that_does_not_end_are_refused(tune: Call, tmp_path: Path) -> None:
    tune("coin-flip").refused("there is no rule 'coin-flip'; did you mean 'coin-flips'?")
    (tmp_path / "my_rule.py").write_text(FOREVER)
    tune(f"{tmp_path / 'my_rule.py'}:forever").refused("forever", "steps")
    assert not (tmp_path / "runs").exists()


def test_a_trace_that_is_longer_than_the_table_of_positions_is_refused(tune: Call, tmp_path: Path) -> None:
    tune("addition", form="rule", test="5").refused("the table of positions", "200", "addition, trace, n = 5")
    tune(form="direct", lengths="1-2", test="2,90").refused("coin-flips, direct, n = 90", "200")
    assert not (tmp_path / "runs").exists()


def test_wrong_options_are_refused(tune: Call) -> None:
    tune(format="shouted").refused("shouted")
    tune(lengths="5-1").refused("lengths must be (shortest, longest)")
    tune(lr="0").refused("--lr")


def test_counts_tell_the_answer_from_the_whole_and_loops_that_end_early_from_late_ones() -> None:
    def answer(right: bool, exact: bool, turns: int | None) -> Answer:
        return Answer(4, "", "", "", right, exact, None if turns is None else abs(turns), turns)

    answers = [answer(True, True, 0), answer(True, False, 2), answer(False, False, -1), answer(False, False, -3)]
    assert [(count.question, count.correct, count.total) for count in counts_of(answers, "trace")] == [
        ("answer", 2, 4),
        ("trace", 1, 4),
        ("all", 1, 4),
    ]
    assert loop_errors(answers) == {"4": {"mean": 1.5, "early": 0.5, "late": 0.25}}
    direct = [answer(True, True, None), answer(False, False, None)]
    assert [(count.question, count.correct) for count in counts_of(direct, "direct")] == [("answer", 1), ("all", 1)]
    assert loop_errors(direct) == {}
