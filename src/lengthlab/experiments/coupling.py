"""Position coupling: addition from 30 digits to 200 and beyond, because digits of one significance share a position.

Claim: trained on sums of 1…30 digits, one layer with coupled positions has the whole sum right in at least 0.95 of the samples
at 200 digits, in the median of four seeds, as in *Position Coupling*; with positions of its own for every token, with none, or
with index hints it has not. Copy and reverse, coupled, go from 40 letters to 300.

Ours and theirs: one layer of 4 heads, width 512, AdamW with betas .9 and .95, no decay, gradients clipped to 1, a cosine to a
tenth. **Scores are log-n, theirs are plain**, and one arm has plain ones: ids that are further apart than a training sample is
long never meet in training, some heads give a little weight to each of them, and in a long sum there are many. (On seed 100,
after 8,000 steps with a table of 270, sums of 200 digits were right in 0.95 of the samples with log-n scores and in 0.24 with
plain ones; two heads, one head and weight decay were worse, a table that begins three times as large had 0.40. With plain
scores, 24,000 steps gave 0.68 to 0.84.) 24,000 steps of 256 fresh samples at 5e-4 for addition, theirs 50,000 of 1,000 out of a
million at 1e-4 (on seeds 102 and 103, 24,000 gave 0.98 and 1.00 at 200 digits; an earlier recipe of 12,000 was trained on seeds
0 and 1, gave 0.95 and 0.94, and was replaced); multiplication has 2 layers, theirs 1 to 4; one seed decides weights and data,
theirs are 4 × 2. Tables of coupled positions are longer than the longest sequence by twice what training takes, and measured
sequences lie in their middle; theirs are as long as that sequence, which starts at 1.

Cost: 5 runs a seed of 24,000 steps for addition (about 40 s each on one H200), 6 of 6,000 for copy and reverse (13 s), 2 of
12,000 for multiplication and 2 of 8,000 for minesweeper (gpu); 5 small ones a seed, a few
minutes each on one core (cpu: n = 1…12, measured to 30; there, vectors of ids begin orthogonal to each other), 2 more, measured
to 40 letters, with `--part small-copying`.
Command: lengthlab reproduce coupling
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lengthlab.experiments.decoder import rows_for, task_named
from lengthlab.experiments.size import Size
from lengthlab.experiments.study import Arm, Check, Claim, Section, Study

if TYPE_CHECKING:
    from lengthlab.models import Model
    from lengthlab.spec.run import Run

GPU = Size("gpu", (1, 30), (30, 60, 100, 200, 300, 500), gpu=True)
CPU = Size("cpu", (1, 12), (12, 16, 20, 25, 30))
SMALL_COPIES = Size("cpu", (1, 12), (12, 20, 30, 40))
COPIES = Size("gpu", (1, 40), (40, 80, 150, 200, 300), gpu=True)
PRODUCTS = Size("gpu", (1, 40), (40, 80, 120, 160, 200), gpu=True)
BOARDS = Size("gpu", (5, 9), (5, 7, 9, 10, 11, 12, 13, 14, 15), gpu=True)
SUCCESS = 0.95
"""The bar of the claims, at the end of the training range."""
WAYS = {
    "coupled": ("coupled", "log-n"),
    "plain": ("coupled", "plain"),
    "absolute": ("one a token, random start", "log-n"),
    "none": ("none", "log-n"),
    "hints": ("none, index hints", "log-n"),
}
"""How tokens are placed and what attention's scores are, as a reader knows it."""


@dataclass(frozen=True)
class Ids:
    """The rows of a table of coupled positions, and the one at which a sequence starts when it is measured. In training rows
    near either end are met less often than others, so that the longest sequence keeps away from both by as many as training
    takes.
    """

    number: int
    start: int


