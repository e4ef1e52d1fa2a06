"""The survey of transformers' types: what its page calls right stays right, and its judge cannot be fooled."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from command import Call

pytest.importorskip("transformers")

from lengthlab.integrations.batches import batches_for
from lengthlab.integrations.judge import Judge, Wrong
from lengthlab.integrations.small_models import SmallModel, types_of
from lengthlab.integrations.survey import NO_ATTENTION, Row, survey_one
from lengthlab.integrations.survey_workers import survey
from lengthlab.report.markdown import markdown
from lengthlab.report.survey_page import right_in, survey_page
from lengthlab.switch import Delay, delay, delay_attention

PAGE = Path(__file__).parents[2] / "docs" / "survey.md"
SAMPLE = {
    "causal": ("llama", "gpt2", "mixtral", "jamba", "opt", "phi", "gptj", "qwen3_moe", "mllama", "bloom", "gemma2"),
    "masked": ("bert", "albert", "modernbert", "distilbert", "xlm"),
    "vision": ("vit", "siglip", "swin", "segformer", "detr"),
}
"""Quick ones of many sorts. Those that the page does not call right are not tried here."""


def right_on_the_page() -> list[SmallModel]:
    right = right_in(PAGE.read_text(encoding="utf-8"))
    return [SmallModel(name, kind) for kind in right for name in SAMPLE[kind] if name in right[kind]]


@pytest.mark.parametrize("small", right_on_the_page(), ids=lambda small: f"{small.kind}-{small.name}")
def test_what_the_page_calls_right_is_right_again(small: SmallModel) -> None:
    assert survey_one(small).verdict == "right"


def test_the_page_has_a_word_on_every_type() -> None:
    text = PAGE.read_text(encoding="utf-8")
    missing = [name for kind in ("causal", "masked", "vision") for name in types_of(kind) if f"`{name}`" not in text]
    assert not missing


def test_a_type_without_attention_is_right_if_that_is_said() -> None:
    assert survey_one(SmallModel("mamba", "causal")) == Row("mamba", "causal", "right", NO_ATTENTION)


@pytest.fixture
def judge() -> Judge:
    build = SmallModel("llama", "causal").build
    return Judge(build, batches_for(build()))


def test_the_judge_sees_one_layer_of_attention_that_stays_on(judge: Judge) -> None:
    model = judge.model()
    with pytest.raises(Wrong, match="not those without attention"):
        judge.examine(model, delay_attention(model, "layers.0.self_attn"))


def test_the_judge_sees_more_closed_than_attention(judge: Judge) -> None:
    model = judge.model()
    with pytest.raises(Wrong, match="not those without attention"):
        judge.examine(model, delay(model, ["layers.*.self_attn", "layers.1.mlp"], instead="zeros"))


def test_the_judge_sees_that_the_input_no_longer_reaches_the_output(judge: Judge) -> None:
    model = judge.model()
    with pytest.raises(Wrong, match="same for any input"):
        judge.examine(model, delay(model, "layers.0", instead=lambda x, **_: torch.zeros_like(x)))


class Moving(Delay):
    """One whose closed parameters get a gradient of zero, as attention that runs and is multiplied by nothing would."""

    def watch(self, optimizer: torch.optim.Optimizer, counts: bool = True) -> Delay:
        optimizer.register_step_pre_hook(lambda *_: self._feed())
        return self

    def _feed(self) -> None:
        for parameter in self.parameters():
            parameter.grad = torch.zeros_like(parameter)


def test_the_judge_sees_attention_that_decays(judge: Judge) -> None:
    model = judge.model()
    made = delay_attention(model)
    made.remove()
    moving = Moving(made.sites)
    moving.close()
    with pytest.raises(Wrong, match="is of attention, and moves"):
        judge.examine(model, moving)


class Forgetful(Delay):
    """One that does not open."""

    def open(self) -> None:
        self.is_open = True


def test_the_judge_sees_that_it_does_not_open(judge: Judge) -> None:
    model = judge.model()
    made = delay_attention(model)
    sites = made.sites
    made.remove()
    forgetful = Forgetful(sites)
    forgetful.close()
    with pytest.raises(Wrong, match=r"after open\(\)"):
        judge.examine(model, forgetful)


def test_the_judge_sees_attention_left_on_without_need(judge: Judge) -> None:
    model = judge.model()
    made = delay_attention(model, "layers.0.self_attn")
    made.left = ("model.layers.1.self_attn",)  # type: ignore[attr-defined]
    with pytest.raises(Wrong, match="stays on, and the input reaches every output without it"):
        judge.examine(model, made)


def test_one_that_takes_too_long_costs_itself_alone() -> None:
    slow, quick = SmallModel("llama", "causal"), SmallModel("gpt2", "causal")
    told: list[Row] = []
    rows = survey([slow, quick], told.append, workers=1, seconds=0.01)
    assert [row.name for row in rows] == ["llama", "gpt2"]
    assert {row.why for row in told} == {"it took more than 0.01 s"}


def test_a_page_is_read_as_it_was_written() -> None:
    rows = [Row("a", "causal", "right"), Row("b_c", "causal", "right"), Row("d", "causal", "wrong", "it | is")]
    rows += [Row("e", "causal", "right", NO_ATTENTION), Row("f", "vision", "right")]
    assert right_in(markdown(survey_page(rows, "transformers"))) == {"causal": ["a", "b_c"], "vision": ["f"]}


def test_the_command_prints_counts_and_writes_the_page(call: Call, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    done = call("delay", "--survey", "--kind", "causal", "--only", "gpt2,mamba", "--page", page)
    assert done.code == 0, done.err
    assert "Causal language models" in done.out
    assert right_in(page.read_text(encoding="utf-8")) == {"causal": ["gpt2"]}


def test_a_type_that_there_is_not_is_an_error_that_says_what_is_near(call: Call) -> None:
    call("delay", "--survey", "--only", "lama").refused("'lama'", "llama")


def test_a_model_and_a_survey_are_not_asked_for_at_once(call: Call) -> None:
    call("delay", "--survey", "my_model.py:make").refused("--survey")
    call("delay", "my_model.py:make", "--only", "gpt2").refused("--survey")
    call("delay").refused("MODEL")


def test_small_copies_keep_every_sort_of_layer() -> None:
    config = SmallModel("gemma3_text", "causal").config()
    assert set(config.layer_types) == {"sliding_attention", "full_attention"}
    assert sum(parameter.numel() for parameter in SmallModel("mixtral", "causal").build().parameters()) < 500_000
    assert isinstance(SmallModel("vit", "vision").build(), nn.Module)
