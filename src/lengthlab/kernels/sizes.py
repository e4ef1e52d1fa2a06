"""What fits into the memory of a multiprocessor. The formulas are those of what Triton 3.6 was seen to ask for."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

ROWS = 16
"""Sequences that a program of the recurrence walks: the fewest that a matrix unit takes. On an H200, 16 took 2.3 ms forward and
backward at width 256 and 26 models at once 4.3 ms, against 2.9 and 4.7 ms with 32, 3.9 and 6.7 ms with 64."""
TILE = 64
"""Tokens of a document whose scores fit into one tile."""
CHUNK_ROWS = 32
"""Heads of queries that chose a chunk, worked on together for its gradient."""
BLOCK_NUMBERS = 1024
"""Numbers of all matrices that a program of the bilinear recurrence holds in its registers, of one token."""
PLENTY = 1 << 40


def factors_of(x: Tensor) -> str:
    """How the matrix units take the factors of a product: fp32 whole, unless torch's own products round them as well."""
    return "ieee" if x.dtype == torch.float32 and not torch.backends.cuda.matmul.allow_tf32 else "tf32"


@cache
def shared_memory(device: torch.device) -> int:
    """Bytes that one program may use; without limit in Triton's interpreter."""
    if device.type != "cuda":
        return PLENTY
    properties = torch.cuda.get_device_properties(device)
    return int(getattr(properties, "shared_memory_per_block_optin", 48 * 1024))


@cache
def channels_at_a_time(width: int, dtype: torch.dtype, device: torch.device) -> int | None:
    """How many of its channels the recurrence can compute at a time: as many as fit, at least 16, or none."""
    size = dtype.itemsize
    for channels in (64, 32, 16):
        channels = min(channels, width)
        forward = (4 * width * channels + ROWS * width) * size + 4 * ROWS * channels
        backward = 2 * (ROWS * width + width * channels) * size
        if max(forward, backward) <= shared_memory(device):
            return channels
    return None


def fits_recurrence(width: int, dtype: torch.dtype, device: torch.device) -> bool:
    return channels_at_a_time(width, dtype, device) is not None


def fits_attention(channels: int, longest: int, dtype: torch.dtype, device: torch.device) -> bool:
    asked = 5 * TILE * channels * dtype.itemsize + (4 * TILE**2 if dtype == torch.float32 else 0)
    return longest <= TILE and asked <= shared_memory(device)


def fits_chunks(heads: int, channels: int, size: int, dtype: torch.dtype, device: torch.device) -> bool:
    """Whether a chunk of `size` tokens and the heads that read it do; what its gradient takes is the most, and no less than
    what Triton 3.6 asked for, compiled for compute capability 9.0.
    """
    tokens, channels, rows = tile(size), tile(channels), max(CHUNK_ROWS, tile(heads))
    asked = 2 * (tokens * channels + rows * channels + rows * tokens) * dtype.itemsize + 64
    return max(asked, 8 * tokens * channels) <= shared_memory(device)


def fits_heads(channels: int) -> bool:
    """Whether a head of the sLSTM does: of a width that a matrix unit takes, with what is carried in registers."""
    return channels in (16, 32, 64)


def fits_blocks(size: int) -> bool:
    """Whether matrices of the bilinear recurrence do: of a size that Triton's blocks have, and at least one at a time.

    >>> [size for size in range(2, 65) if fits_blocks(size)]
    [2, 4, 8, 16, 32]
    """
    return size & (size - 1) == 0 and size**2 <= BLOCK_NUMBERS


def tile(number: int) -> int:
    """The smallest block of a matrix unit that so many rows fit into.

    >>> tile(3), tile(17), tile(64)
    (16, 32, 64)
    """
    return max(16, 1 << (number - 1).bit_length())
