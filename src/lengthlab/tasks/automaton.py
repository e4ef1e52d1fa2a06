"""Finite automata as data: which symbols may follow what was read, and how many strings there are.

Shapes: K symbols that are still to come, S states, A symbols.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import gcd

import torch
from torch import Tensor

from lengthlab.errors import require

END = "$"
NOWHERE = -1
BEAM = 32


@dataclass(frozen=True)
class Automaton:
    """`moves[state][symbol]` is the next state, or -1 where no string of the language goes on like that. It begins in state 0,
    and a string may end in a state of `accepting`.

    >>> pairs = Automaton("ab", moves=((1, -1), (-1, 0)), accepting=(0,))  # (ab)*
    >>> pairs.after("aba"), pairs.after("abab")
    (('{b}', '{a$}', '{b}'), ('{b}', '{a$}', '{b}', '{a$}'))
    """

    symbols: tuple[str, ...]
    moves: tuple[tuple[int, ...], ...]
    accepting: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "symbols", tuple(self.symbols))
        object.__setattr__(self, "moves", tuple(map(tuple, self.moves)))
        object.__setattr__(self, "accepting", tuple(self.accepting))
        distinct = len(self.symbols) == len(set(self.symbols)) >= 1 and all(self.symbols) and END not in self.symbols
        require(distinct, f"automaton.symbols must be words that differ, none of them '{END}', not {list(self.symbols)}")
        states, each = len(self.moves), len(self.symbols)
        for state, row in enumerate(self.moves):
            fits = len(row) == each and all(NOWHERE <= there < states for there in row)
            told = f"automaton.moves of state {state} must be {each} states, one by symbol, from -1 (none) to {states - 1}"
            require(fits, f"{told}, not {list(row)}")
        known = all(0 <= state < states for state in self.accepting)
        require(known, f"automaton.accepting must be states from 0 to {states - 1}, not {list(self.accepting)}")
        endless = self.moves and self.live[0] and self._strings(states)[0] > 0
        require(bool(endless), "the automaton's language must have strings of any length, and its longest is too short")

    @cached_property
    def live(self) -> tuple[bool, ...]:
        """The states from which a string can come to its end."""
        live = set(self.accepting)
        for _ in self.moves:
            live |= {state for state, row in enumerate(self.moves) if live & set(row)}
        return tuple(state in live for state in range(len(self.moves)))

    def move(self, state: int, symbol: int) -> int:
        """The next state, if a string of the language can go on like that."""
        there = self.moves[state][symbol]
        return there if there != NOWHERE and self.live[there] else NOWHERE

    def follows(self, state: int) -> str:
        """The set of what may follow, the end included, as one word."""
        may = [symbol for number, symbol in enumerate(self.symbols) if self.move(state, number) != NOWHERE]
        return f"{{{''.join(may)}{END if state in self.accepting else ''}}}"

    @property
    def sets(self) -> tuple[str, ...]:
        """Every set that may be asked for, once."""
        return tuple(dict.fromkeys(self.follows(state) for state, live in enumerate(self.live) if live))

    def after(self, symbols: Sequence[str]) -> tuple[str, ...]:
        """What may follow each symbol of a string."""
        state, found = 0, []
        for symbol in symbols:
            state = self.move(state, self.symbols.index(symbol))
            require(state != NOWHERE, f"'{''.join(symbols)}' is not the beginning of a string of the language")
            found.append(self.follows(state))
        return tuple(found)

    def _strings(self, length: int) -> list[int]:
        """How many beginnings of that length there are from each state."""
        numbers = [int(live) for live in self.live]
        for _ in range(length):
            numbers = [sum(numbers[there] for there in self._next(state)) for state in range(len(self.moves))]
        return numbers

    def _next(self, state: int) -> list[int]:
        moves = (self.move(state, symbol) for symbol in range(len(self.symbols)))
        return [there for there in moves if there != NOWHERE]

    def likeliest(self, length: int) -> float:
        """How often the commonest answer is right: the share of the beginnings of that length that have the same sets.

        Answers grow set by set. Of each is kept how many strings have it, by the state they are in: as the smallest numbers of
        that proportion, and how often these. Only the 32 answers with most strings go on, so that a better one may be missed.
        """
        kept = {tuple(int(state == 0) for state in range(len(self.moves))): 1}
        for _ in range(length):
            grown: dict[tuple[int, ...], int] = {}
            for numbers, times in kept.items():
                for more in self._grown(numbers):
                    least = gcd(*more)
                    shape = tuple(number // least for number in more)
                    grown[shape] = max(grown.get(shape, 0), times * least)
            kept = dict(sorted(grown.items(), key=_strings_of, reverse=True)[:BEAM])
        return max(map(_strings_of, kept.items())) / self._strings(length)[0]

    def _grown(self, numbers: Sequence[int]) -> Iterable[Sequence[int]]:
        """For each set that may come next, how many strings are in each state then."""
        by_set: dict[str, list[int]] = {}
        for state, number in enumerate(numbers):
            for there in self._next(state) if number else ():
                by_set.setdefault(self.follows(there), [0] * len(numbers))[there] += number
        return by_set.values()


def _strings_of(kept: tuple[Sequence[int], int]) -> int:
    numbers, times = kept
    return sum(numbers) * times


@lru_cache(maxsize=64)
def even_bounds(automaton: Automaton, longest: int) -> Tensor:
    """bound_KSA, on the CPU: a random number from 0 to 1 draws the first symbol whose bound is above it, and then every
    beginning of K symbols from a state comes alike. Row 0 is not used.

    >>> pairs_or_not = Automaton("ab", moves=((0, 1), (-1, 0)), accepting=(0,))
    >>> even_bounds(pairs_or_not, 2)[2, 0].tolist()  # aa, ab; bb
    [0.6666666865348816, 1.0]
    """
    live_S = torch.tensor(automaton.live, dtype=torch.float64, device="cpu")
    moves = [[automaton.move(state, symbol) for symbol in range(len(automaton.symbols))] for state in range(len(live_S))]
    move_SA = torch.tensor(moves, device="cpu")
    bounds, weight_S = [torch.ones_like(move_SA, dtype=torch.float64)], live_S
    for _ in range(longest):
        ways_SA = weight_S[move_SA.clamp(min=0)] * (move_SA != NOWHERE)
        sum_SA = ways_SA.cumsum(dim=1)
        bounds.append(sum_SA / sum_SA[:, -1:].clamp(min=torch.finfo(torch.float64).tiny))
        weight_S = sum_SA[:, -1] / sum_SA[:, -1].max()
    return torch.stack(bounds).float()
