"""Formal languages: after every symbol, what may come next?

    <bos> a   a    b   b    a  <eos>              of D2
          {ab}{b}{ab} {a$} {ab}                   to be said after each symbol; $ is the end of the string

The Tomita languages, D2, D3, D4, D12, (aa)*, (aaaa)* and (abab)* of Huang et al.'s formal suite (arXiv 2410.02140), there
after Bhattamishra et al. (arXiv 2009.11264): of each beginning of a string, the set of symbols that may follow, the end among
them. Every set that occurs is a word. It is a label of what was read, and not part of the sequence: written between the
symbols, the sets would tell the state to whoever reads on. A sample is right if every set of it is, as in the paper.

A length n counts the symbols. Samples: each beginning of n symbols that some string of the language has comes alike. The
paper's generators draw whole strings instead, in ways that differ from language to language. They leave the end out of the
sets of Tomita 1 to 4 and 7, ask Tomita 5 and 6 for membership alone, which comes to the same, and take for lost what is not in
Tomita 3 yet: an odd number of zeros after an odd number of ones, which can still become even.

Where a language has one beginning of each length, as Tomita 1 and 2 and the last three have, whoever knows n knows the answer:
chance is 1, and what is learned is to tell positions apart.

Shapes: B samples, N symbols of the longest string, T tokens, S states, A symbols.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from lengthlab.errors import require, require_whole
from lengthlab.tasks.automaton import Automaton, even_bounds
from lengthlab.tasks.batch import IGNORE, Batch
from lengthlab.tasks.task import Task

MARKS = ("<pad>", "<bos>", "<eos>")
BOS, EOS, FIRST = 1, 2, 3


@dataclass(frozen=True)
class Language(Task):
    """What may follow each symbol of a string: the language is that of an automaton, ours or your own.

    >>> task = dyck(2)
    >>> batch = task.sample(1, (5, 5), torch.Generator().manual_seed(1))
    >>> words = task.decode(batch.tokens_BT[0])
    >>> " ".join(words), task.solve(words)
    ('<bos> a a b b a <eos>', {'next': ('{ab}', '{b}', '{ab}', '{a$}', '{ab}')})
    """

    automaton: Automaton
    name: str = "language"  # serves the abstract property

    questions = ("next",)
    labels = True

    def __post_init__(self) -> None:
        told = f"the symbols of language '{self.name}' must not be among {', '.join((*MARKS, *self.automaton.sets))}"
        require(not set(self.automaton.symbols) & {*MARKS, *self.automaton.sets}, told)

    @property
    def words(self) -> tuple[str, ...]:
        return (*MARKS, *self.automaton.symbols, *self.automaton.sets)

    def chance(self, length: int) -> Mapping[str, float]:
        return {"next": self.automaton.likeliest(length)}

    def tokens(self, length: int) -> int:
        return length + 2

    def draw(self, n_B: Tensor, generator: Generator) -> Batch:
        device, size, longest = generator.device, len(n_B), int(n_B.max())
        symbol_BN, state_BN = self._strings(n_B, generator)
        n_B1, place_N = n_B.to(device)[:, None], torch.arange(longest, device=device)
        tokens_BT = torch.full((size, longest + 2), self.pad, device=device)
        tokens_BT[:, 0] = BOS
        tokens_BT[:, 1:-1] = (symbol_BN + FIRST).where(place_N < n_B1, self.pad)
        tokens_BT.scatter_(1, n_B1 + 1, EOS)
        words = self.words
        states = range(len(self.automaton.moves))
        sets = [words.index(self.automaton.follows(state)) if self.automaton.live[state] else IGNORE for state in states]
        set_S = torch.tensor(sets, device=device)
        target_BT = torch.full_like(tokens_BT, IGNORE)
        target_BT[:, 1:-1] = set_S[state_BN].where(place_N < n_B1, IGNORE)
        return Batch(tokens_BT, {"next": target_BT}, n_B1[:, 0] + 2)

    def _strings(self, n_B: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
        """symbol_BN, and the state after each of them."""
        device, size, longest = generator.device, len(n_B), int(n_B.max())
        bound_KSA = even_bounds(self.automaton, longest).to(device)[:, :, :-1]  # whatever is left is the last symbol
        move_SA = torch.tensor(self.automaton.moves, device=device)
        uniform_NB1 = torch.rand(longest, size, 1, generator=generator, device=device)
        left_NB = (n_B.to(device) - torch.arange(longest, device=device)[:, None]).clamp(min=1)
        state_B = torch.zeros(size, dtype=torch.long, device=device)
        symbols, states = [], []
        for uniform_B1, left_B in zip(uniform_NB1, left_NB, strict=True):
            symbol_B = (uniform_B1 >= bound_KSA[left_B, state_B]).sum(dim=1)
            state_B = move_SA[state_B, symbol_B]
            symbols.append(symbol_B)
            states.append(state_B)
        return torch.stack(symbols, dim=1), torch.stack(states, dim=1)

    def solve(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        return {"next": self.automaton.after(words[1:-1])}


def repeated(word: str) -> Language:
    """(word)*: the same word again and again, its letters the symbols.

    >>> repeated("ab").name, repeated("ab").words
    ('(ab)*', ('<pad>', '<bos>', '<eos>', 'a', 'b', '{a$}', '{b}'))
    """
    require(len(word) > 0, "a word that is repeated has at least one letter")
    symbols = tuple(dict.fromkeys(word))
    moves = [tuple((state + 1) % len(word) if each == symbol else -1 for each in symbols) for state, symbol in enumerate(word)]
    return Language(Automaton(symbols, tuple(moves), accepting=(0,)), f"({word})*")


def dyck(depth: int) -> Language:
    """Brackets a and b, nested to a depth at most: D0 is empty, and D(n) is (a D(n-1) b)*.

    >>> dyck(1).automaton == repeated("ab").automaton
    True
    """
    require_whole(depth, "task.depth", 1, 1000)
    moves = [(level + 1 if level < depth else -1, level - 1) for level in range(depth + 1)]
    return Language(Automaton(("a", "b"), tuple(moves), accepting=(0,)), f"D{depth}")
