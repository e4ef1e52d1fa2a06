"""Hierarchical sparse attention: against a plain loop, in blocks, in pieces, in rows, and at lengths that fit nothing.

Shapes: B samples, T tokens, D width, S tokens of a chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import erf, exp
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from lengthlab.device import settled
from lengthlab.errors import LabError
from lengthlab.inspection import check, find_subject
from lengthlab.models import (
    ChunkMemory,
    HierarchicalAttention,
    Layout,
    LocalAttention,
    Lstm,
    Model,
    chain,
    lstm,
    lstm_hsa,
    residual,
)
from lengthlab.models.attention import chunks as chunks_file
from lengthlab.models.attention import hierarchical as hierarchical_file
from lengthlab.models.attention.chunks import Chunks, Page, choose
from lengthlab.models.layout import Documents
from lengthlab.models.outline import outline
from lengthlab.spec.plan import read_plan
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import Phase, Schedule
from lengthlab.switch import delay, find
from lengthlab.switch.band import Band
from lengthlab.tasks import Passkey
from lengthlab.training.precision import TF32
from lengthlab.training.state import TrainState
from operations import Operations

WIDTH, HEADS, SIZE, VOCABULARY = 8, 4, 4, 11
quick = settings(max_examples=30)


def drawn(module: nn.Module, seed: int = 0) -> Any:
    """In fp64, with weights far enough from zero that every part has a say."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.double().parameters():
        nn.init.normal_(parameter, std=0.5, generator=generator)
    return module.eval()


def part(
    chunks: int = 2, weights: str = "stick-breaking", kv_heads: int = 1, encoder: int = 1, size: int = SIZE, overlap: int = 0
) -> Any:
    reader = HierarchicalAttention(HEADS, chunks, weights)
    return drawn(ChunkMemory(reader, size, HEADS, kv_heads, encoder, overlap).build(WIDTH))


def network_of(**changes: Any) -> Any:
    choices = {"width": WIDTH, "heads": HEADS, "kv_heads": 2, "mlp": 2, "chunk": SIZE, "chunks": 2, "blocks": 2} | changes
    return drawn(lstm_hsa(**choices).build(VOCABULARY))


