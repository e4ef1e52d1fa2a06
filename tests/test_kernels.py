"""Kernels give what plain PyTorch gives, forward and backward: on a GPU for real, elsewhere in Triton's interpreter."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from lengthlab import kernels, models
from lengthlab.device import settled
from lengthlab.kernels import sizes
from lengthlab.models.layout import Documents, Layout
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


def test_the_recurrence_is_an_lstm_over_each_document() -> None:
    lengths = [1, 1, 2, 3, 5, 5, 8, *range(9, 21)]  # more documents than one program takes
    documents = Documents(lengths, DEVICE)
    cell = nn.LSTM(16, 16, batch_first=True, device=DEVICE)
    x = drawn(sum(lengths), 16)
    apart = torch.cat([cell(piece[None])[0][0] for piece in x.split(lengths)])
    assert_same(kernels.scan_lstm(cell, x, documents.start_B, documents.length_B), apart, x, *cell.parameters())


@pytest.mark.parametrize("name", ["transformer", "attention-on-lstm", "hybrid-block"])
@pytest.mark.parametrize("choices", [{}, {"positions": "none", "scores": "log-n"}])
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
    with_kernels = network(*row)
    found = grads(with_kernels, *network.parameters())
    monkeypatch.setattr(kernels, "_on_gpu", lambda x: False)
    plain = network(*row)
    torch.testing.assert_close(with_kernels, plain, rtol=1e-4, atol=1e-5)
    for mine, theirs in zip(found, grads(plain, *network.parameters()), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-4)


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
