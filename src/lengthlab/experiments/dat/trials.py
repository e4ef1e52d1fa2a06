"""The cells of the paper and the runs that give them their numbers."""

from __future__ import annotations

from collections.abc import Sequence

from lengthlab.errors import LabError, nearest
from lengthlab.experiments.dat.profile import SHORT, Profile
from lengthlab.experiments.dat.readings import run_of_reading
from lengthlab.experiments.dat.runs import run_of
from lengthlab.experiments.trial import Trial
from lengthlab.paper.cells import CELLS, PARTS
from lengthlab.paper.readings import READINGS
from lengthlab.run import Run


def dat(seeds: Sequence[int] = (0,), profile: Profile = SHORT) -> list[Run]:
    """The paper: 7 architectures on recall, modulo and both, end to end, and 5 hybrids with delayed attention.

    Claim: trained on n = 1…25, the LSTM keeps modulo to n = 100 but recalls poorly, and whatever has attention recalls but
    loses modulo soon after n = 25. With attention delayed, all five hybrids have both questions right in more than 0.90 of
    the samples at n = 75.

    Cost: 26 runs a seed. The command says how long they take on your machine before it starts.
    Command: lengthlab reproduce dat
    """
    return [trial.run for trial in trials(tuple(PARTS), seeds, profile)]


def trials(parts: Sequence[str] = tuple(PARTS), seeds: Sequence[int] = (0,), profile: Profile = SHORT) -> list[Trial]:
    """What is trained for these parts: `table1`, `table2`, `figure1`, `readings`.

    >>> len(trials()), len(trials(["table1"], seeds=[0, 1]))
    (26, 14)
    """
    known = (*PARTS, "readings")
    for part in parts:
        if part not in known:
            raise LabError(f"unknown part '{part}'; {nearest(part, known)}")
    found = [Trial(cell, run_of(cell, seed, profile)) for seed in seeds for cell in CELLS if cell.part in parts]
    if "readings" in parts:
        found += [Trial(reading.cell, run_of_reading(reading, seed, profile)) for seed in seeds for reading in READINGS]
    return found
