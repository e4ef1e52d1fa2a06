"""Delayed attention in real models of kinds that were wrong once, each judged by numbers: see integrations/judge.py."""

from __future__ import annotations

import warnings

import pytest
import torch
from peft import LoraConfig, PrefixTuningConfig, get_peft_model
from torch import nn
from transformers import BigBirdConfig, BigBirdForMaskedLM, LlamaConfig, LlamaForCausalLM, T5Config, T5ForConditionalGeneration

import lengthlab as ll
from lengthlab.errors import LabError
from lengthlab.integrations.batches import batches_for
from lengthlab.integrations.judge import Judge
from lengthlab.integrations.small_models import SmallModel
from lengthlab.switch import DelayWarning

CAUSAL = ("bloom", "zamba", "zamba2", "gemma3n_text", "gemma4_text", "openai-gpt", "xlm", "xlnet", "longcat_flash", "jamba")
MASKED = ("albert", "bert", "roberta", "electra", "mpnet", "layoutlm", "deberta", "deberta-v2", "longformer", "perceiver")
VISION = ("depth_pro", "siglip", "pvt_v2", "levit", "hiera", "vit")
TYPES = [(name, kind) for kind, names in (("causal", CAUSAL), ("masked", MASKED), ("vision", VISION)) for name in names]
SMALL = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 40}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "kind"), TYPES)
def test_closed_it_adds_nothing_stands_still_and_opens_as_it_was(name: str, kind: str) -> None:
    build = SmallModel(name, kind).build  # type: ignore[arg-type]
    judge = Judge(build, batches_for(build()))
    model = judge.model()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DelayWarning)
        delay = ll.delay_attention(model)
    judge.examine(model, delay)


def tokens() -> torch.Tensor:
    return torch.randint(3, 40, (2, 9), generator=torch.Generator().manual_seed(0))


def test_the_first_layer_of_t5_alone_is_refused_since_the_others_read_its_positions() -> None:
    model = t5()
    batch = {"input_ids": tokens(), "decoder_input_ids": tokens()}
    before = model(**batch).logits
    first = "encoder.block.0.layer.0.SelfAttention"
    for options in ({}, {"batch": batch}, {"instead": "zeros"}):
        with pytest.raises(LabError, match="table of relative positions"):
            ll.delay_attention(model, modules=first, **options)  # type: ignore[arg-type]
    assert torch.equal(model(**batch).logits, before)
    delay = ll.delay(model, first)  # which tries nothing
    with pytest.raises(LabError, match="table of relative positions"):
        delay.check(batch)


def test_all_layers_of_t5_are_switched_off_by_name_but_not_opened_from_the_top() -> None:
    model = t5()
    ll.delay_attention(model, modules="SelfAttention").remove()
    with pytest.raises(LabError, match=r"table of relative .* open it first"):
        ll.by_layer(model, every=2, first="top", modules="SelfAttention")
    assert not any("forward" in vars(module) for module in model.modules())
    ll.by_layer(model, every=2, modules="SelfAttention")


def t5() -> T5ForConditionalGeneration:
    torch.manual_seed(0)
    model = T5ForConditionalGeneration(T5Config(d_model=16, d_kv=8, d_ff=16, num_layers=2, num_heads=2, vocab_size=40))
    for stack in (model.encoder, model.decoder):
        nn.init.normal_(stack.block[0].layer[0].SelfAttention.relative_attention_bias.weight, std=5.0)
    return model.eval()


def test_t5_opened_from_the_top_is_refused_and_left_as_it_was() -> None:
    model = t5()
    batch = {"input_ids": tokens(), "decoder_input_ids": tokens()}
    before = model(**batch).logits
    with pytest.raises(LabError, match=r"'encoder.block.0.layer.0.SelfAttention'.* table of relative .* open it first"):
        ll.by_layer(model, every=2, first="top")
    assert torch.equal(model(**batch).logits, before)
    assert not any("forward" in vars(module) for module in model.modules())


def test_t5_opened_from_the_bottom_has_its_positions_in_every_layer() -> None:
    model, other = t5(), t5()
    batch = {"input_ids": tokens(), "decoder_input_ids": tokens()}
    stages = ll.by_layer(model, every=1)
    stages.check(batch)
    stages.go_to(2)
    with torch.no_grad():
        for name, parameter in other.named_parameters():
            if ".block.1." in name and name.endswith("Attention.o.weight"):
                parameter.zero_()
    torch.testing.assert_close(model(**batch).logits, other(**batch).logits)
    stages.go_to(4)
    assert torch.equal(model(**batch).logits, t5()(**batch).logits)


