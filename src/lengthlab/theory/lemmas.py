"""Which task is in the class, by whose proof, and the program that shows it: nothing without a source or a program, and what is
argued here says so.

*Born a Transformer*: arXiv 2505.21785. *Huang et al.*: arXiv 2410.02140.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from lengthlab.registry import registered
from lengthlab.theory import copying, counting, languages, memory, prompts, retrieval
from lengthlab.theory.program import Program
from lengthlab.theory.prompts import Words

if TYPE_CHECKING:
    from lengthlab.tasks import Task

InClass = Literal["yes", "no", "unknown"]
NOT_KNOWN = "no program is known here, and no proof that there is none"
BORN, HUANG = "Born a Transformer, arXiv 2505.21785", "Huang et al., arXiv 2410.02140"


@dataclass(frozen=True)
class Known:
    """What is known of one task, whatever its alphabet."""

    in_class: InClass
    citation: str
    reason: str = ""
    program: Callable[[Any], Program] | None = None
    """Of a task; its parameters decide the alphabet."""
    prompts: Callable[[Any, int], Iterable[Words]] | None = None
    """Of a task and a length: every input."""
    listed: Mapping[str, object] = field(default_factory=dict)
    """Parameters with which every short input can be listed, where the task's own are too many."""
    shown: Mapping[str, object] = field(default_factory=dict)
    """Parameters with which the program fits on a page."""


def symbols(task: Task) -> tuple[str, ...]:
    """The words of a task that are no marks, in order."""
    return tuple(word for word in task.words if not word.startswith("<"))


def _retrieval(which: Literal["unique", "first"], side: retrieval.Side, lemma: int) -> Known:
    write = retrieval.unique if which == "unique" else retrieval.first
    return Known(
        "yes",
        f"Lemma {lemma} ({BORN})",
        program=lambda task: write(symbols(task), side),
        prompts=lambda task, length: prompts.neighbours(symbols(task), which, side, length),
        listed={"alphabet": 3, "within": "anywhere"},
        shown={"alphabet": 2},
    )


def _unique_copying(write: Callable[[Words], Program], citation: str) -> Known:
    return Known(
        "yes",
        citation,
        "tokens do not repeat, so the token here tells the place in the input",
        program=lambda task: write(symbols(task)),
        prompts=lambda task, length: prompts.read_once(symbols(task), length),
        listed={"alphabet": 6},
        shown={"alphabet": 2},
    )


def _no(citation: str, reason: str) -> Known:
    return Known("no", citation, reason)


LAST = _no(f"Lemma 6 ({BORN})", "which occurrence is the last is no matter of counts (right of it: the flip-flop task)")
REPEATED = _no(
    f"Lemma 8 ({BORN})", "by communication complexity: counts of a sequence hold too little to write all of it again"
)
BINARY_MAJORITY = Known(
    "yes",
    HUANG,
    program=lambda task: counting.majority(symbols(task)),
    prompts=lambda task, length: prompts.read(symbols(task), length, prompts.single_winner),
)
MAJORITY = replace(BINARY_MAJORITY, listed={"alphabet": 3}, shown={"alphabet": 3})
INTERLEAVED = Known(
    "yes",
    HUANG,
    "which answer is due is told by the position modulo the period",
    program=lambda task: counting.interleaved_majority(task.period),
    prompts=lambda task, length: prompts.interleaved(symbols(task), task.period, length),
)
SORT = Known(
    "yes",
    HUANG,
    program=lambda task: copying.sorting(symbols(task)),
    prompts=lambda task, length: prompts.read_once(symbols(task), length),
    listed={"numbers": 6},
    shown={"numbers": 3},
)
PARITY = _no(HUANG, "no program of this class counts modulo 2")
ADDITION = _no(f"by Lemma 8 ({BORN})", "x + 0 is x written again, in order or reversed, and its digits repeat")
SHIFTED = _no(f"by Lemma 8 ({BORN})", "with its letters renamed it is reverse, and they repeat")
MULTIPLICATION = _no(f"by Lemma 8 ({BORN})", "x × 10 is x written again, in order or reversed, and its digits repeat")
OURS = f"our argument, after Lemma 8 ({BORN})"
COUNTS = "a program keeps counts of the prompt, O(log n) bits in all, and says the whole answer by them; there are"
"""Whatever else it keeps does not grow with n: the last few tokens for local counts, n modulo the periods."""
PARITIES = _no(OURS, f"{COUNTS} 2ⁿ answers, as two neighbouring parities tell the bit between them")
MINES = _no(OURS, f"{COUNTS} as many answers as boards, as every mine is written again")

