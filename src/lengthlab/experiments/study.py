"""A study as data: the arms that are compared, sizes, claims with their thresholds, and the numbers of others. No torch.

One of ours or a user's own: `lengthlab reproduce far`, `lengthlab reproduce my_study.py:STUDY`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isclose
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal

from lengthlab.errors import LabError, a_kind, explain, nearest, require
from lengthlab.experiments.drawing import Grid, Strip
from lengthlab.experiments.size import Size
from lengthlab.store.rows import ALL

if TYPE_CHECKING:
    from lengthlab.spec.run import Run

Sign = Literal["<", "≤", "≥", ">"]
SIGNS: dict[str, Sign] = {"<": "<", "<=": "≤", "≤": "≤", ">=": "≥", "≥": "≥", ">": ">"}
"""As they may be typed."""
FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Arm:
    """What is trained, and the labels under which its rows are kept: all four tell arms apart.

    `label`: what a reader is shown for its name, in tables, legends and sentences; the name if empty. `about`: what it is made
    of, by the names of columns. Where that and the rest tell all arms of a section apart, tables and legends have no more.

    >>> Arm("wide", "lstm", "recall", "end-to-end") == Arm("wide", "lstm", "recall", "end-to-end", label="the wide one")
    True
    """

    name: str
    model: str
    task: str
    training: str
    label: str = field(default="", compare=False)
    about: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return self.label or self.name


@dataclass(frozen=True)
class Section:
    """Arms that are shown together, in one table and one figure.

    `questions`: those that are shown, the first in every detail; all that the rows have if empty. `usual`: whether it is
    trained where no section is asked for by name. `figure`: how it is drawn; if that is not said, as curves over length where
    arms are few, else as a heat map. `sizes`: those of the study at which it is there, with lengths of its own; if empty, all,
    as they are.
    """

    name: str
    title: str
    arms: tuple[Arm, ...]
    text: str = ""
    questions: tuple[str, ...] = ()
    usual: bool = True
    figure: Grid | Strip | None = None
    sizes: tuple[Size, ...] = ()

    def at(self, size: Size) -> Size | None:
        """Its lengths at a size of the study; None where it is not there."""
        return next((own for own in self.sizes if own.name == size.name), None) if self.sizes else size


@dataclass(frozen=True)
class At:
    """A measured accuracy as a bound: that of the same arm at another length, or of another arm."""

    length: int | None = None
    arm: Arm | None = None


@dataclass(frozen=True)
class Check:
    """The accuracy of an arm at a length, held against a bound.

    >>> str(Check(Arm("delayed", "sandwich", "modulo-recall", "delayed"), 100, "<=", At(75)))
    'delayed at n=100 ≤ at n=75'
    """

    arm: Arm
    length: int
    sign: Sign | Literal["<=", ">="]
    bound: float | At
    question: str = ALL

    def __post_init__(self) -> None:
        require(self.sign in SIGNS, f"a check compares by one of {', '.join(SIGNS)}, not by {self.sign!r}")
        object.__setattr__(self, "sign", SIGNS[self.sign])

    def __str__(self) -> str:
        asked = "" if self.question == ALL else f", {self.question},"
        return f"{self.arm}{asked} at n={self.length} {self.sign} {self._bound}"

    @property
    def _bound(self) -> str:
        if not isinstance(self.bound, At):
            return f"{self.bound:.2f}"
        words = (str(self.bound.arm) if self.bound.arm else "", f"at n={self.bound.length}" if self.bound.length else "")
        return " ".join(filter(None, words))


@dataclass(frozen=True)
class Claim:
    """`words` are the author's, `checked` says plainly what `checks` are, `exceptions` how many of them may fail.

    `section` and `size`: of which it speaks; empty where there is one section, or where it is meant at every size. `by`: which
    accuracy of several seeds is held against the bounds.
    """

    words: str
    checked: str
    checks: tuple[Check, ...]
    section: str = ""
    size: str = ""
    exceptions: int = 0
    by: Literal["mean", "median"] = "mean"


@dataclass(frozen=True)
class Source:
    """Where numbers of others stand."""

    title: str
    authors: str
    address: str


@dataclass(frozen=True)
class Reference:
    """Numbers of others: accuracies by arm, question and length. `name`: how tables call it, like "the paper"."""

    name: str
    source: Source
    values: Mapping[tuple[Arm, str, int], float]


@dataclass(frozen=True)
class Study:
    """A question, the arms that answer it, and what is claimed of them.

    `run` gives the run of an arm at a size, whatever the seed; it is called only where something is trained or looked up in a
    store. `arms` are those of all `sections`; one section is made of them where none is given. `seeds`: so many are trained
    unless a user says otherwise. `baseline`: the arm in whose steps the cost of others is told. `note`: what a reader of its
    page has to know. `about`: claim, cost and command. `page`: where its page is kept in the checkout, once there are rows;
    those of other sizes than the first stand beside it (`page_at`).
    `success`: the accuracy in the training range from which a seed counts as one that succeeded, where others report the mean
    over these alone; both means are shown then. `far`: the accuracy of which it is told up to which length it lasts, by part
    and in the mean over parts. `precision`: in which a GPU trains it unless a user says otherwise.
    """

    name: str
    title: str
    question: str
    run: Callable[[Arm, str], Run]
    sizes: tuple[Size, ...]
    arms: tuple[Arm, ...] = ()
    sections: tuple[Section, ...] = ()
    seeds: int = 1
    claims: tuple[Claim, ...] = ()
    reference: Reference | None = None
    baseline: str = ""
    note: str = ""
    about: str = ""
    page: str = ""
    success: float | None = None
    far: float | None = None
    precision: str = ""

    def __post_init__(self) -> None:
        if not self.sections:
            object.__setattr__(self, "sections", (Section(self.name, "Accuracy by length", self.arms),))
        object.__setattr__(self, "arms", tuple(dict.fromkeys(arm for section in self.sections for arm in section.arms)))
        for name in (self.name, *(size.name for size in self.sizes), *(section.name for section in self.sections)):
            named = FILE_NAME.fullmatch(name) is not None
            require(
                named, f"study '{self.name}': files are named after '{name}', so it takes letters, digits, '-', '_' and '.'"
            )
        require(len(self.arms) > 0, f"study '{self.name}' has no arm")
        require(len(self.sizes) > 0, f"study '{self.name}' has no size")
        for size in self.sizes:
            require(len(size.lengths) > 0, f"study '{self.name}': nothing is measured at size '{size.name}': give it lengths")
        for what, names in (("sizes", [each.name for each in self.sizes]), ("parts", [each.name for each in self.sections])):
            require(len(set(names)) == len(names), f"study '{self.name}': two {what} have one name: {', '.join(names)}")
        for section in self.sections:
            self._check_sizes(section)
            self._check_figure(section)
        for claim in self.claims:
            self._check_claim(claim)
        for arm, question, length in self.reference.values if self.reference else ():
            known = f"study '{self.name}': the reference has '{arm}', {question}, n={length}, and the study has no such arm"
            require(arm in self.arms, known)

    def _check_sizes(self, section: Section) -> None:
        """Its own are sizes of the study, and where an arm is measured is said once."""
        for own in section.sizes:
            self.size(own.name)
        for size, arm in ((size, arm) for size in self.sizes for arm in section.arms):
            same = section.at(size) in (None, self.size_of(arm, size))
            where = f"study '{self.name}', size '{size.name}'"
            require(same, f"{where}: '{arm}' is in two parts that are measured at different lengths")

    def _check_figure(self, section: Section) -> None:
        """Everything that a figure is drawn of is there at every size."""
        if not section.figure:
            return
        where = f"study '{self.name}', part '{section.name}': its figure"
        require(len(section.figure.times) > 0, f"{where} is of no length: give it times")
        for size in filter(None, map(section.at, self.sizes)):
            wanted = [times * size.trained[1] for times in section.figure.times]
            there = set(wanted) <= set(size.shown)
            require(there, f"{where} is of n = {', '.join(map(str, wanted))}, and not all are measured at size '{size.name}'")
        columns = (section.figure.down, section.figure.across) if isinstance(section.figure, Grid) else ()
        for column in columns:
            told = all(column in dict(arm.about) for arm in section.arms)
            require(told, f"{where} has arms by their '{column}', and not every arm says it in 'about'")

    def _check_claim(self, claim: Claim) -> None:
        require(len(claim.checks) > 0, f"study '{self.name}': nothing is checked of “{claim.words}”")
        bounds = [check.bound.arm for check in claim.checks if isinstance(check.bound, At) and check.bound.arm]
        for arm in (*(check.arm for check in claim.checks), *bounds):
            require(arm in self.arms, f"study '{self.name}': a check is of '{arm}', which is none of its arms")
        if claim.section:
            self.section(claim.section)
        sizes = [size for size in self.sizes if claim.size in ("", size.name)]
        require(len(sizes) > 0, f"study '{self.name}': a claim is of size '{claim.size}', which it has not")
        for check in claim.checks:
            also = [check.bound.length] if isinstance(check.bound, At) and check.bound.length else []
            measured = [own.shown if (own := self.size_of(check.arm, size)) else () for size in sizes]
            there = all({check.length, *also} <= set(lengths) for lengths in measured)
            require(there, f"study '{self.name}': '{check}' is not measured at every size; give the claim its size")

    def size(self, name: str) -> Size:
        found = {size.name: size for size in self.sizes}
        require(name in found, f"study '{self.name}' has no size '{name}'; {nearest(name, found)}")
        return found[name]

    def page_at(self, size: Size) -> str:
        """Where the page of a size is kept in the checkout: docs/far/far.md for the first, docs/far/far-cpu.md for another."""
        path = PurePosixPath(self.page)
        return self.page if size.name == self.sizes[0].name else str(path.with_stem(f"{path.stem}-{size.name}"))

    def section(self, name: str) -> Section:
        found = {section.name: section for section in self.sections}
        require(name in found, f"study '{self.name}' has no part '{name}'; {nearest(name, found)}")
        return found[name]

    def sections_at(self, size: Size) -> tuple[Section, ...]:
        """Those that are there at a size."""
        return tuple(section for section in self.sections if section.at(size))

    def size_of(self, arm: Arm, size: Size) -> Size | None:
        """The lengths of an arm at a size; None where no part has it there."""
        return next((section.at(size) for section in self.sections_at(size) if arm in section.arms), None)

    def runs(self, size: str, seeds: Iterable[int], sections: Sequence[Section] = ()) -> list[tuple[Arm, Run]]:
        """What is trained for these sections, all if none is named, at a size; two arms may share a run."""
        asked = self.size(size)
        for section in sections:
            known = ", ".join(own.name for own in section.sizes)
            there = section.at(asked) is not None
            require(there, f"study '{self.name}' has part '{section.name}' at size {known} alone, not at '{size}'")
        wanted = [(arm, section.at(asked)) for section in sections or self.sections_at(asked) for arm in section.arms]
        made = [(arm, self._made(arm, own)) for arm, own in dict(wanted).items() if own]
        return [(arm, replace(run, seed=seed)) for seed in seeds for arm, run in made]

    def _made(self, arm: Arm, size: Size) -> Run:
        from lengthlab.spec.run import Run

        where = f"study '{self.name}', arm '{arm}', size '{size.name}'"
        try:
            run = self.run(arm, size.name)
        except LabError as error:
            raise LabError(f"{where}: {error}") from None
        except Exception as error:  # a user's own function
            raise LabError(f"{where}: its run cannot be made: {explain(error)}") from error
        require(isinstance(run, Run), f"{where}: 'run' gave {a_kind(run)}, not a Run")
        trained = tuple(run.lengths) == tuple(size.trained)
        require(trained, f"{where}: its run trains on lengths {list(run.lengths)}, the size says {list(size.trained)}")
        for check in (check for claim in self.claims for check in claim.checks if check.arm == arm):
            asked = (ALL, *run.task.questions, *run.task.outcomes)
            require(check.question in asked, f"{where}: a check is of '{check.question}'; {nearest(check.question, asked)}")
        for question, share in size.chance.items():
            known = run.task.chances(size.lengths[0]).get(question, share)
            require(isclose(known, share), f"{where}: chance is {known:g} for '{question}', the size says {share:g}")
        return replace(run, evaluate=size.lengths)

    def says(self, arm: Arm, question: str, length: int) -> float | None:
        """What the reference reports; None where it is silent, or where there is none."""
        return self.reference.values.get((arm, question, length)) if self.reference else None