def test_stages_that_would_go_wrong_later_are_refused_by_a_check_before() -> None:
    model = t5()
    upper, lower = (ll.delay(model, f"encoder.block.{number}.layer.0.SelfAttention", until=9 - number) for number in (1, 0))
    with pytest.raises(LabError, match="table of relative positions"):
        ll.Stages(upper, lower).check({"input_ids": tokens(), "decoder_input_ids": tokens()})


STILL = {
    ("zamba", "causal"): (".shared_transf.self_attn.", ".shared_transf.feed_forward.", ".linear."),
    ("zamba2", "causal"): (".shared_transformer.self_attn.", ".shared_transformer.feed_forward.", ".linear."),
    ("bert", "masked"): (".attention.self.", ".attention.output.dense."),
    ("roberta", "masked"): (".attention.self.", ".attention.output.dense."),
    ("deberta", "masked"): (".attention.self.", ".attention.output.dense."),
    ("deberta-v2", "masked"): (".attention.self.", ".attention.output.dense."),
}


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # by DeBERTa
@pytest.mark.parametrize(("name", "kind"), STILL)
def test_maps_that_only_attention_feeds_stand_still_with_it(name: str, kind: str) -> None:
    model = SmallModel(name, kind).build().train()  # type: ignore[arg-type]
    before = {each: parameter.detach().clone() for each, parameter in model.named_parameters()}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.5)
    ll.delay_attention(model).watch(optimizer)
    for batch in batches_for(model):
        optimizer.zero_grad()
        model(**batch).logits.square().mean().backward()
        optimizer.step()
    moved = {each for each, parameter in model.named_parameters() if not torch.equal(parameter, before[each])}
    for part in STILL[name, kind]:
        inside = {each for each in before if part in each}
        assert inside, part
        assert not moved & inside
    assert any(".mamba." in each if "zamba" in name else ".intermediate.dense." in each for each in moved)


def test_a_model_that_exchanges_its_attention_is_refused_and_left_as_it_was() -> None:
    torch.manual_seed(0)
    model = BigBirdForMaskedLM(BigBirdConfig(**SMALL, attention_type="block_sparse"))
    before = dict(model.named_modules())
    with pytest.raises(LabError, match=r"exchanges '.*attention.self' for another module while it runs"):
        ll.delay_attention(model)
    assert dict(model.named_modules()) == before
    model.bert.set_attention_type("original_full")
    assert ll.delay_attention(model).check({"input_ids": tokens()}).left == ()


def test_reversible_layers_are_refused_until_there_is_a_batch_that_shows_why() -> None:
    small = SmallModel("reformer", "causal")
    with pytest.raises(LabError, match="can be trained on no batch that could be made up: hand over one of yours"):
        ll.delay_attention(small.build())
    with pytest.raises(LabError, match="with its attention off the model cannot be trained, though it can with it on"):
        ll.delay_attention(small.build(), batch=batches_for(small.build())[0])


def test_hidden_states_are_as_many_as_before_though_the_first_forward_was_a_trial() -> None:
    model, untouched = llama(), llama()
    delay = ll.delay_attention(model)
    delay.remove()
    hidden, wanted = (each(tokens(), output_hidden_states=True).hidden_states for each in (model, untouched))
    assert len(hidden) == len(wanted)
    assert all(map(torch.equal, hidden, wanted))


def llama() -> nn.Module:
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**SMALL))


def test_adapters_on_attention_alone_are_refused() -> None:
    model = get_peft_model(llama(), LoraConfig(target_modules=["q_proj", "v_proj"], r=2))
    with pytest.raises(LabError, match="nothing would learn while attention is off"):
        ll.delay_attention(model)


def test_prefix_tuning_is_refused() -> None:
    model = get_peft_model(llama(), PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2))
    with pytest.raises(LabError, match="nothing would learn while attention is off"):
        ll.delay_attention(model)


def test_a_subclass_of_multihead_attention_is_found() -> None:
    class Mine(nn.MultiheadAttention):
        pass

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.mix, self.head = nn.Embedding(40, 16), Mine(16, 2, batch_first=True), nn.Linear(16, 40)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            x = self.table(tokens)
            return self.head(x + self.mix(x, x, x, need_weights=False)[0])

    torch.manual_seed(0)
    delay = ll.delay_attention(Model())
    assert [site.name for site in delay.sites] == ["mix"]
    assert delay.check(tokens()).unused == ()
