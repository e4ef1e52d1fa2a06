"""The two pathways of Hugging Face's hybrids, cut: each changes what is said from the boundary on, and nothing before it."""

from __future__ import annotations

from contextlib import AbstractContextManager

import pytest
import torch

from lengthlab.inspection.why.cuts import attention_cut, state_cut
from lengthlab.inspection.why.parts import parts_of
from lengthlab.models.causal_lm import CausalLmNetwork
from small_lms import VOCABULARY, lm_of

BOUNDARY, TOKENS = 6, 9


@pytest.mark.parametrize("name", ["Jamba", "Qwen3Next"])
def test_a_cut_is_felt_from_the_boundary_on(name: str) -> None:
    torch.manual_seed(0)
    network = CausalLmNetwork(lm_of(name)).eval()
    parts = parts_of(network)
    assert parts.recurrences
    generator = torch.Generator().manual_seed(1)
    tokens_BT = torch.randint(VOCABULARY, (2, TOKENS), generator=generator)
    cuts: list[AbstractContextManager[None]] = [
        attention_cut(parts, BOUNDARY, shared_first=False, tokens=TOKENS),
        state_cut(parts, BOUNDARY, another=True),
        state_cut(parts, BOUNDARY, another=False),
    ]
    with torch.no_grad():
        whole_BTV = network(tokens_BT)
        for cut in cuts:
            with cut:
                cut_BTV = network(tokens_BT)
            assert torch.allclose(cut_BTV[:, :BOUNDARY], whole_BTV[:, :BOUNDARY], atol=1e-5)
            assert (cut_BTV[:, BOUNDARY:] - whole_BTV[:, BOUNDARY:]).abs().amax() > 1e-4
        assert torch.equal(network(tokens_BT), whole_BTV)
