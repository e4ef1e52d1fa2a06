"""Kernels for one GPU. Everything here has a plain equal in `models`, which is what runs where a kernel does not serve.

Shapes: N tokens of all documents, M of them with a query, B documents, D width, E = 2D, T tokens of the longest, F pairs.
Of a short convolution: T tokens, X of them with those before, W of its window.
Of the bilinear recurrence: B samples, T tokens, H blocks of S × S. Of the sLSTM: H heads of C channels, E = 4C for the gates.
Of hierarchical attention: M queries, each for P heads of C channels, E = 2C, K chunks that it reads, I chunks of S tokens.
"""

from __future__ import annotations

import re
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec

import torch
from torch import Tensor, nn

from lengthlab.kernels.sizes import fits_attention, fits_blocks, fits_chunks, fits_heads, fits_recurrence

VOCABULARY = 1024
"""The gradient of an embedding is a product with a matrix of tokens by vocabulary, so it must not be large."""
LINEAR_CHANNELS = 256
"""The most that flash-linear-attention takes for keys of the delta rule; asked of all keys and values."""
BESIDE = 4
"""Models side by side on one GPU from which on a padded batch goes through an LSTM by its kernel as well. On an H200, 64
samples of 1,024 tokens at width 256: a step of one model took 51 ms with the kernel and 17 ms with cuDNN, whose launches, two a
token and direction, nothing else overlaps; a step of each of four 58 ms and 61 ms.
"""
WINDOW = 8
"""Tokens of a short convolution, at the most."""
TYPES = (torch.float32, torch.bfloat16, torch.float16)


def serve_tokens(x: Tensor) -> bool:
    """Whether what treats tokens one by one has kernels for this: on a GPU, and of a width that Triton's blocks have."""
    return _on_gpu(x) and _is_power(x.shape[-1])


def serve_embedding(weight_VD: Tensor) -> bool:
    return len(weight_VD) <= VOCABULARY and serve_tokens(weight_VD)


def serve_recurrence(x_ND: Tensor) -> bool:
    """Whether the recurrence has one: for types of 16 bits, if its weights pass through a multiprocessor's memory in large
    enough pieces. The matrix units make no exact products in fp32: a step of attention-on-lstm took 65 ms with the kernel on
    an H200, where cuDNN's LSTM is 5 ms of it.
    """
    return serve_tokens(x_ND) and x_ND.dtype.itemsize == 2 and fits_recurrence(x_ND.shape[-1], x_ND.dtype, x_ND.device)


def serve_attention(q_MD: Tensor, heads: int, longest: int) -> bool:
    """Whether attention has one: for heads of 32, 64 or 128 channels and documents whose scores fit into one tile."""
    channels = q_MD.shape[-1] // heads
    return _on_gpu(q_MD) and channels in (32, 64, 128) and fits_attention(channels, longest, q_MD.dtype, q_MD.device)