HERE = "shown by the program here"
PASSKEY = Known(
    "yes",
    HERE,
    "what stands at a known distance after a mark has been read or not",
    program=lambda task: memory.passkey(task.symbols, task.digits),
    prompts=lambda task, length: prompts.passkeys(task.symbols, task.filler, task.digits, length - task.shortest),
    listed={"noise": 2, "digits": 2, "values": 2, "place": None},
    shown={"digits": 2, "values": 2},
)
NEEDLES = Known(
    "yes",
    HERE,
    "the same of a mark and a name",
    program=lambda task: memory.needles(*_named(task), task.digits),
    prompts=lambda task, length: prompts.needles(
        *_named(task), task.filler, (task.needles, task.digits), length - task.shortest
    ),
    listed={"noise": 2, "needles": 2, "asked": 1, "digits": 1, "values": 2, "names": 2},
    shown={"needles": 2, "asked": 1, "digits": 1, "values": 2, "names": 2},
)
VARIABLES = Known(
    "yes",
    HERE,
    "who was given which has been read or not, and the hops are a fixed number",
    program=lambda task: memory.variables(*_named(task), task.hops),
    prompts=lambda task, length: prompts.variables(
        *_named(task), task.filler, (task.chains, task.hops + 1), length - task.shortest
    ),
    listed={"noise": 2, "hops": 1, "chains": 2, "variables": 4, "values": 2},
    shown={"hops": 1, "chains": 2, "variables": 4, "values": 2},
)
MQAR = Known("unknown", NOT_KNOWN, "it asks as first-right does, of keys and values that differ and are as many as the pairs")
STATE_RECALL = _no(
    f"by parity ({HUANG})", "whether a or b holds an address tells if their swaps, among those of c and d, are even in number"
)
GROUP_RECALL = Known("unknown", NOT_KNOWN, "as modulo-recall; without keys it would be the word problem of the group")


def _named(task: Any) -> tuple[Words, Words]:
    """The values and the names of a haystack."""
    return task.symbols[: task.values], task.symbols[task.values :]


SHOWN_HERE = "shown by the program here; a language of Huang et al.'s suite, arXiv 2410.02140"


def _language(allowed: Callable[[], languages.Allowed]) -> Known:
    return Known(
        "yes",
        SHOWN_HERE,
        program=lambda task: languages.of_sets(allowed(), task.automaton.sets),
        prompts=lambda task, length: prompts.beginnings(task.automaton, length),
    )


LANGUAGES: dict[str, Known] = {
    "tomita-1": _language(lambda: languages.only("1")),
    "tomita-2": _language(lambda: languages.alternating("1", "0")),
    "tomita-3": Known("unknown", NOT_KNOWN, "it compares the parity of one run with that of the run before"),
    "tomita-4": _language(lambda: languages.not_three("0", "1")),
    "tomita-5": _no(f"by parity ({HUANG})", "after an even number of symbols it tells whether the number of zeros is even"),
    "tomita-6": Known("unknown", NOT_KNOWN, "it counts modulo 3"),
    "tomita-7": _language(lambda: languages.four_runs("0", "1")),
    "D2": _language(lambda: languages.dyck(2)),
    "D3": _language(lambda: languages.dyck(3)),
    "D4": _language(lambda: languages.dyck(4)),
    "D12": _language(lambda: languages.dyck(12)),
    "(aa)*": _language(lambda: languages.repeated("a", 2)),
    "(aaaa)*": _language(lambda: languages.repeated("a", 4)),
    "(abab)*": _language(lambda: languages.alternating("a", "b", times=2)),
}

KNOWN: dict[str, Known] = {
    "unique-left": _retrieval("unique", "left", lemma=4),
    "unique-right": _retrieval("unique", "right", lemma=4),
    "first-left": _retrieval("first", "left", lemma=5),
    "first-right": _retrieval("first", "right", lemma=5),
    "last-left": LAST,
    "last-right": LAST,
    "passkey": PASSKEY,
    "needles": NEEDLES,
    "variable-tracking": VARIABLES,
    "mqar": MQAR,
    "state-recall": STATE_RECALL,
    "group-recall": GROUP_RECALL,
    "copy unique": _unique_copying(copying.unique_copy, f"Lemma 7 ({BORN}); {HUANG}"),
    "reverse unique": _unique_copying(copying.unique_reverse, f"Lemma 7 ({BORN})"),
    "copy repeated": REPEATED,
    "reverse repeated": REPEATED,
    "shifted-reverse": SHIFTED,
    "majority": MAJORITY,
    "binary-majority": BINARY_MAJORITY,
    "binary-majority-interleave": INTERLEAVED,
    "sort": SORT,
    "parity": PARITY,
    "binary-addition": ADDITION,
    "addition": ADDITION,
    "multi-addition": ADDITION,
    "multiplication": MULTIPLICATION,
    "parity-scratchpad": PARITIES,
    "minesweeper": MINES,
    **LANGUAGES,
}
"""By the name of the task; where letters may be unique or repeated, that is part of it."""


def kind_of(task: Task) -> str:
    """The name under which a task of ours is known here. With positions of its own, hints that stand for them, or a chain that
    is written out, it is another task, of which nothing is said here; and a language is known by its automaton, whatever its
    name.
    """
    if task.name in LANGUAGES and not _is_that_language(task):
        return ""
    letters = "repeated" if getattr(task, "repeated", False) else getattr(task, "letters", "")
    words = (task.name, letters, "coupled" if getattr(task, "positions", "") == "coupled" else "")
    return " ".join(filter(None, (*words, *(told for told in ("hints", "written") if getattr(task, told, False) is True))))


def _is_that_language(task: Task) -> bool:
    from lengthlab.tasks import Task

    made: Task = registered(Task)[task.name]()
    return made == task
