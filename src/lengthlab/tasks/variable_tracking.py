"""Variable tracking: chains of assignments in noise; asked is the value at the end of one.

    <bos> x <var> V4 7 x x <var> V9 V4 x <var> V2 5 x ... <var> V1 V9 x ... x <query> V1 7        V1 = V9 = V4 = 7: 2 hops

After RULER (Hsieh et al., arXiv 2404.06654), where a chain begins with a number, every other variable is given the one before
it, and assignments stand in the order of their chain. RULER asks for all variables that have a value; here the value of a
chain's last variable is asked, which is `hops` steps away, so that nothing but following them finds it. With one chain the
only value there would do, so that there are two chains or more, of equal length and mixed in any order. (Hu et al., arXiv
2504.16795, have 2 hops.) The chain may be `written` out on the way to its value, `<query> V1 V9 V4 7`: each token of the answer
is then one assignment away from the token before it.

Shapes: B samples, C chains of S assignments, K = C × S of them in all, Q tokens of the tail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Generator, Tensor

from lengthlab.errors import require, require_whole
from lengthlab.tasks.haystack import FIRST, MOST, PIECE, QUERY, Haystack
from lengthlab.tasks.task import Guess
from lengthlab.tasks.transduction import distinct


@dataclass(frozen=True)
class VariableTracking(Haystack):
    """Variables that are given one another in noise; asked is the value that a chain began with; n counts all tokens.

    `chains` of `hops` steps each after the first assignment, their names of `variables`, what they begin with of `values`. If
    they are `written`, an answer names the other variables of its chain before the value.

    >>> task = VariableTracking(noise=3, hops=1, chains=2)
    >>> batch = task.sample(1, (20, 20), torch.Generator().manual_seed(0))
    >>> " ".join(task.decode(batch.tokens_BT[0]))
    '<bos> b <var> V12 9 c <var> V3 9 <var> V2 V12 c b <var> V18 V3 <query> V18 9'
    """

    hops: int = 2
    chains: int = 4
    variables: int = 26
    values: int = 10
    written: bool = field(default=False, metadata={"added": "0.3"})

    name = "variable-tracking"
    opening = "<var>"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_whole(self.hops, "task.hops", 1, MOST)
        require_whole(self.chains, "task.chains", 2, MOST)
        require_whole(self.variables, "task.variables", 1)
        require_whole(self.values, "task.values", 2)
        need = f"{self.chains} chains of {self.hops} hops have {self.sizes[0]} variables"
        require(
            self.sizes[0] <= self.variables, f"{need}, and there are {self.variables}: task.variables; take fewer hops or more"
        )
        self.check_words("values" if self.values > self.variables else "variables")

    @property
    def symbols(self) -> tuple[str, ...]:
        return (*map(str, range(self.values)), *(f"V{variable}" for variable in range(self.variables)))

    @property
    def sizes(self) -> tuple[int, int, int]:
        return self.chains * (1 + self.hops), 3, 3 + self.hops * self.written

    @property
    def answered(self) -> Sequence[int]:
        return range(2, self.sizes[2])

    def chance(self, length: int) -> Mapping[str, float]:
        return {self.name: 1 / self.values / float(self.variables) ** (self.hops * self.written)}

    def hide(self, size: int, generator: Generator) -> tuple[Tensor, Tensor]:
        device, steps, number = generator.device, 1 + self.hops, self.sizes[0]
        name_BCS = FIRST + self.values + distinct(size, self.variables, number, generator).view(size, self.chains, steps)
        value_BC1 = FIRST + torch.randint(self.values, (size, self.chains, 1), generator=generator, device=device)
        given_BCS = torch.cat([value_BC1, name_BCS[:, :, :-1]], dim=2)
        # Any order of all assignments says which chain is next; of that, it is the next step.
        chain_BK = distinct(size, number, number, generator) // steps
        step_BCS = chain_BK.argsort(dim=1, stable=True).view(size, self.chains, steps)  # where each step of a chain stands
        at_BK = step_BCS.flatten(1).argsort(dim=1)  # and which step stands there
        pieces = [torch.full_like(at_BK, PIECE), name_BCS.flatten(1).gather(1, at_BK), given_BCS.flatten(1).gather(1, at_BK)]
        asked_B1 = torch.randint(self.chains, (size, 1), generator=generator, device=device)
        chain_BS = torch.cat([value_BC1, name_BCS], dim=2).take_along_dim(asked_B1[:, :, None], dim=1)[:, 0].flip(1)
        said_BQ = chain_BS[:, 1:] if self.written else chain_BS[:, -1:]
        tail = [torch.full_like(asked_B1, QUERY), chain_BS[:, :1], said_BQ]
        return torch.stack(pieces, dim=2), torch.cat(tail, dim=1)

    def solve(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        given = self._given(words)
        said = [given[self._asked(words)]]
        while said[-1] in given:
            said.append(given[said[-1]])
        return {self.name: tuple(said if self.written else said[-1:])}

    def _asked(self, words: Sequence[str]) -> str:
        return words[list(words).index("<query>") + 1]

    def _given(self, words: Sequence[str]) -> dict[str, str]:
        return {words[at + 1]: words[at + 2] for at, word in enumerate(words) if word == "<var>"}

    @property
    def guesses(self) -> Mapping[str, Guess]:
        return {"the last value that was given": self._last_value}

    def _last_value(self, words: Sequence[str]) -> dict[str, tuple[str, ...]]:
        value = [given for given in self._given(words).values() if not given.startswith("V")][-1]
        return {self.name: (*[self._asked(words)] * (self.hops * self.written), value)}