def serve_chunks(x: Tensor, kv_ISE: Tensor, heads: int) -> bool:
    """Whether the read of hierarchical attention has one, for so many heads to a query: if a chunk and they fit into one
    program.
    """
    alike = x.dtype == kv_ISE.dtype and x.device == kv_ISE.device
    return _on_gpu(x) and alike and fits_chunks(heads, kv_ISE.shape[-1] // 2, kv_ISE.shape[-2], x.dtype, x.device)


def serve_memory(x: Tensor, channels: int, fades: bool) -> bool:
    """Whether a memory of keys and values has one (`flash_linear`), with so many channels at most: for types of 16 bits, where
    flash-linear-attention is installed. Its products of fp32 are rounded, so that these are left to PyTorch. One that fades
    has wrong gradients on a Hopper GPU with some versions of Triton, and the library refuses to make them.
    """
    fits = x.dtype.itemsize == 2 and channels <= LINEAR_CHANNELS
    return _on_gpu(x) and fits and _has_flash_linear() and not (fades and _fades_wrongly(x.device))


def serve_short_conv(x_BXD: Tensor, window: int) -> bool:
    """Whether a short convolution over samples that have tokens has one: for windows of which a program looks at all pairs."""
    return _on_gpu(x_BXD) and 0 < window <= WINDOW and x_BXD.numel() > 0


def serve_blocks(a_BTHSS: Tensor) -> bool:
    """Whether the bilinear recurrence has one: in fp32, in which it is walked whatever the model's type is."""
    return _on_gpu(a_BTHSS) and a_BTHSS.dtype == torch.float32 and fits_blocks(a_BTHSS.shape[-1])


def serve_heads(gates_BTHE: Tensor) -> bool:
    """Whether the sLSTM has one: in fp32, in which it is walked whatever the model's type is."""
    return _on_gpu(gates_BTHE) and gates_BTHE.dtype == torch.float32 and fits_heads(gates_BTHE.shape[-1] // 4)


def linear(x: Tensor, weight_ED: Tensor, bias_E: Tensor) -> Tensor:
    """As `F.linear`."""
    from lengthlab.kernels.products import Linear

    out: Tensor = Linear.apply(x.flatten(0, -2), weight_ED, bias_E)
    return out.view(*x.shape[:-1], len(weight_ED))


def embed(tokens: Tensor, weight_VD: Tensor) -> Tensor:
    """As `F.embedding`."""
    from lengthlab.kernels.products import Embedding

    out: Tensor = Embedding.apply(tokens.flatten(), weight_VD)
    return out.view(*tokens.shape, weight_VD.shape[1])


def add_norm(x: Tensor, f: Tensor, norm: nn.LayerNorm) -> Tensor:
    """norm(x + f)."""
    from lengthlab.kernels.norm import AddNorm

    weights = (norm.weight, norm.bias, norm.eps)
    with _device_of(x):
        out: Tensor = AddNorm.apply(x.flatten(0, -2), f.flatten(0, -2), *weights)
    return out.view(x.shape)


def scan_lstm(cell: nn.LSTM, x_ND: Tensor, start_B: Tensor, length_B: Tensor) -> Tensor:
    """h_ND of a one-layer LSTM over documents that lie one after the other."""
    from lengthlab.kernels.lstm_scan import Lstm

    bias_4D = cell.get_parameter("bias_ih_l0") + cell.get_parameter("bias_hh_l0")
    gates_in_N4D = linear(x_ND, cell.get_parameter("weight_ih_l0"), bias_4D)
    with _device_of(x_ND):
        h_ND: Tensor = Lstm.apply(gates_in_N4D, cell.get_parameter("weight_hh_l0"), start_B, length_B)
    return h_ND


def scan_padded_lstm(cell: nn.LSTM, x_BTD: Tensor) -> Tensor:
    """h_BTD of a one-layer LSTM over samples that are all as long."""
    B, T, D = x_BTD.shape
    length_B = torch.full((B,), T, device=x_BTD.device)
    return scan_lstm(cell, x_BTD.reshape(-1, D), T * torch.arange(B, device=x_BTD.device), length_B).view(B, T, D)


def convolve(x_BXD: Tensor, weight_WD: Tensor, bias_D: Tensor) -> Tensor:
    """out_BTD: SiLU of a causal convolution, channel by channel, over tokens of which the first W − 1 were read before."""
    from lengthlab.kernels.short_conv import ShortConv

    with _device_of(x_BXD):
        out_BTD: Tensor = ShortConv.apply(x_BXD, weight_WD, bias_D)
    return out_BTD


def scan_blocks(a_BTHSS: Tensor, first_BHS: Tensor) -> Tensor:
    """out_BTHS: h after every token of the bilinear recurrence, from the matrices of the tokens and the first h."""
    from lengthlab.kernels.bilinear_scan import BilinearScan

    with _device_of(a_BTHSS):
        out_BTHS: Tensor = BilinearScan.apply(a_BTHSS, first_BHS)
    return out_BTHS


def scan_heads(gates_BTHE: Tensor, mixing_HCE: Tensor, state_4BHC: Tensor) -> tuple[Tensor, Tensor]:
    """out_BTHC: h after every token of the sLSTM, from the input's part of its gates and the state before, h, c, n and m; and
    the state after them. No gradient goes through either state.
    """
    from lengthlab.kernels.slstm_scan import SLstmScan

    with _device_of(gates_BTHE):
        out_BTHC, after_4BHC = SLstmScan.apply(gates_BTHE, mixing_HCE, state_4BHC)
    return out_BTHC, after_4BHC


def attend(
    q_MD: Tensor,
    kv_NE: Tensor,
    angles: tuple[Tensor, Tensor],
    query_M: Tensor | None,
    start_B: Tensor,
    length_B: Tensor,
    heads: int,
    entmax: bool = False,
) -> Tensor:
    """out_MD of causal attention inside each document; `angles` are cosines and sines by position and pair of channels. Weights
    are a softmax, or 1.5-entmax.
    """
    from lengthlab.kernels.attention import DocumentAttention

    with _device_of(q_MD):
        out_MD: Tensor = DocumentAttention.apply(q_MD, kv_NE, angles, query_M, start_B, length_B, heads, entmax)
    return out_MD


def read_chunks(q_MPC: Tensor, kv_ISE: Tensor, row_MK: Tensor, weight_MK: Tensor) -> Tensor:
    """out_MPC: what each query reads in the chunks of these rows, softmax inside each, weighed by `weight_MK` in fp32."""
    from lengthlab.kernels.chunks import ChunkRead

    with _device_of(q_MPC):
        out_MPC: Tensor = ChunkRead.apply(q_MPC, kv_ISE, row_MK, weight_MK)
    return out_MPC


def _on_gpu(x: Tensor) -> bool:
    """A GPU, Triton, and a type that is what it says: autocast would change it between a kernel's forward and backward."""
    return x.is_cuda and x.dtype in TYPES and not torch.is_autocast_enabled("cuda") and _has_triton()


def _device_of(x: Tensor) -> AbstractContextManager[object]:
    """Triton launches on the current device, which need not be the tensor's."""
    return torch.cuda.device(x.device) if x.is_cuda else nullcontext()


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None


@cache
def _has_flash_linear() -> bool:
    found = find_spec("fla")
    return found is not None and found.origin is not None  # any folder of that name is found, too, and has no origin


@cache
def _fades_wrongly(device: torch.device) -> bool:
    """Issue 640 of flash-linear-attention: a Hopper GPU, and Triton from 3.4 on, before 3.7.1."""
    numbers = tuple(int(number) for number in re.findall(r"\d+", version("triton"))[:3])
    return torch.cuda.get_device_capability(device)[0] == 9 and (3, 4) <= numbers < (3, 7, 1)


def _is_power(number: int) -> bool:
    return number >= 16 and number & (number - 1) == 0
