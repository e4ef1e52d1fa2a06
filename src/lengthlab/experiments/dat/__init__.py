"""The paper of delayed attention training: 7 architectures on recall, modulo and both, and 5 hybrids with delayed attention.

Claim: trained on n = 1…25, the LSTM keeps modulo to n = 100 but recalls poorly, and whatever has attention recalls but loses
modulo soon after n = 25. With attention delayed, all five hybrids have both questions right in more than 0.90 of the samples at
n = 75.

Cost: 26 runs a seed (14 more with --part readings). The command says how long they take on your machine before it starts.
Command: lengthlab reproduce dat
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lengthlab.experiments.dat.arms import ARMS as ARMS
from lengthlab.experiments.dat.arms import DELAYED as DELAYED
from lengthlab.experiments.dat.arms import FIGURE1, LENGTHS, TABLE1, TABLE2, TRAINED
from lengthlab.experiments.dat.claims import CLAIMS
from lengthlab.experiments.dat.readings import READINGS
from lengthlab.experiments.dat.reference import REFERENCE
from lengthlab.experiments.size import Size
from lengthlab.experiments.study import Arm, Section, Study
from lengthlab.store.rows import ALL

if TYPE_CHECKING:
    from lengthlab.spec.run import Run


def run(arm: Arm, size: str) -> Run:
    """The run of an arm in the profile of that name."""
    from lengthlab.experiments.dat.runs import run_at

    return run_at(arm, size)


DAT = Study(
    name="dat",
    title="The paper, reproduced",
    question="Does a hybrid that is trained with delayed attention keep both skills beyond its training length?",
    run=run,
    sizes=(Size("short", TRAINED, LENGTHS), Size("paper", TRAINED, LENGTHS)),
    sections=(
        Section("table1", "Table 1: recall", TABLE1, questions=(ALL,)),
        Section("table2", "Table 2: modulo", TABLE2, questions=(ALL,)),
        Section("figure1", "Figure 1: modulo-recall", FIGURE1, questions=(ALL,)),
        Section(
            "readings",
            "Readings",
            tuple(reading.arm for reading in READINGS),
            "What the paper leaves open, read in several ways: how many LSTMs the hybrid block has, what is off while "
            "attention is delayed, what the recurrence is asked then. Delayed, modulo-recall. At size short the first line "
            "of each model is the reading of Figure 1; here all are trained by one recipe, the plainest, so that nothing "
            "but the reading differs.",
            questions=(ALL, "modulo", "recall"),
            usual=False,
        ),
    ),
    seeds=1,
    claims=CLAIMS,
    reference=REFERENCE,
    note="`--size short` is the cheapest schedule found that shows the claims, `--size paper` is the paper's own.",
    about=__doc__,
    page="docs/results.md",
)
