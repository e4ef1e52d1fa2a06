"""What `lengthlab rules finetune` refuses in one line, and how answers are counted; tests/real has the training."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForMaskedLM

from command import Call
from lengthlab.cli.finetune import tell
from lengthlab.integrations.finetuning import Recipe
from lengthlab.integrations.language_model import read_language_model
from lengthlab.integrations.rule_answers import Answer, counts_of, loop_errors
from lengthlab.integrations.rule_tuning import _precision, content_of, result_of
from lengthlab.report.curves import read_curves
from lengthlab.store import Folder
from lengthlab.store.ids import hash_of
from lengthlab.tasks import ALL
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


def test_an_adapter_and_a_store_in_the_models_own_folder_are_refused(tune: Call, lm: Path, tmp_path: Path) -> None:
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter" / "adapter_config.json").write_text("{}")
    tune(model=tmp_path / "adapter", form="direct", test="5").refused("is an adapter of LoRA and no whole model")
    tune(form="direct", test="5", store=lm / "runs").refused("is in the model's own folder")
    assert not (tmp_path / "runs").exists()
    assert not (lm / "runs").exists()


def test_weights_of_another_model_are_refused(tune: Call, lm: Path, tmp_path: Path) -> None:
    """The library would draw what it does not find, and say so where nobody looks."""
    renamed = shutil.copytree(lm, tmp_path / "renamed") / "model.safetensors"
    save_file({f"other.{name}": tensor for name, tensor in load_file(renamed).items()}, renamed, {"format": "pt"})
    told = "config.json is not that of the weights beside it: of LlamaForCausalLM, they lack lm_head.weight, "
    tune(model=renamed.parent, form="direct", test="5").refused(told, "more")
    narrower = shutil.copytree(lm, tmp_path / "narrower") / "config.json"
    narrower.write_text(narrower.read_text().replace('"intermediate_size": 32', '"intermediate_size": 24'))
    tune(model=narrower.parent, form="direct", test="5").refused(
        "is not that of the weights beside it: of LlamaForCausalLM, they lack model.layers.0.mlp.down_proj.weight, "
    )
    assert not (tmp_path / "runs").exists()


def test_a_model_that_sees_what_it_is_to_say_is_refused(tune: Call, lm: Path, tmp_path: Path) -> None:
    masked = shutil.copytree(lm, tmp_path / "masked")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        bert = BertForMaskedLM(BertConfig(vocab_size=400, initializer_range=0.5, **sizes))
    bert.save_pretrained(masked)
    tune(model=masked, form="direct", test="5").refused("what BertLMHeadModel says after a token depends on the next one")
    assert not (tmp_path / "runs").exists()


def test_an_unknown_rule_and_one_that_does_not_end_are_refused(tune: Call, tmp_path: Path) -> None:
    tune("coin-flip").refused("there is no rule 'coin-flip'; did you mean 'coin-flips'?")
    (tmp_path / "my_rule.py").write_text(FOREVER)
    tune(f"{tmp_path / 'my_rule.py'}:forever").refused("forever", "steps")
    assert not (tmp_path / "runs").exists()


def test_a_trace_that_is_longer_than_the_table_of_positions_is_refused(tune: Call, tmp_path: Path) -> None:
    tune("addition", form="rule", test="5").refused("the table of positions", "200", "addition, trace, n = 5")
    tune(form="direct", lengths="1-2", test="2,90").refused("coin-flips, direct, n = 90", "200")
    # Of two flips, the first sample that is asked has 1,038 tokens, and the longest of a hundred 1,096.
    wide = save_small_lm(tmp_path / "wide", table=1_060, layers=1, width=16)
    tune(model=wide, form="rule", lengths="1-1", test="2").refused("coin-flips, trace, n = 2 takes 1,096 tokens", "1,060")
    assert not (tmp_path / "runs").exists()


def test_wrong_options_are_refused(tune: Call) -> None:
    tune(format="shouted").refused("shouted")
    tune(lengths="5-1").refused("--lengths", "'5-1': the shortest length comes first")
    tune(lengths="0-1").refused("--lengths", "at least 1")
    tune(lr="0").refused("--lr")


def test_all_weights_are_trained_in_fp32_on_a_cpu_however_they_are_kept(lm: Path) -> None:
    """Said the same when the command is typed again, and nothing is trained."""
    kept = read_language_model(lm)
    kept.model.to(torch.bfloat16)
    assert [_precision(kept, Recipe(rank), torch.device("cpu")) for rank in (0, 8)] == ["fp32", "bf16"]
    assert _precision(kept, Recipe(0), torch.device("cuda")) == "bf16"


def test_the_answer_comes_first_and_loops_that_end_early_are_told_from_late_ones() -> None:
    def answer(right: bool, exact: bool, turns: int | None) -> Answer:
        return Answer(4, "", "", "", right, exact, None if turns is None else abs(turns), turns)

    answers = [answer(True, True, 0), answer(True, False, 2), answer(False, False, -1), answer(False, False, -3)]
    assert {count.question: (count.correct, count.total) for count in counts_of(answers, "trace")} == {
        "answer": (2, 4),
        "all": (2, 4),
        "trace": (1, 4),
        "enough-turns": (2, 4),
        "no-extra-turn": (3, 4),
    }
    assert loop_errors(answers) == {"4": {"mean": 1.5, "early": 0.5, "late": 0.25}}
    direct = [answer(True, True, None), answer(False, False, None)]
    assert [(count.question, count.correct) for count in counts_of(direct, "direct")] == [("answer", 1), ("all", 1)]
    assert loop_errors(direct) == {}


def test_forms_are_compared_by_the_answer_with_its_chance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for form, right in (("direct", 0), ("trace", 3)):
        content = {
            "task": {"kind": "rule-coin-flips", "form": form},
            "model": {"kind": "small"},
            "schedule": {},
            "lengths": [1, 5],
            "seed": 0,
        }
        answers = [
            Answer(n, "", "", "", each < right + (n == 5), each == 0, *((None, None) if form == "direct" else (0, 0)))
            for n in (5, 30)
            for each in range(4)
        ]
        folder = Folder(tmp_path / hash_of(content))
        folder.write_json("run.json", content)
        made = {"steps": 1, "seconds": 0.0, "hardware": "", "precision": "fp32"}
        lm = SimpleNamespace(name="small")
        folder.write_json("result.json", result_of(lm, content, Recipe(), answers) | made)  # type: ignore[arg-type]
        tell(folder, "runs")
    said = capsys.readouterr().out
    assert "answers: 0.75 at n = 30; the longest length with at least 0.90 is n = 5" in said
    assert "answers: 0.00 at n = 30; at least 0.90 at no length" in said
    curves, problems = read_curves([Folder(path) for path in tmp_path.iterdir()])
    assert not problems
    assert {curve.questions[0] for curve in curves} == {ALL, "answer"}  # a single question speaks for itself
    by_form = {curve.first.task: curve.row(30, ALL) for curve in curves}
    assert {task: row.correct for task, row in by_form.items() if row} == {
        "rule-coin-flips, direct": 0,
        "rule-coin-flips, trace": 3,
    }
    assert {curve.chance_at(30, question) for curve in curves for question in ("answer", ALL)} == {0.5}


def test_an_edited_rule_is_another_fine_tuning(tmp_path: Path, lm: Path) -> None:
    file = tmp_path / "own.py"
    ids = set()
    for text in ("def f(xs):\n    return xs[0]", "def f(xs):\n    return xs[-1]", "def f(xs: list[bool]):\n    return xs[0]"):
        file.write_text(text)
        content = content_of(read_language_model(lm), f"{file}:f", "direct", (1, 2), 1, Recipe())
        ids.add(hash_of(content))
    assert len(ids) == 3
    assert "rule" not in content_of(read_language_model(lm), "addition", "direct", (1, 2), 1, Recipe())["task"]
