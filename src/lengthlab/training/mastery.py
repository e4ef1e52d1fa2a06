"""When a phase is over that training itself ends, and when what it has is slipping: now and then a look at a question.

Looks change nothing of what is learned. The samples looked at are the same each time, and neither those that a run is measured
on at its end nor those that people watch it by.
"""

from __future__ import annotations

from itertools import accumulate

from torch import nn

from lengthlab.errors import RunFailed
from lengthlab.evaluation.accuracy import accuracy
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import Mastered, Phase
from lengthlab.spec.slips import Slips

SAMPLES = 200
SEED = 2
"""Of the samples: 0 is the measurement at the end, 1 what people watch."""


class Mastery:
    """`looks`: how many in a row were good enough. `spared`: steps of each phase that were not needed. `slipped`: whether the
    question that a phase is watched for was right too seldom at the last look.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.looks = 0
        self.spared = [0] * len(run.schedule.phases)
        self.slipped = False

    @property
    def ends(self) -> tuple[int, ...]:
        """After how many steps each phase was over, or will be at the latest."""
        return tuple(end - spared for end, spared in zip(self.run.ends, accumulate(self.spared), strict=True))

    def look(self, network: nn.Module, step: int) -> None:
        """After a step: end its phase if the question was right often enough, at so many looks in a row; see what slips."""
        clock = step + sum(self.spared)
        number = self.run.phase_at(clock - 1)
        phase, left = self.run.schedule.phases[number], self.run.ends[number] - clock
        goal, slips = phase.length, phase.slips
        if slips and step % slips.every == 0:
            self.slipped = self._right(network, slips, phase) < slips.accuracy
        if left == 0:
            self.looks = 0  # those of the next phase are its own
        elif isinstance(goal, Mastered) and step % goal.every == 0:
            self.looks = self.looks + 1 if self._right(network, goal, phase) >= goal.accuracy else 0
            if self.looks == goal.looks:
                self.looks, self.spared[number] = 0, left

    def _right(self, network: nn.Module, goal: Mastered | Slips, phase: Phase) -> float:
        """The share of the samples whose question was right, at the longest length of the phase or a multiple of it."""
        longest = (phase.lengths or self.run.lengths)[1]
        counts = accuracy(network, self.run.task_in(phase), [goal.times * longest], SAMPLES, SEED)
        for count in counts:
            if count.question == goal.question:
                return count.accuracy
        raise RunFailed(f"the phase waits for '{goal.question}', which none of {SAMPLES} samples asks: raise its share")