def numbers(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def tokens(size: int, length: int, seed: int = 0) -> Tensor:
    return torch.randint(VOCABULARY, (size, length), generator=torch.Generator().manual_seed(seed))


@contextmanager
def set_to(module: Any, **values: int) -> Iterator[None]:
    """Limits of a file, for a while; hypothesis does not take pytest's monkeypatch."""
    before = {name: getattr(module, name) for name in values}
    try:
        for name, value in values.items():
            setattr(module, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


# By hand: one token at a time, one head at a time


def linear(x: np.ndarray, of: Any) -> np.ndarray:
    return x @ of.weight.detach().numpy().T + of.bias.detach().numpy()


def norm(x: np.ndarray, of: Any) -> np.ndarray:
    centred = x - x.mean(axis=-1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + of.eps)
    return scaled * of.weight.detach().numpy() + of.bias.detach().numpy()


def softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def encode(chunk: np.ndarray, encoder: Any) -> tuple[np.ndarray, np.ndarray]:
    if not hasattr(encoder, "layers"):
        chunk = chunk / np.sqrt((chunk**2).mean(axis=1, keepdims=True) + 1e-6) * encoder.norm.weight.detach().numpy()
        return chunk, chunk.mean(axis=0)
    x = np.concatenate((chunk, encoder.cls_D.detach().numpy()[None]))
    for layer in encoder.layers:
        q, k, v = np.split(linear(norm(x, layer.norm), layer.qkv), 3, axis=1)
        mixed = np.zeros_like(x)
        each = WIDTH // HEADS
        for head in range(HEADS):
            at = slice(head * each, (head + 1) * each)
            for t in range(len(x)):
                mixed[t, at] = softmax(k[:, at] @ q[t, at] / each**0.5) @ v[:, at]
        x = x + linear(mixed, layer.out)
        inside = linear(norm(x, layer.feed[0]), layer.feed[1])
        x = x + linear(np.vectorize(lambda z: z * (1 + erf(z / 2**0.5)) / 2)(inside), layer.feed[3])
    x = norm(x, encoder.norm)
    return x[:-1], x[-1]


def weights_by_hand(scores: list[float], kind: str) -> list[float]:
    if kind == "softmax":
        return list(softmax(np.array(scores))) if scores else []
    weights, left = [], 1.0
    for score in scores:
        broken = 1 / (1 + exp(-score))
        weights.append(left * broken)
        left *= 1 - broken
    return weights


def by_hand(module: Any, x: np.ndarray, kind: str, places: list[int]) -> np.ndarray:
    """The outputs of a memory with one layer inside, at some places of one sequence."""
    reader, groups, size, step = module.inside, module.groups, module.empty.size, module.empty.size - module.empty.overlap
    landmarks, keys, values = [], [], []
    for start in range(0, len(x) - size + 1, step):
        encoded, summary = encode(x[start : start + size], module.encoder)
        landmarks.append(linear(summary, module.landmark).reshape(groups, -1))
        kv = linear(encoded, module.kv).reshape(size, groups, 2, -1)
        keys.append(kv[:, :, 0])
        values.append(kv[:, :, 1])
    out = []
    for t in places:
        q, r = linear(x[t], reader.q).reshape(HEADS, -1), linear(x[t], reader.r).reshape(groups, -1)
        mixed = np.zeros_like(q)
        for group in range(groups):
            complete = [c for c in range(len(keys)) if t >= c * step + size]
            scores = {c: float(r[group] @ landmarks[c][group]) / r.shape[1] ** 0.5 for c in complete}
            best = sorted(complete, key=lambda c: (scores[c], c), reverse=True)[: reader.most]
            recent = sorted(best, reverse=True)
            weights = weights_by_hand([scores[c] for c in recent], kind)
            for head in range(group * HEADS // groups, (group + 1) * HEADS // groups):
                for c, weight in zip(recent, weights, strict=True):
                    inside = softmax(keys[c][:, group] @ q[head] / q.shape[1] ** 0.5)
                    mixed[head] += weight * (inside @ values[c][:, group])
        out.append(linear(mixed.reshape(-1), reader.out))
    return np.stack(out)


@pytest.mark.parametrize("length", [1, 3, 4, 5, 23])
@pytest.mark.parametrize(
    ("weights", "kv_heads", "encoder", "chunks", "overlap"),
    [
        ("stick-breaking", 1, 1, 2, 0),
        ("stick-breaking", 2, 2, 3, 0),
        ("softmax", 4, 0, 2, 0),
        ("softmax", 2, 1, 50, 0),
        ("stick-breaking", 1, 0, 1, 0),
        ("softmax", 2, 0, 2, 1),
        ("stick-breaking", 1, 1, 50, 3),
    ],
)
def test_what_is_read_is_what_a_plain_loop_reads(
    length: int, weights: str, kv_heads: int, encoder: int, chunks: int, overlap: int
) -> None:
    module, x_BTD = part(chunks, weights, kv_heads, encoder, overlap=overlap), numbers(2, length, WIDTH)
    out_BTD = module(x_BTD).detach().numpy()
    for row, x_TD in enumerate(x_BTD.numpy()):
        np.testing.assert_allclose(out_BTD[row], by_hand(module, x_TD, weights, list(range(length))), atol=1e-12)


def test_a_hundred_and_thirty_thousand_tokens_are_read_as_a_plain_loop_reads_them() -> None:
    """Indices of other code bases overflow at 2^16."""
    module, x_BTD = part(3, size=256, encoder=0), numbers(1, 2**17, WIDTH)
    places = [255, 256, 2**16 - 1, 2**16, 2**16 + 256, 2**17 - 1]
    with torch.no_grad():
        out_BQD = module(x_BTD, Layout(query_BQ=torch.tensor([places])))
    np.testing.assert_allclose(out_BQD[0].numpy(), by_hand(module, x_BTD[0].numpy(), "stick-breaking", places), atol=1e-12)


# Gradients


@pytest.mark.parametrize("weights", ["stick-breaking", "softmax"])
@pytest.mark.parametrize("length", [2, 7])
def test_gradients_are_those_of_small_differences(weights: str, length: int) -> None:
    module, x_BTD = part(2, weights, kv_heads=2, size=2), numbers(1, length, WIDTH).requires_grad_()
    assert torch.autograd.gradcheck(module, (x_BTD,), fast_mode=True)
    parameter = module.landmark.weight

    def by_landmark(weight: Tensor) -> Tensor:
        out: Tensor = torch.func.functional_call(module, {"landmark.weight": weight}, (x_BTD.detach(),))
        return out

    assert length < 3 or torch.autograd.gradcheck(by_landmark, (parameter.detach().requires_grad_(),), fast_mode=True)


@pytest.mark.parametrize("weights", ["stick-breaking", "softmax"])
@pytest.mark.parametrize("length", [1, 4, 5])
def test_where_nothing_is_seen_nothing_is_read_and_no_gradient_is_lost(weights: str, length: int) -> None:
    module, x_BTD = part(weights=weights), numbers(2, length, WIDTH).requires_grad_()
    out_BTD = module(x_BTD)
    assert torch.equal(out_BTD[:, :SIZE], module.inside.out.bias.expand_as(out_BTD[:, :SIZE]))
    out_BTD.sum().backward()
    assert x_BTD.grad is None or x_BTD.grad.isfinite().all()
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in module.parameters())


def gradients(module: Any, out: Tensor) -> list[Tensor]:
    pull = numbers(*out.shape, seed=3)
    return [out, *torch.autograd.grad(out, list(module.parameters()), pull)]


def test_queries_in_blocks_give_what_all_of_them_give_forward_and_backward() -> None:
    module, x_BTD = part(kv_heads=2), numbers(2, 29, WIDTH)
    at_once = gradients(module, module(x_BTD))
    with set_to(hierarchical_file, GATHERED=1000):
        torch.testing.assert_close(gradients(module, module(x_BTD)), at_once)
        with torch.no_grad():
            torch.testing.assert_close(module(x_BTD), at_once[0])


def kept_and_largest(module: nn.Module, length: int) -> tuple[int, int]:
    """Numbers that are kept for the backward pass, and of the largest tensor in both."""
    kept = 0

    def keep(x: Tensor) -> Tensor:
        nonlocal kept
        kept += x.numel()
        return x

    with Operations() as made, torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        out_BTD = module(numbers(1, length, WIDTH))
        out_BTD.sum().backward()
    return kept, made.largest


def test_memory_in_training_grows_with_the_length_and_not_with_its_square() -> None:
    module = drawn(ChunkMemory(HierarchicalAttention(HEADS, 2), SIZE, HEADS).build(WIDTH))
    with set_to(hierarchical_file, GATHERED=2**12):
        (kept, largest), (kept_twice, largest_twice) = kept_and_largest(module, 256), kept_and_largest(module, 512)
    assert kept_twice <= 2.05 * kept
    assert largest_twice <= 2.05 * largest


# Which chunks are chosen


@given(st.data(), st.integers(1, 12), st.integers(1, 5))
@quick
def test_of_equal_scores_the_most_recent_are_chosen(data: st.DataObject, number: int, most: int) -> None:
    scores = data.draw(st.lists(st.sampled_from([0.0, 1.0, 2.0, -torch.inf]), min_size=number, max_size=number))
    best = sorted(range(number), key=lambda c: (scores[c], c), reverse=True)[:most]
    score, chunk = choose(torch.tensor(scores), torch.arange(number), most)
    assert chunk.tolist() == sorted(best, reverse=True)
    assert score.tolist() == [scores[c] for c in chunk.tolist()]


@given(st.integers(1, 6), st.lists(st.integers(1, 5), min_size=1, max_size=6), st.integers(0, 40))
@quick
def test_pages_hold_what_one_page_holds(most: int, sizes: list[int], index: int) -> None:
    """Scores have ties; what was handed over in any pieces is found and fetched alike, on the host and on the device."""
    total = sum(sizes)
    landmark = torch.randint(2, (2, 2, total, 3), generator=torch.Generator().manual_seed(total)).double()
    kv, r = numbers(2, 2, total, SIZE, 6), numbers(2, 2, 3, 3).round()
    index_BQ = torch.tensor([[0, index, total * SIZE]])
    whole, paged = Chunks(SIZE, (Page(landmark, kv),)), Chunks(SIZE)
    with set_to(chunks_file, PAGE=4, DEVICE_BYTES=1):
        for landmark_BGNR, kv_BGNSE in zip(landmark.split(sizes, dim=2), kv.split(sizes, dim=2), strict=True):
            paged = paged.extended(Page(landmark_BGNR, kv_BGNSE))
    assert [page.number for page in paged.pages[:-1]] == [4] * (len(paged.pages) - 1)
    wanted, found = whole.best(r, index_BQ, most), paged.best(r, index_BQ, most)
    seen = wanted[2]
    assert torch.equal(found[2].sum(dim=-1), seen.sum(dim=-1))
    assert torch.equal(found[1][found[2]], wanted[1][seen])
    assert torch.equal(paged.fetch(found[1]), whole.fetch(found[1]))


# In a network


@pytest.mark.parametrize("overlap", [0, 3])
def test_no_token_looks_ahead_and_every_token_so_far_can_have_a_say(overlap: int) -> None:
    network, tokens_BT = network_of(chunks=20, overlap=overlap), tokens(2, 19)
    before_BTV = network(tokens_BT)
    for t in (0, 3, 4, 11, 17):
        changed_BT = tokens_BT.clone()
        changed_BT[:, t + 1 :] = (changed_BT[:, t + 1 :] + 1) % VOCABULARY
        after_BTV = network(changed_BT)
        torch.testing.assert_close(after_BTV[:, : t + 1], before_BTV[:, : t + 1], rtol=0, atol=1e-12)
        assert not torch.allclose(after_BTV[:, t + 1 :], before_BTV[:, t + 1 :])


cuts = st.lists(st.integers(1, 9), min_size=1, max_size=12)


own = [{}, {"encoder": 0, "weights": "softmax"}, {"window": 1}, {"pre_norm": True, "blocks": 1}, {"overlap": 1}, {"overlap": 3}]


@given(cuts, st.sampled_from(own))
@settings(max_examples=30)
def test_reading_in_pieces_equals_reading_at_once(sizes: list[int], changes: dict[str, Any]) -> None:
    network, tokens_BT = network_of(**changes), tokens(2, sum(sizes))
    whole_BTV, state, pieces = network(tokens_BT), None, []
    with set_to(chunks_file, PAGE=3, DEVICE_BYTES=1):
        for piece_BT in tokens_BT.split(sizes, dim=1):
            logits_BTV, state = network.read(piece_BT, state)
            pieces.append(logits_BTV)
    torch.testing.assert_close(torch.cat(pieces, dim=1), whole_BTV, rtol=0, atol=1e-10)


def test_a_state_can_be_gone_on_from_more_than_once() -> None:
    network, tokens_BT = network_of(), tokens(2, 30)
    _, state = network.read(tokens_BT[:, :13], None)
    first, _ = network.read(tokens_BT[:, 13:], state)
    again, _ = network.read(tokens_BT[:, 13:], state)
    assert torch.equal(first, again)


def test_a_piece_says_something_only_where_it_is_asked() -> None:
    network, tokens_BT = network_of(), tokens(3, 20)
    query_BQ = torch.tensor([[0, 6], [5, 2], [3, 3]])
    _, state = network.read(tokens_BT[:, :9], None, Layout(query_BQ=torch.empty(3, 0, dtype=torch.int64)))
    logits_BQV, _ = network.read(tokens_BT[:, 9:], state, Layout(query_BQ=query_BQ))
    wanted_BQV = network(tokens_BT)[torch.arange(3)[:, None], 9 + query_BQ]
    torch.testing.assert_close(logits_BQV, wanted_BQV, rtol=0, atol=1e-12)


@torch.no_grad()
def test_a_piece_that_asks_nothing_looks_at_no_page() -> None:
    module, nothing = part(), Layout(query_BQ=torch.empty(2, 0, dtype=torch.int64))
    state, made = None, []
    with set_to(chunks_file, PAGE=2, DEVICE_BYTES=1):
        for piece_BTD in numbers(2, 40 * SIZE, WIDTH).split(2 * SIZE, dim=1):
            before = () if state is None else state.chunks.pages
            with Operations() as meanwhile:
                out_BQD, state = module.read(piece_BTD, state, nothing)
            made.append(meanwhile.number)
            assert out_BQD.shape == (2, 0, WIDTH)
            assert all(page is kept for page, kept in zip(before, state.chunks.pages, strict=False)), "none is made anew"
    assert len(state.chunks.pages) == 20
    assert len(set(made[1:])) == 1, "as many operations, however many pages there are"


@pytest.mark.parametrize("overlap", [0, 2])
@pytest.mark.parametrize("asked", [False, True])
def test_rows_of_documents_are_read_as_each_of_them_alone(asked: bool, overlap: int) -> None:
    network, lengths = network_of(overlap=overlap), [2, 4, 9, 23]
    alone = [tokens(1, length, seed=length) for length in lengths]
    documents = Documents(lengths)
    inside_BQ = torch.tensor([[0, 1], [3, 0], [8, 4], [22, 9]])
    query_1M = documents.outside(inside_BQ).view(1, -1) if asked else None
    out_1MV = network(torch.cat(alone, dim=1), Layout(query_BQ=query_1M, documents=documents))
    each = [network(one)[:, at if asked else slice(None)] for one, at in zip(alone, inside_BQ, strict=True)]
    torch.testing.assert_close(out_1MV, torch.cat(each, dim=1), rtol=0, atol=1e-12)


def test_logits_asked_for_are_those_of_the_whole_with_their_gradients() -> None:
    network, tokens_BT = network_of(), tokens(3, 21)
    query_BQ = torch.tensor([[0, 20], [7, 7], [13, 4]])
    asked = network(tokens_BT, Layout(query_BQ=query_BQ))
    wanted = network(tokens_BT)[torch.arange(3)[:, None], query_BQ]
    torch.testing.assert_close(gradients(network, asked), gradients(network, wanted), rtol=0, atol=1e-9)


def test_shapes_alone_pass_through_it_and_scores_stay_exact_under_autocast() -> None:
    network = lstm_hsa(width=WIDTH, heads=HEADS, chunk=SIZE).build(VOCABULARY)
    assert network.to("meta")(tokens(2, 18).to("meta")).shape == (2, 18, VOCABULARY)
    chunks = Chunks(SIZE, (Page(numbers(1, 1, 5, 8).float(), numbers(1, 1, 5, SIZE, 4).float()),))
    r_BGQR, index_BQ = numbers(1, 1, 1, 8, seed=2).float(), torch.tensor([[5 * SIZE]])
    plain = chunks.best(r_BGQR, index_BQ, most=5)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(chunks.best(r_BGQR, index_BQ, most=5)[0], plain)
    assert chunks.best(r_BGQR.bfloat16(), index_BQ, most=5)[0].dtype == torch.float32


class Rounding(TorchDispatchMode):
    """Whether a GPU would round the factors of each product."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[bool] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if "mm" in str(func):
            self.seen.append(torch.backends.cuda.matmul.allow_tf32)
        return func(*args, **(kwargs or {}))


def test_scores_that_choose_are_not_rounded_where_other_products_are() -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    landmark_BGNR, kv_BGNSE = numbers(1, 1, 50, 64).float().to(device), torch.zeros(1, 1, 50, SIZE, 4, device=device)
    chunks, r_BGQR = Chunks(SIZE, (Page(landmark_BGNR, kv_BGNSE),)), numbers(1, 1, 3, 64, seed=2).float().to(device)
    index_BQ = torch.tensor([[50 * SIZE] * 3], device=device)
    with settled(device):
        plain = chunks.best(r_BGQR, index_BQ, most=50)[0]
        with TF32.products(), Rounding() as rounding:
            assert torch.equal(chunks.best(r_BGQR, index_BQ, most=50)[0], plain)
            r_BGQR[0, 0] @ landmark_BGNR[0, 0].T
        assert rounding.seen == [False, True]


def test_layers_share_one_memory_and_choose_for_themselves() -> None:
    one, three = (lstm_hsa(width=16, heads=2, chunk=4, blocks=blocks).build(5).body.attention for blocks in (1, 3))
    outside = [sum(p.numel() for name, p in body.named_parameters() if "inside" not in name) for body in (one, three)]
    assert outside[0] == outside[1]
    readers = [name for name, _ in three.named_modules() if name.endswith("hierarchical-attention")]
    assert len(readers) == 3


def test_attention_that_is_off_leaves_the_recurrence_and_comes_back_as_it_was() -> None:
    network, tokens_BT = network_of(blocks=1), tokens(2, 18)
    on_BTV = network(tokens_BT)
    assert [site.name for site in find(network, "attend")] == ["body.attention.inside.0.residual.attend"]
    switch = delay(network, "attention")
    bare = Model("bare", WIDTH, chain(residual(Lstm()))).build(VOCABULARY).double()
    bare.load_state_dict({name: weight for name, weight in network.state_dict().items() if "attention" not in name})
    torch.testing.assert_close(network(tokens_BT), bare(tokens_BT))
    torch.testing.assert_close(network.read(tokens_BT, None)[0], bare(tokens_BT))
    network(tokens_BT).sum().backward()
    assert all(p.grad is None for p in network.body.attention.parameters())
    switch.open()
    assert torch.equal(network(tokens_BT), on_BTV)


def test_attention_that_begins_silent_adds_nothing_at_first() -> None:
    network = lstm_hsa(width=WIDTH, heads=HEADS, chunk=SIZE, silent=True).build(VOCABULARY)
    added = []
    (attend,) = [module for name, module in network.named_modules() if name.endswith("attend")]
    attend.register_forward_hook(lambda module, inputs, out: added.append(out))
    network(tokens(2, 18))
    assert not added[0].any()


# Local attention


def in_a_window(module: Any, x_BTD: Tensor) -> Tensor:
    """Every pair of tokens scored, those outside of the window struck out."""
    q, k, v = (x.unflatten(-1, (HEADS, -1)).transpose(1, 2) for x in (module.q(x_BTD), *module.kv(x_BTD).chunk(2, dim=-1)))
    place = torch.arange(x_BTD.shape[1])
    back = place[:, None] - place
    scores = (q @ k.transpose(2, 3) / (WIDTH // HEADS) ** 0.5).masked_fill((back < 0) | (back >= module.window), -torch.inf)
    out: Tensor = module.out((scores.softmax(dim=-1) @ v).transpose(1, 2).flatten(2))
    return out


@given(st.integers(1, 9), st.lists(st.integers(1, 9), min_size=1, max_size=5))
@quick
def test_local_attention_sees_its_window_at_once_where_asked_and_in_pieces(window: int, sizes: list[int]) -> None:
    module, length = drawn(LocalAttention(HEADS, window).build(WIDTH)), sum(sizes)
    x_BTD = numbers(2, length, WIDTH)
    wanted = in_a_window(module, x_BTD)
    torch.testing.assert_close(module(x_BTD), wanted)
    query_BQ = torch.tensor([[0], [length - 1]])
    torch.testing.assert_close(module(x_BTD, Layout(query_BQ=query_BQ)), wanted[torch.arange(2)[:, None], query_BQ])
    state, pieces = None, []
    for piece_BTD in x_BTD.split(sizes, dim=1):
        out_BTD, state = module.read_at(piece_BTD, state, Layout())
        pieces.append(out_BTD)
    torch.testing.assert_close(torch.cat(pieces, dim=1), wanted)


@pytest.mark.parametrize("window", [1, 2, 4, 6])
def test_local_attention_in_a_row_never_looks_into_the_document_before(window: int) -> None:
    module, documents = drawn(LocalAttention(HEADS, window).build(WIDTH)), Documents([3, 5, 20])
    x_1ND = numbers(1, 28, WIDTH)
    whole_1ND = module(x_1ND, Layout(documents=documents))
    pieces = torch.cat([in_a_window(module, piece) for piece in x_1ND.split([3, 5, 20], dim=1)], dim=1)
    query_1M = torch.tensor([[1, 4, 10]])
    torch.testing.assert_close(whole_1ND, pieces)
    torch.testing.assert_close(module(x_1ND, Layout(query_BQ=query_1M, documents=documents)), pieces[:, query_1M[0]])


@pytest.mark.parametrize("window", [1, 2, 4])
def test_a_narrow_window_has_the_gradients_of_blocks(window: int) -> None:
    module, x_BTD = drawn(LocalAttention(HEADS, window).build(WIDTH)), numbers(3, 11, WIDTH).requires_grad_()
    learned = (x_BTD, *module.parameters())
    narrow = torch.autograd.grad(module(x_BTD).square().sum(), learned)
    blocks = torch.autograd.grad(module.mix(x_BTD, Layout()).square().sum(), learned)
    torch.testing.assert_close(narrow, blocks)


@pytest.mark.parametrize("window", [2, HEADS, 4])
def test_a_narrow_window_is_cut_by_a_band_like_any_attention(window: int) -> None:
    module, x_BTD = drawn(LocalAttention(HEADS, window).build(WIDTH)), numbers(2, 9, WIDTH)
    alone = drawn(LocalAttention(HEADS, 1).build(WIDTH))
    alone.load_state_dict(module.state_dict())
    with Band(1):
        torch.testing.assert_close(module(x_BTD), alone(x_BTD))


# Distractors


def test_a_sample_after_distractors_is_read_as_if_they_stood_before_it() -> None:
    module, x_BTD = part(chunks=3, kv_heads=2), numbers(3, 3 * SIZE, WIDTH)
    x_BTD.requires_grad_()
    weight_BTD = numbers(3, 3 * SIZE, WIDTH)
    for others in (1, 2):
        out_BTD = module(x_BTD, Layout(distractors=others))
        before = [torch.cat([x_BTD[row - turn] for turn in range(others, -1, -1)]) for row in range(3)]
        wanted_BTD = torch.stack([module(each[None])[0, -3 * SIZE :] for each in before])
        torch.testing.assert_close(out_BTD, wanted_BTD, rtol=0, atol=1e-12)
        mine, theirs = (torch.autograd.grad((out * weight_BTD).sum(), x_BTD) for out in (out_BTD, wanted_BTD))
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12)


def test_distractors_are_in_memory_alone_and_show_nothing_of_what_comes() -> None:
    network, tokens_BT = network_of(chunks=10), tokens(2, 19)
    layout = Layout(distractors=1)
    before_BTV = network(tokens_BT, layout)
    assert not torch.allclose(before_BTV, network(tokens_BT))
    bare = drawn(Model("bare", WIDTH, chain(residual(Lstm()), residual(LocalAttention(HEADS)))).build(VOCABULARY))
    assert torch.equal(bare(tokens_BT, layout), bare(tokens_BT)), "no state goes on from one sample into the next"
    changed_BT = tokens_BT.clone()
    changed_BT[0, 12:] = (changed_BT[0, 12:] + 1) % VOCABULARY
    after_BTV = network(changed_BT, layout)
    torch.testing.assert_close(after_BTV[0, :12], before_BTV[0, :12], rtol=0, atol=1e-12)
    assert not torch.allclose(after_BTV[1], before_BTV[1]), "the other one sees it as its past"
    with pytest.raises(LabError, match="a batch of 2 samples has not 2 distractors"):
        network(tokens_BT, Layout(distractors=2))


def test_a_phase_trains_with_distractors_and_a_run_that_cannot_is_refused() -> None:
    task, phase = Passkey(noise=3, digits=1), Phase(2, 1e-2, distractors=1)

    def loss_of(phase: Phase, model: Model = lstm_hsa(WIDTH, heads=HEADS, chunk=SIZE, chunks=2), batch: int = 4) -> float:
        return TrainState(Run(task, model, Schedule("one", (phase,)), (6, 20), batch), torch.device("cpu")).advance()

    assert loss_of(phase) != loss_of(replace(phase, distractors=0))
    with pytest.raises(LabError, match="distractors stand in a memory of chunks, and it has none"):
        loss_of(phase, lstm(WIDTH))
    with pytest.raises(LabError, match="a batch of 1 has not 1 distractors for each sample"):
        loss_of(phase, batch=1)


# By name


def test_it_is_made_from_a_file_and_holds_before_it_is_trained(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text("""
        [[run]]
        task = { name = "modulo-recall", keys = 8 }
        model = { name = "lstm-hsa", width = 16, heads = 2, chunk = 4, chunks = 2, weights = "softmax", window = 6 }
        schedule = { name = "delayed", first = 5, joint = 5 }
        lengths = [1, 3]
    """)
    (run,) = read_plan(tmp_path / "run.toml")
    assert run.model == lstm_hsa(width=16, heads=2, chunk=4, chunks=2, weights="softmax", window=6)
    choices = ("width=16", "heads=2", "chunk=4", "chunks=2")
    assert check(find_subject("lstm-hsa", choices), 70).holds


def test_the_outline_adds_up_to_the_parameters() -> None:
    model = lstm_hsa(width=16, heads=2, chunk=4, blocks=2)
    network, lines = model.build(VOCABULARY), outline(model, VOCABULARY)
    assert sum(line.parameters for line in lines if line.depth == 0) == sum(p.numel() for p in network.parameters())
    assert all(line.parameters == sum(p.numel() for p in network.get_submodule(line.path).parameters()) for line in lines)
    assert any("memory of chunks of 4 tokens" in line.text for line in lines)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: lstm_hsa(chunk=0), "model.chunk must be at least 1, not 0"),
        (lambda: lstm_hsa(chunks=0), "model.chunks must be at least 1, not 0"),
        (lambda: lstm_hsa(window=0), "model.window must be at least 1, not 0"),
        (lambda: lstm_hsa(heads=4, kv_heads=3), "model.kv_heads = 3 does not divide model.heads = 4"),
        (lambda: lstm_hsa(width=10, heads=4).build(5), "model.heads = 4 does not divide model.width = 10"),
        (lambda: lstm_hsa(chunk=4, overlap=4), "chunks of 4 tokens have fewer than that in common, not model.overlap = 4"),
        (lambda: lstm_hsa(weights="sofmax"), "did you mean 'softmax'?"),
        (lambda: HierarchicalAttention(2).build(8)(torch.zeros(1, 3, 8)), "reads the chunks of a memory around it"),
        (
            lambda: ChunkMemory(HierarchicalAttention(2), 2, heads=4).build(8)(torch.zeros(1, 3, 8)),
            "has 2 heads, and the ChunkMemory around it another number",
        ),
    ],
)
def test_what_makes_no_model_is_refused(make: Any, told: str) -> None:
    with pytest.raises(LabError) as caught:
        make()
    assert told in str(caught.value)
