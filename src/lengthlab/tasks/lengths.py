"""How long the sequences of a batch are.

Shapes: B samples.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor


def spread(size: int, lengths: tuple[int, int], generator: Generator) -> Tensor:
    """n_B, on the CPU, ascending, evenly over a range with both ends included.

    A batch of at least one sample for each length has every length as often as every other (give or take one), and is the
    same each time: its tokens can be laid out once for all steps. A smaller one draws a length from each of `size` equal
    slices of the range.

    >>> spread(6, (1, 3), Generator()).tolist()
    [1, 1, 2, 2, 3, 3]
    """
    shortest, longest = lengths
    span = longest - shortest + 1
    place_B = torch.arange(size, device="cpu")
    if size >= span:
        return shortest + place_B * span // size
    inside_B = torch.rand(size, generator=generator, device=generator.device).cpu()
    return (shortest + ((place_B + inside_B) * span / size).long()).clamp(max=longest)
