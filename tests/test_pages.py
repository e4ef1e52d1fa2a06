"""What is read in pieces lies in pages, the oldest of them on the host: on a GPU, if there is one, with every recurrence below.

On a CPU all pages are on the host from the start, and what is said of pieces holds as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from lengthlab.device import settled
from lengthlab.evaluation import accuracy as accuracy_file
from lengthlab.evaluation import stream
from lengthlab.evaluation.accuracy import accuracy
from lengthlab.evaluation.stream import say_in_pieces
from lengthlab.models import ChunkMemory, HierarchicalAttention, Layout, Model, Network, hybrid_block, lstm_hsa
from lengthlab.models.attention import chunks, key_values
from lengthlab.models.attention.chunks import Chunks
from lengthlab.models.attention.chunks import Page as ChunkPage
from lengthlab.models.attention.key_values import KeyValues, Page
from lengthlab.tasks import Passkey
from small_recurrences import PARTS

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
WIDTH, VOCABULARY, TOKENS = 8, 11, 150
CUTS = (1, 64, 7, 3, 40, 20, 15)
HSA: dict[str, Any] = {"width": WIDTH, "heads": 2, "mlp": 1, "chunk": 4, "chunks": 3}
MODELS: dict[str, Model] = {
    **{f"chunks over {name}": lstm_hsa(recurrence=part, **HSA) for name, part in PARTS.items()},
    "two layers of chunks": lstm_hsa(blocks=2, kv_heads=2, **HSA),
    "chunks by softmax": lstm_hsa(weights="softmax", encoder=0, **HSA),
    "attention": hybrid_block(WIDTH, blocks=1, heads=2, mlp=1),
}


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every page but the last on the host."""
    for file in (chunks, key_values):
        monkeypatch.setattr(file, "PAGE", 3)
        monkeypatch.setattr(file, "DEVICE_BYTES", 1)
    with settled(DEVICE):
        yield


def network_of(model: Model, vocabulary: int = VOCABULARY) -> Network:
    torch.manual_seed(0)
    return model.build(vocabulary).double().to(DEVICE).eval()


def tokens(size: int = 2, length: int = TOKENS) -> Tensor:
    return torch.randint(VOCABULARY, (size, length), generator=torch.Generator().manual_seed(1))


@torch.no_grad()
@pytest.mark.parametrize("name", MODELS)
def test_reading_in_pieces_equals_reading_at_once(name: str) -> None:
    network, tokens_BT = network_of(MODELS[name]), tokens().to(DEVICE)
    whole_BTV, state, found = network(tokens_BT), None, []
    for piece_BT in tokens_BT.split(CUTS, dim=1):
        logits_BTV, state = network.read(piece_BT, state)
        found.append(logits_BTV)
    torch.testing.assert_close(torch.cat(found, dim=1), whole_BTV, rtol=0, atol=1e-9)


@torch.no_grad()
@pytest.mark.parametrize("name", MODELS)
def test_pieces_that_ask_here_and_there_say_what_is_said_at_once(name: str) -> None:
    network, tokens_BT = network_of(MODELS[name]), tokens()
    layout = Layout(query_BQ=torch.tensor([[0, 70, 149], [149, 71, 30]]))
    said_BQ = network(tokens_BT.to(DEVICE)).argmax(dim=-1).cpu().gather(1, layout.query_BQ)
    for piece in (16, 50):
        assert torch.equal(say_in_pieces(network, tokens_BT, layout, piece=piece), said_BQ)


@pytest.mark.parametrize("name", ["chunks over lstm", "chunks over mamba2", "chunks by softmax", "attention"])
def test_what_is_measured_in_pages_is_what_is_measured_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task = Passkey(noise=3, digits=2)
    network = network_of(MODELS[name], task.vocabulary)
    at_once = accuracy(network, task, [90], samples=20)
    monkeypatch.setattr(stream, "LONG", 10)
    monkeypatch.setattr(accuracy_file, "say_in_pieces", lambda *read: say_in_pieces(*read, piece=17))
    assert accuracy(network, task, [90], samples=20) == at_once


@torch.no_grad()
def test_landmarks_and_the_last_page_are_on_the_device_and_what_is_only_looked_up_on_the_host() -> None:
    module = ChunkMemory(HierarchicalAttention(2, 3), 4, 2).build(WIDTH).to(DEVICE)
    state, here = None, DEVICE.type
    for piece_BTD in torch.randn(2, TOKENS, WIDTH, device=DEVICE).split(CUTS, dim=1):
        _, state = module.read(piece_BTD, state)
    *full, last = state.chunks.pages
    assert len(full) == 12
    assert {page.landmark_BGNR.device.type for page in (*full, last)} == {last.kv_BGNSE.device.type} == {here}
    assert {page.kv_BGNSE.device.type for page in full} == {"cpu"}
    assert state.chunks.fetch(torch.tensor([[[[0, 36]]], [[[5, 20]]]], device=DEVICE)).device.type == here


@torch.no_grad()
def test_keys_and_values_of_old_tokens_are_on_the_host() -> None:
    state = KeyValues()
    for place in range(4):
        k_BHNC, position_BN = (
            torch.randn(1, 1, 2, 4, device=DEVICE),
            torch.arange(2 * place, 2 * place + 2, device=DEVICE)[None],
        )
        state = state.extended(Page(k_BHNC, k_BHNC, position_BN))
    *full, last = state.pages
    assert [page.number for page in state.pages] == [3, 3, 2]
    assert {page.k_BHNC.device.type for page in full} == {"cpu"}
    assert last.k_BHNC.device.type == DEVICE.type


def test_a_page_that_is_on_the_host_is_not_made_anew() -> None:
    page = ChunkPage(torch.zeros(1, 1, 3, 2), torch.zeros(1, 1, 3, 4, 2))
    state = Chunks(4).extended(page)
    for _ in range(3):
        before = state.pages
        state = state.extended(page)
        assert all(kept is old for kept, old in zip(state.pages, before, strict=False))
