"""Minesweeper on a square board, two position ids a token: row and column (Cho et al. 2024, arXiv 2405.20671).

    <bos> M . . M  =  M 2 2 M  <end>        a board of 2 × 2, row by row; then, where no mine is, how many lie around it
     0,0  2,2 2,3 3,2 3,3  1,1  2,2 2,3 3,2 3,3  0,0        coupled: a square has the same ids both times; here they start at 1

Shapes: B samples, N rows or columns of the largest board, S squares of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from lengthlab.errors import require_number
from lengthlab.tasks.batch import Batch
from lengthlab.tasks.coupling import Coupled
from lengthlab.tasks.pieces import Piece, mark, write

BOS, END, EQUALS, EMPTY, MINE, ZERO = 1, 2, 3, 4, 5, 6


@dataclass(frozen=True)
class Minesweeper(Coupled):
    """A board of n × n squares, each of them a mine with probability `mines`; asked is how many lie around every other square.

    The ids of rows and of columns start at numbers of their own.

    >>> Minesweeper().solve("<bos> M . . M = M 2 2 M <end>".split())
    {'board': ('M', '2', '2', 'M', '<end>')}
    """

    mines: float = 0.2

    name = "minesweeper"
    questions = ("board",)
    words = ("<pad>", "<bos>", "<end>", "=", ".", "M", *"012345678")

    def __post_init__(self) -> None:
        require_number(self.mines, "task.mines", above=0, below=1)
        super().__post_init__()

    def chance(self, length: int) -> dict[str, float]:
        """Every board has an answer of its own, so the likeliest is that of the likeliest board: all mines, or none."""
        return {"board": max(self.mines, 1 - self.mines) ** (length * length)}

    def tokens(self, length: int) -> int:
        return 2 * length * length + 3

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        longest, n_B = int(n_B.max()), n_B.to(generator.device)
        place_S = torch.arange(longest * longest, device=n_B.device)
        row_BS, column_BS = place_S // n_B[:, None], place_S % n_B[:, None]  # a smaller board is written without gaps
        square_BS = (row_BS * longest + column_BS).clamp(max=longest * longest - 1)
        inside_N = torch.arange(longest, device=n_B.device)
        inside_BNN = (inside_N[:, None] < n_B[:, None, None]) & (inside_N < n_B[:, None, None])
        share_BNN = torch.rand(len(n_B), longest, longest, generator=generator, device=generator.device)
        mine_BNN = (share_BNN < self.mines) & inside_BNN
        mine_BS, around_BS = (x.flatten(1).gather(1, square_BS) for x in (mine_BNN.long(), _around(mine_BNN)))
        start_BK = torch.stack([self.starts(n_B, generator) if self.placed else n_B for _ in range(2)], dim=1)
        position_BSK = start_BK[:, None] + 1 + torch.stack((row_BS, column_BS), dim=2)
        read = [
            mark(BOS, n_B),
            Piece(torch.where(mine_BS > 0, MINE, EMPTY), n_B * n_B, position_BSK),
            mark(EQUALS, n_B, start_BK),
        ]
        answer = [Piece(torch.where(mine_BS > 0, MINE, around_BS + ZERO), n_B * n_B, position_BSK), mark(END, n_B)]
        return write(read, answer, "board", self.placed)

    def solve(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        board = words[1 : words.index("=")]
        side = isqrt(len(board))
        mines = {divmod(square, side) for square, word in enumerate(board) if word == "M"}
        said = []
        for square, word in enumerate(board):
            row, column = divmod(square, side)
            near = sum((row + down, column + right) in mines for down in (-1, 0, 1) for right in (-1, 0, 1))
            said.append("M" if word == "M" else str(near))
        return {"board": (*said, "<end>")}


def _around(mine_BNN: Tensor) -> Tensor:
    """How many of the eight squares around each have a mine; on a mine, it counts, too."""
    padded = F.pad(mine_BNN.long(), (1, 1, 1, 1))
    rows = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
    return rows[:, :, :-2] + rows[:, :, 1:-1] + rows[:, :, 2:]
