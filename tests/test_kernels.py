"""Kernels give what plain PyTorch gives, forward and backward: on a GPU for real, elsewhere in Triton's interpreter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from lengthlab import kernels, models
from lengthlab.device import settled
from lengthlab.evaluation.stream import say_in_pieces
from lengthlab.kernels import sizes
from lengthlab.models.attention import hierarchical
from lengthlab.models.attention.entmax import EntmaxWeights, entmax15
from lengthlab.models.layout import PLAIN, Documents, Layout
from lengthlab.models.recurrence.recurrence import Recurrence
from lengthlab.models.recurrence.short_conv import ShortConv
from lengthlab.tasks import ModuloRecall

pytest.importorskip("triton")  # `conftest` has switched its interpreter on where there is no GPU
ON_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if ON_GPU else "cpu")
TASK = ModuloRecall(modulus=3, values=4, keys=8)


@pytest.fixture(autouse=True)
def _serve_the_cpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if not ON_GPU:
        monkeypatch.setattr(kernels, "_on_gpu", lambda x: True)
        monkeypatch.setattr(torch, "empty_like", _poisoned(torch.empty_like))
    with settled(DEVICE):  # cuDNN's LSTM is no reference in TF32
        yield


def _poisoned(make: object) -> object:
    """What a kernel does not write shows up as NaN."""

    def poisoned(*arguments: object, **named: object) -> Tensor:
        made: Tensor = make(*arguments, **named)  # type: ignore[operator]
        return made.fill_(float("nan")) if made.is_floating_point() else made

    return poisoned


def grads(out: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    weight = torch.randn(out.shape, generator=torch.Generator().manual_seed(0)).to(out.device)
    return torch.autograd.grad((out * weight).sum(), inputs)


def assert_same(out: Tensor, expected: Tensor, *inputs: Tensor) -> None:
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-5)
    for mine, theirs in zip(grads(out, *inputs), grads(expected, *inputs), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, device=DEVICE).requires_grad_()


def test_add_norm_is_the_layer_norm_of_a_sum() -> None:
    norm = nn.LayerNorm(32, device=DEVICE)
    nn.init.normal_(norm.weight)
    x, f = drawn(1, 19, 32), drawn(1, 19, 32)
    assert_same(kernels.add_norm(x, f, norm), norm(x + f), x, f, *norm.parameters())


def test_linear_and_embedding_are_torchs() -> None:
    layer, table = nn.Linear(16, 5, device=DEVICE), nn.Embedding(7, 16, device=DEVICE)
    x, tokens = drawn(2, 3, 16), torch.randint(7, (2, 9), device=DEVICE)
    assert_same(kernels.linear(x, layer.weight, layer.bias), layer(x), x, *layer.parameters())
    assert_same(kernels.embed(tokens, table.weight), table(tokens), table.weight)


def test_linear_and_embedding_take_no_tokens_at_all() -> None:
    layer, table = nn.Linear(16, 5, device=DEVICE), nn.Embedding(7, 16, device=DEVICE)
    nothing, no_token = torch.zeros(3, 0, 16, device=DEVICE), torch.zeros(3, 0, dtype=torch.long, device=DEVICE)
    assert kernels.linear(nothing, layer.weight, layer.bias).shape == (3, 0, 5)
    assert kernels.embed(no_token, table.weight).shape == (3, 0, 16)


@pytest.mark.parametrize(
    "model",
    [
        models.lstm_hsa(32, heads=2, chunk=4, chunks=2),
        models.lstm_hsa(32, recurrence="mamba2", heads=2, chunk=4, chunks=2, blocks=2),
        models.transformer(32, heads=2, positions="none", scores="log-n"),
        models.hybrid_block(32, blocks=1, heads=2),
        models.hybrid_block(32, blocks=1, heads=2, local=2),
    ],
    ids=["lstm-hsa", "mamba2-hsa", "transformer", "hybrid", "hybrid-looking-back"],
)
def test_a_stream_whose_first_pieces_ask_nothing_is_read_by_kernels(
    model: models.Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    network = model.build(vocabulary=7).to(DEVICE).eval()
    tokens_BT = torch.randint(7, (2, 40), device=DEVICE)
    layout = Layout(query_BQ=torch.tensor([[39], [38]], device=DEVICE))
    by_kernels = say_in_pieces(network, tokens_BT, layout, piece=16)
    monkeypatch.setattr(kernels, "_on_gpu", lambda x: False)
    assert torch.equal(by_kernels, say_in_pieces(network, tokens_BT, layout, piece=16))


@pytest.mark.parametrize(("tokens", "channels", "window"), [(1, 5, 4), (70, 70, 4), (33, 16, 1), (9, 3, 8)])
def test_a_short_convolution_is_a_sum_of_shifted_products(
    tokens: int, channels: int, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    conv = ShortConv(channels, window).to(DEVICE)
    nn.init.normal_(conv.bias)
    x, before = drawn(2, tokens, channels), drawn(2, window - 1, channels)
    inputs = (x, before, *conv.parameters()) if window > 1 else (x, *conv.parameters())
    reads = []
    monkeypatch.setattr(kernels, "convolve", lambda *given, read=kernels.convolve: reads.append(given) or read(*given))
    out, kept = conv(x, before)
    assert len(reads) == 1
    monkeypatch.setattr(kernels, "_on_gpu", lambda x: False)
    expected, kept_too = conv(x, before)
    assert_same(out, expected, *inputs)
    assert torch.equal(kept, kept_too)


def test_a_window_too_wide_for_the_kernel_and_no_tokens_at_all_are_left_to_pytorch() -> None:
    x = drawn(2, 9, 16)
    assert not kernels.serve_short_conv(x, kernels.WINDOW + 1)
    out, kept = ShortConv(16, 4).to(DEVICE)(x[:, :0], None)
    assert out.shape == (2, 0, 16)
    assert kept.shape == (2, 3, 16)


def test_beside_other_models_samples_of_one_length_go_through_an_lstm_by_its_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    scanned: list[int] = []
    scan = kernels.scan_padded_lstm
    monkeypatch.setattr(kernels, "scan_padded_lstm", lambda cell, x: (scanned.append(len(x)), scan(cell, x))[1])
    lstm, deep = models.Lstm().build(16).to(DEVICE), models.Lstm(layers=2).build(16).to(DEVICE)
    x = drawn(20, 9, 16)  # more samples than one program takes
    alone, beside = Layout(), Layout(shared=True)
    expected = lstm(x, alone)
    assert torch.equal(lstm(x, beside), expected), "fp32 has no kernel for this"
    monkeypatch.setattr(kernels, "serve_recurrence", lambda x: True)  # the two can be told from each other in fp32 alone
    lstm(x, alone), deep(x, beside)
    assert not scanned
    assert_same(lstm(x, beside), expected, x, *lstm.parameters())
    assert scanned == [20]


def test_the_recurrence_is_an_lstm_over_each_document() -> None:
    lengths = [1, 1, 2, 3, 5, 5, 8, *range(9, 21)]  # more documents than one program takes
    documents = Documents(lengths, DEVICE)
    cell = nn.LSTM(16, 16, batch_first=True, device=DEVICE)
    x = drawn(sum(lengths), 16)
    apart = torch.cat([cell(piece[None])[0][0] for piece in x.split(lengths)])
    assert_same(kernels.scan_lstm(cell, x, documents.start_B, documents.length_B), apart, x, *cell.parameters())


@pytest.mark.parametrize("name", ["transformer", "attention-on-lstm", "hybrid-block"])
@pytest.mark.parametrize(
    "choices",
    [{}, {"positions": "none", "scores": "log-n"}, {"scores": "entmax"}, {"positions": "none", "scores": "adaptive-entmax"}],
)
def test_a_model_gives_the_same_with_and_without_kernels(
    name: str, choices: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    network = models.MODELS[name](width=64, heads=2, blocks=2, **choices).build(TASK.vocabulary).to(DEVICE)
    batch = TASK.sample(5, (1, 5), torch.Generator(DEVICE).manual_seed(1))
    query_BQ, _ = batch.queries(TASK.questions, most=2)
    documents = Documents([TASK.tokens(n) - 1 for n in range(1, 6)], DEVICE)
    layout = Layout(query_BQ=documents.outside(query_BQ).flatten()[None], documents=documents)
    row = documents.row(batch.tokens_BT[:, :-1]), layout
    attended = []
    monkeypatch.setattr(kernels, "attend", lambda *given, attend=kernels.attend: attended.append(given) or attend(*given))
    with_kernels = network(*row)
    assert attended
    found = grads(with_kernels, *network.parameters())
    monkeypatch.setattr(kernels, "_on_gpu", lambda x: False)
    plain = network(*row)
    torch.testing.assert_close(with_kernels, plain, rtol=1e-4, atol=1e-5)
    for mine, theirs in zip(found, grads(plain, *network.parameters()), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", ["spread", "ties"])
def test_entmax_over_documents_is_entmax_of_the_scores(kind: str) -> None:
    torch.manual_seed(0)
    lengths, heads, channels = [1, 2, 33, 60], 2, 32
    documents, ones = Documents(lengths, DEVICE), torch.ones(64, channels // 2, device=DEVICE)
    q, kv = drawn(sum(lengths), 64), drawn(sum(lengths), 128)
    with torch.no_grad():
        for x in (q, kv):
            x.copy_(x > 0) if kind == "ties" else x.mul_(3)
    rows = documents.start_B, documents.length_B
    out = kernels.attend(q, kv, (ones, torch.zeros_like(ones)), None, *rows, heads, entmax=True)
    expected, none = [], 0
    for q_TD, kv_TE in zip(q.split(lengths), kv.split(lengths), strict=True):
        q_HTC, k_HTC, v_HTC = (each.view(len(q_TD), heads, -1).transpose(0, 1) for each in (q_TD, *kv_TE.chunk(2, dim=1)))
        ahead_TT = torch.ones(len(q_TD), len(q_TD), device=DEVICE).triu(1).bool()
        weights_HTT = entmax15((q_HTC @ k_HTC.transpose(1, 2) / channels**0.5).masked_fill(ahead_TT, -torch.inf))
        none += int((weights_HTT[:, ~ahead_TT] == 0).sum())
        expected.append((weights_HTT @ v_HTC).transpose(0, 1).flatten(1))
    assert none > 100, "weights that are zero are what is tried here"
    assert_same(out, torch.cat(expected), q, kv)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the interpreter's
def test_a_document_with_a_score_that_is_no_number_has_none_in_its_answer() -> None:
    q, kv, ones = drawn(3, 64), drawn(3, 128), torch.ones(64, 16, device=DEVICE)
    q = torch.where(torch.arange(3, device=DEVICE)[:, None] == 2, torch.nan, q)
    rows = torch.tensor([0], device=DEVICE), torch.tensor([3], device=DEVICE)
    for entmax in (False, True):
        out = kernels.attend(q, kv, (ones, torch.zeros_like(ones)), None, *rows, 2, entmax)
        assert out[2].isnan().all()
        assert out[:2].isfinite().all()


def test_own_weights_that_derive_from_entmax_are_not_taken_for_it() -> None:
    attention = models.Attention(heads=2, scores="entmax").build(64)
    assert attention.lacks == ""  # type: ignore[operator]

    class Sharper(EntmaxWeights):
        def weigh(self, scores_BHQT: Tensor, seen_BHQT: Tensor) -> Tensor:
            return super().weigh(2 * scores_BHQT, seen_BHQT)

    attention.scores = Sharper()
    assert "no kernel for Sharper" in attention.lacks  # type: ignore[operator]


# What Triton 3.7 asked for, backward: channels of a head, type and bytes of a program.
@pytest.mark.parametrize(
    ("channels", "dtype", "asked"),
    [(32, torch.float32, 57_344), (64, torch.float32, 98_304), (128, torch.float32, 180_224), (128, torch.bfloat16, 81_920)],
)
def test_attention_has_a_kernel_where_a_gpu_has_room_for_it(
    channels: int, dtype: torch.dtype, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for room, expected in ((asked, True), (asked - 1, False)):
        monkeypatch.setattr(sizes, "shared_memory", lambda device, room=room: room)
        assert sizes.fits_attention(channels, 64, dtype, DEVICE) is expected


def test_kernels_leave_alone_what_they_cannot_take(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernels.serve_tokens(torch.empty(3, 64, device=DEVICE))
    assert not kernels.serve_tokens(torch.empty(3, 48, device=DEVICE)), "not a power of two"
    assert kernels.serve_attention(torch.empty(3, 64, device=DEVICE), heads=2, longest=64)
    assert not kernels.serve_attention(torch.empty(3, 64, device=DEVICE), heads=4, longest=64), "heads too narrow"
    assert not kernels.serve_attention(torch.empty(3, 256, device=DEVICE), heads=1, longest=64), "heads too wide"
    assert not kernels.serve_attention(torch.empty(3, 64, device=DEVICE), heads=2, longest=65), "documents too long"
    assert not kernels.serve_embedding(torch.empty(5000, 64, device=DEVICE)), "too many words for a product with one-hot rows"
    monkeypatch.undo()
    assert kernels.serve_tokens(torch.empty(3, 64)) is False, "not on a GPU"


# What Triton 3.6 asked for: width, type, channels at a time and the bytes of a program, forward or backward.
ASKED = [
    (256, torch.bfloat16, 64, 143_360),
    (512, torch.bfloat16, 64, 282_624),
    (512, torch.float32, 16, 164_864),
    (1024, torch.float32, 16, 328_704),
]


@pytest.mark.parametrize(("width", "dtype", "channels", "asked"), ASKED)
def test_the_recurrence_takes_as_many_channels_at_a_time_as_a_gpu_has_room_for(
    width: int, dtype: torch.dtype, channels: int, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for room, expected in ((asked, True), (asked - 1, False)):
        sizes.channels_at_a_time.cache_clear()
        monkeypatch.setattr(sizes, "shared_memory", lambda device, room=room: room)
        assert (sizes.channels_at_a_time(width, dtype, DEVICE) == channels) == expected
    monkeypatch.setattr(sizes, "shared_memory", lambda device: 1000)
    sizes.channels_at_a_time.cache_clear()
    assert not sizes.fits_recurrence(width, dtype, DEVICE)
    sizes.channels_at_a_time.cache_clear()


# The bilinear recurrence


@pytest.mark.parametrize("size", [2, 8, 32])
@pytest.mark.parametrize("tokens", [1, 7])
@pytest.mark.parametrize("goes_on", [False, True])
def test_the_bilinear_recurrence_is_its_walk(size: int, tokens: int, goes_on: bool) -> None:
    torch.manual_seed(0)
    module = models.Bilinear(size=size).build(width=96 if size == 32 else 64).to(DEVICE)  # 3 blocks, 8 or 32
    assert isinstance(module, Recurrence)
    x = drawn(3, tokens, 96 if size == 32 else 64)
    before = (drawn(3, 96 // size if size == 32 else 64 // size, size),) if goes_on else None
    inputs = (x, *(before or ()), *(each for name, each in module.named_parameters() if not (goes_on and "first" in name)))
    out, (last,) = module.read(x, before)
    walked, (walked_last,) = module.walk(x, before)
    assert_same(torch.cat((out.flatten(), last.flatten())), torch.cat((walked.flatten(), walked_last.flatten())), *inputs)


def test_a_state_of_the_bilinear_recurrence_that_vanishes_is_divided_as_torch_divides_it() -> None:
    a, first = torch.full((1, 2, 1, 2, 2), 1e-14, device=DEVICE).requires_grad_(), drawn(1, 1, 2)
    h, plain = first, []
    for t in range(2):
        h = 2**0.5 * nn.functional.normalize((a[:, t] @ h[..., None]).squeeze(-1), dim=-1)
        plain.append(h)
    out, expected = kernels.scan_blocks(a, first), torch.stack(plain, dim=1)
    torch.testing.assert_close(out, expected)
    for mine, theirs in zip(grads(out, a, first), grads(expected, a, first), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_blocks_that_triton_has_no_tile_for_are_walked() -> None:
    assert kernels.serve_blocks(torch.empty(1, 1, 1, 8, 8, device=DEVICE))
    assert not kernels.serve_blocks(torch.empty(1, 1, 1, 6, 6, device=DEVICE))
    assert not kernels.serve_blocks(torch.empty(1, 1, 1, 64, 64, device=DEVICE)), "too large for the registers"
    assert not kernels.serve_blocks(torch.empty(1, 1, 1, 8, 8, device=DEVICE, dtype=torch.float64))
    assert "no kernel" in models.Bilinear(size=6).build(width=12).lacks  # type: ignore[operator]
    assert models.Bilinear(size=8).build(width=16).lacks == ""


# The sLSTM


@pytest.mark.parametrize("heads", [1, 4])
@pytest.mark.parametrize("samples", [2, 19])  # more than one program takes
def test_the_slstm_is_its_walk(heads: int, samples: int) -> None:
    torch.manual_seed(0)
    module = models.SLstm(heads=heads).build(width=64).to(DEVICE)
    assert isinstance(module, Recurrence)
    x = drawn(samples, 6, 64)
    assert_same(module.mix(x, PLAIN), module.walk(x, None)[0], x, *module.parameters())


def test_an_slstm_reads_on_from_a_state_as_its_walk_does() -> None:
    torch.manual_seed(0)
    module = models.SLstm(heads=2).build(width=64).to(DEVICE)
    assert isinstance(module, Recurrence)
    x = drawn(3, 9, 64)
    with torch.no_grad():
        _, state = module.read(x[:, :4], None)
        out, after = module.read(x[:, 4:], state)
        walked, walked_after = module.walk(x[:, 4:], module.walk(x[:, :4], None)[1])
    torch.testing.assert_close(out, walked, rtol=1e-4, atol=1e-5)
    for mine, theirs in zip(after, walked_after, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


def test_gradients_go_through_the_state_that_an_slstm_leaves() -> None:
    torch.manual_seed(0)
    module = models.SLstm(heads=2).build(width=64).to(DEVICE)
    assert isinstance(module, Recurrence)
    x = drawn(2, 5, 64)
    in_two = module.read(x[:, 2:], module.read(x[:, :2], None)[1])[0]
    assert_same(in_two, module.walk(x, None)[0][:, 2:], x, *module.parameters())


def test_heads_that_a_matrix_unit_does_not_take_are_walked() -> None:
    assert kernels.serve_heads(torch.empty(1, 1, 1, 256, device=DEVICE))
    assert not kernels.serve_heads(torch.empty(1, 1, 1, 32, device=DEVICE))
    assert not kernels.serve_heads(torch.empty(1, 1, 1, 256, device=DEVICE, dtype=torch.bfloat16))
    assert "no kernel" in models.SLstm(heads=4).build(width=32).lacks  # type: ignore[operator]
    assert models.SLstm(heads=4).build(width=64).lacks == ""


# The read of hierarchical attention


def read_plainly(q_MPC: Tensor, kv_ISE: Tensor, row_MK: Tensor, weight_MK: Tensor) -> Tensor:
    k_MKSC, v_MKSC = kv_ISE[row_MK].chunk(2, dim=-1)
    inside_MPKS = torch.einsum("mpc,mksc->mpks", q_MPC, k_MKSC).div(q_MPC.shape[2] ** 0.5).softmax(dim=-1)
    return torch.einsum("mpks,mksc,mk->mpc", inside_MPKS, v_MKSC, weight_MK)


def choice_of(queries: int, most: int, chunks: int) -> tuple[Tensor, Tensor]:
    """Rows, the first chunk often and the last never, and weights, some of them zero."""
    row_MK = torch.randint(chunks - 1, (queries, most), device=DEVICE) * torch.randint(2, (queries, 1), device=DEVICE)
    weight_MK = torch.rand(queries, most, device=DEVICE)
    return row_MK, (weight_MK * (weight_MK > 0.3)).requires_grad_()


@pytest.mark.parametrize(
    ("queries", "heads", "channels", "most", "size"),
    [(11, 8, 32, 3, 16), (7, 1, 16, 1, 5), (3, 3, 24, 2, 20), (2, 40, 16, 2, 4), (0, 2, 16, 2, 4)],
)
def test_chunks_are_read_as_if_they_were_copied(queries: int, heads: int, channels: int, most: int, size: int) -> None:
    torch.manual_seed(0)
    q_MPC, kv_ISE = drawn(queries, heads, channels), drawn(5, size, 2 * channels)
    row_MK, weight_MK = choice_of(queries, most, chunks=5)
    assert kernels.serve_chunks(q_MPC, kv_ISE, heads)
    out, expected = (read(q_MPC, kv_ISE, row_MK, weight_MK) for read in (kernels.read_chunks, read_plainly))
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-5)
    mine, theirs = (grads(each, q_MPC, kv_ISE, weight_MK) for each in (out, expected))
    for found, wanted in zip(mine, theirs, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    assert not mine[1][4].any(), "nobody read the last one"


@pytest.mark.parametrize(("rows", "others"), [(False, 0), (True, 0), (False, 1)])
def test_hierarchical_attention_gives_the_same_with_and_without_kernels(
    rows: bool, others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    part = models.ChunkMemory(models.HierarchicalAttention(heads=2, chunks=2), chunk=3, heads=2, kv_heads=2 - rows)
    module, x = part.build(32).to(DEVICE), drawn(2 - rows, 13, 32)
    layout = Layout(documents=Documents([2, 11], DEVICE)) if rows else Layout(query_BQ=torch.tensor([[12, 5]] * 2).to(DEVICE))
    layout = replace(layout, distractors=others)
    reads = []
    monkeypatch.setattr(kernels, "read_chunks", lambda *given, read=kernels.read_chunks: reads.append(given) or read(*given))
    with monkeypatch.context() as while_inside:
        while_inside.setattr(hierarchical, "GATHERED", 20)
        with_kernels = module(x, layout)
        found = grads(with_kernels, x, *module.parameters())
    monkeypatch.setattr(kernels, "_on_gpu", lambda x: False)
    plain = module(x, layout)
    assert len(reads) == 1, "in however many blocks chunks were chosen"
    torch.testing.assert_close(with_kernels, plain, rtol=1e-4, atol=1e-5)
    for mine, theirs in zip(found, grads(plain, x, *module.parameters()), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-4)


only_on_a_gpu = pytest.mark.skipif(not ON_GPU, reason="of a GPU's types, graphs and memory")


@only_on_a_gpu
@pytest.mark.parametrize(("dtype", "near"), [(torch.float32, 1e-4), (torch.bfloat16, 2e-2), (torch.float16, 4e-3)])
@pytest.mark.parametrize(("heads", "channels", "size"), [(8, 32, 64), (2, 128, 8), (4, 16, 16), (8, 128, 128), (6, 80, 50)])
def test_a_gpu_reads_chunks_in_every_type_and_the_same_bits_every_time(
    heads: int, channels: int, size: int, dtype: torch.dtype, near: float
) -> None:
    torch.manual_seed(0)
    drawn_so = (drawn(300, heads, channels), drawn(40, size, 2 * channels))
    q_MPC, kv_ISE = (each.detach().to(dtype).requires_grad_() for each in drawn_so)
    row_MK, weight_MK = choice_of(300, 8, chunks=40)
    inputs = (q_MPC, kv_ISE, row_MK, weight_MK)
    assert kernels.serve_chunks(q_MPC, kv_ISE, heads)
    first, again = ([out, *grads(out, q_MPC, kv_ISE, weight_MK)] for out in (kernels.read_chunks(*inputs) for _ in range(2)))
    assert all(map(torch.equal, first, again))
    exact = [each.detach().double().requires_grad_() if each.is_floating_point() else each for each in inputs]
    out = read_plainly(*exact)
    for mine, theirs in zip(first, [out, *grads(out, exact[0], exact[1], exact[3])], strict=True):
        assert (mine.double() - theirs).norm() <= near * theirs.norm()


@only_on_a_gpu
def test_a_step_of_hierarchical_attention_is_captured_as_a_graph() -> None:
    torch.manual_seed(0)
    part = models.ChunkMemory(models.HierarchicalAttention(heads=4, chunks=2), chunk=16, heads=4)
    module, x = part.build(128).to(DEVICE), drawn(2, 200, 128)

    def step() -> list[Tensor]:
        out = module(x)
        gradients = torch.autograd.grad(out.square().sum(), [x, *module.parameters()])
        return [out.detach(), *gradients]  # a graph that is kept alive would belong to the stream that captured it

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    x.data.normal_()
    graph.replay()
    for mine, theirs in zip(captured, step(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)


@only_on_a_gpu
def test_memory_of_a_read_grows_with_the_length_and_holds_no_copies_of_chunks() -> None:
    part = models.ChunkMemory(models.HierarchicalAttention(heads=8, chunks=8), chunk=64, heads=8)
    module, peaks = part.build(256).to(DEVICE, torch.bfloat16), []
    for tokens in (32_768, 32_768, 65_536, 131_072):  # the first one also makes room for gradients of weights, and compiles
        x = torch.randn(1, tokens, 256, device=DEVICE, dtype=torch.bfloat16, requires_grad=True)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        module(x).float().square().sum().backward()
        peaks.append(torch.cuda.max_memory_allocated() - before)
    assert peaks[3] <= 2.2 * peaks[2] <= 2.2 * 2.2 * peaks[1], "with the length, not with its square"
    copies = 131_072 * 8 * 64 * 64 * 2  # of keys and values of 32 channels in 16 bits
    assert peaks[3] < copies / 2


# What Triton 3.6 asked for, compiled for compute capability 9.0: heads, tokens of a chunk, channels, type, bytes of a program.
ASKED_FOR_CHUNKS = [
    (8, 64, 32, torch.float32, 40_960),
    (8, 64, 128, torch.bfloat16, 65_536),
    (8, 128, 128, torch.float32, 196_608),
    (8, 256, 64, torch.float32, 212_992),
    (64, 64, 64, torch.bfloat16, 49_172),
]


@pytest.mark.parametrize(("heads", "size", "channels", "dtype", "asked"), ASKED_FOR_CHUNKS)
def test_chunks_that_a_gpu_has_no_room_for_are_left_alone(
    heads: int, size: int, channels: int, dtype: torch.dtype, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizes, "shared_memory", lambda device: asked - 1)
    assert not sizes.fits_chunks(heads, channels, size, dtype, DEVICE)
    monkeypatch.setattr(sizes, "shared_memory", lambda device: 227 * 1024)  # an H200's
    assert sizes.fits_chunks(heads, channels, size, dtype, DEVICE)