@dataclass(frozen=True)
class Recipe:
    """T5's decoder and how it is trained: up to `peak` over a hundredth of the steps, then along a cosine to a tenth."""

    size: Size
    blocks: int
    heads: int
    width: int
    steps: int
    batch: int
    peak: float = 5e-4
    tables: int = 1
    orthogonal: bool = False

    def run(self, task: str, way: str, ids: Ids) -> Run:
        from lengthlab.spec.optimizer import AdamW
        from lengthlab.spec.rate import Cosine
        from lengthlab.spec.run import Run
        from lengthlab.spec.schedule import end_to_end

        coupled = {"positions": "coupled", "ids": ids.number, "start": ids.start}
        hints = {"hints": True, "ids": ids.number, "start": ids.start}
        placed: dict[str, dict[str, Any]] = {"coupled": coupled, "plain": coupled, "hints": hints}
        made = task_named(task, PARAMETERS.get(task, {}) | placed.get(way, {}))
        rows = {"coupled": ids.number, "plain": ids.number, "absolute": rows_for(made, self.size)}.get(way, 0)
        rate = Cosine(self.peak, self.steps // 100, last=self.peak / 10)
        optimizer = AdamW(beta2=0.95, decay=0.0, clip=1.0)
        model = self._model(rows, self.tables if way == "coupled" else 1, "none" if way == "plain" else "log-n")
        return Run(made, model, end_to_end(self.steps, lr=rate), self.size.trained, self.batch, optimizer=optimizer)

    def _model(self, rows: int, tables: int, scores: str) -> Model:
        from lengthlab.models import t5_decoder

        return t5_decoder(
            self.width,
            self.blocks,
            self.heads,
            position_ids=rows,
            tables=tables,
            scores=scores,
            orthogonal=self.orthogonal,
        )


SUMS = Recipe(GPU, blocks=1, heads=4, width=512, steps=24_000, batch=256)
RECIPES = {
    "addition": SUMS,
    "copy": Recipe(COPIES, 1, 4, 512, 6_000, 256),
    "reverse": Recipe(COPIES, 1, 4, 512, 6_000, 256),
    "multiplication": Recipe(PRODUCTS, 2, 8, 512, 12_000, 256),
    "minesweeper": Recipe(BOARDS, 4, 8, 512, 8_000, 256, peak=1e-4, tables=2),
}
SMALL = Recipe(CPU, blocks=1, heads=4, width=256, steps=4_000, batch=32, peak=1e-3, orthogonal=True)
"""docs/coupling.md has all trials, and what orthogonal first vectors did in them."""
ON_TWO_CORES = {"addition": SMALL, "copy": replace(SMALL, size=SMALL_COPIES, steps=2_500)}
"""Pilots of copy, coupled, on seeds that are not published: at n = 40, 0.986 and 0.956 after 1,500 steps on seeds 100 and 101
(the first had 0.043 at n = 30), 0.996 and 0.699 after 2,500 on seeds 100 and 102.
"""
COPYING = ("copy", "reverse")
PARAMETERS: dict[str, dict[str, Any]] = {name: {"letters": "repeated", "alphabet": 10} for name in COPYING}
IDS = {
    "addition": Ids(570, 34),
    "copy": Ids(386, 42),
    "reverse": Ids(386, 42),
    "multiplication": Ids(294, 45),
    "minesweeper": Ids(39, 11),
}
IDS_ON_TWO_CORES = {"addition": Ids(62, 15), "copy": Ids(70, 14)}


def coupling_arm(task: str, way: str) -> Arm:
    """
    >>> str(coupling_arm("addition", "none"))
    'addition, positions: none'
    """
    positions, scores = WAYS[way]
    label = f"{task}, positions: {positions}" + ", plain scores" * (scores == "plain")
    letters = (("alphabet", "10 repeated letters"),) if task in COPYING else ()
    about = (*letters, ("positions", positions), ("scores", scores), ("theory", _theory(way)))
    return Arm(f"{task}, {way}", "t5-decoder", task, "end-to-end", label, about)


def _theory(way: str) -> str:
    """What `lengthlab.theory.verdict` says; a test holds it."""
    return "unknown" if way in ("coupled", "plain", "hints") else "not promised"


def run(arm: Arm, size: str) -> Run:
    """The run of an arm."""
    task, way = arm.name.split(", ")
    if size == "cpu":
        return ON_TWO_CORES[task].run(task, way, IDS_ON_TWO_CORES[task])
    return RECIPES[task].run(task, way, IDS[task])


def _arms(*tasks: str, ways: tuple[str, ...] = ("coupled", "absolute")) -> tuple[Arm, ...]:
    return tuple(coupling_arm(task, way) for task in tasks for way in ways)


SUM_ARMS = tuple(coupling_arm("addition", way) for way in WAYS)
COUPLED, _PLAIN, *OTHERS = SUM_ARMS


def _sums(size: str, far: int) -> tuple[Claim, ...]:
    return (
        Claim(
            "Coupled, sums are right far beyond the training length.",
            f"at least 0.95 at {far} digits, in the median of seeds",
            (Check(COUPLED, far, "≥", 0.95),),
            section="addition",
            size=size,
            by="median",
        ),
        Claim(
            "Without coupling they are not.",
            f"at most 0.10 at {far} digits with any other way to place digits",
            tuple(Check(arm, far, "≤", 0.10) for arm in OTHERS),
            section="addition",
            size=size,
        ),
    )


COUPLING = Study(
    name="coupling",
    title="Position coupling",
    question="How far does arithmetic reach where tokens that belong together share a position?",
    run=run,
    sizes=(GPU, CPU),
    sections=(
        Section("addition", "Addition", SUM_ARMS),
        Section(
            "copying",
            "Copy and reverse",
            _arms(*COPYING, ways=("coupled", "plain", "absolute")),
            sizes=(COPIES,),
        ),
        Section("small-copying", "Copy, on two cores", _arms("copy"), usual=False, sizes=(SMALL_COPIES,)),
        Section("multiplication", "Multiplication by two digits", _arms("multiplication"), sizes=(PRODUCTS,)),
        Section(
            "minesweeper",
            "Minesweeper: two positions a token",
            _arms("minesweeper"),
            "A length is the side of a board. Coupled, a square has the vectors of its row and of its column.",
            sizes=(BOARDS,),
        ),
    ),
    seeds=4,
    claims=(
        *_sums("gpu", 200),
        Claim(
            "Coupled, sums of 500 digits are right, too.",
            "at least 0.95 at 500 digits, in the median of seeds; the paper's bar ends at 200",
            (Check(COUPLED, 500, "≥", 0.95),),
            section="addition",
            size="gpu",
            by="median",
        ),
        Claim(
            "Coupled, copy and reverse go from 40 letters to 300.",
            "both at least 0.95 at n = 300",
            tuple(Check(coupling_arm(task, "coupled"), 300, "≥", 0.95) for task in COPYING),
            section="copying",
            size="gpu",
        ),
        *_sums("cpu", 30),
        Claim(
            "A small one copies 40 letters after 12 if it is coupled, and not without.",
            "at least 0.95 at n = 40 in the median of seeds; with one position a token at most 0.10",
            (Check(coupling_arm("copy", "coupled"), 40, "≥", 0.95), Check(coupling_arm("copy", "absolute"), 40, "≤", 0.10)),
            section="small-copying",
            size="cpu",
            by="median",
        ),
    ),
    note="Cho, Cha, Awasthi, Bhojanapalli, Gupta & Yun, Position Coupling, arXiv 2405.20671, report more than 0.95 up to 200 "
    "digits (the median of 8 runs), and their other results as figures, so that no number of theirs stands beside ours. When "
    "measured, both operands have all n digits; answers are read teacher-forced, as theirs.",
    about=__doc__,
    success=SUCCESS,
    page="docs/coupling/coupling.md",
)
