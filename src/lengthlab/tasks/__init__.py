"""WHAT is learned. One task a file; the names that users type are here."""

from collections.abc import Callable
from typing import Any

from lengthlab.registry import register_all
from lengthlab.rules.rule import Rule as Rule
from lengthlab.tasks.addition import Addition as Addition
from lengthlab.tasks.addition import multi_addition as multi_addition
from lengthlab.tasks.association import CarryOnly as CarryOnly
from lengthlab.tasks.association import NoCarry as NoCarry
from lengthlab.tasks.automaton import Automaton as Automaton
from lengthlab.tasks.batch import IGNORE as IGNORE
from lengthlab.tasks.batch import Batch as Batch
from lengthlab.tasks.binary_addition import BinaryAddition as BinaryAddition
from lengthlab.tasks.copying import Copy as Copy
from lengthlab.tasks.copying import Reverse as Reverse
from lengthlab.tasks.count import Count as Count
from lengthlab.tasks.count import Fill as Fill
from lengthlab.tasks.few import Few as Few
from lengthlab.tasks.group_recall import GroupRecall as GroupRecall
from lengthlab.tasks.helper import Helper as Helper
from lengthlab.tasks.helper import PlaceParity as PlaceParity
from lengthlab.tasks.helper import Predecessor as Predecessor
from lengthlab.tasks.helper import Successor as Successor
from lengthlab.tasks.language import Language as Language
from lengthlab.tasks.language import dyck as dyck
from lengthlab.tasks.language import repeated as repeated
from lengthlab.tasks.languages import (
    aa,
    aaaa,
    abab,
    d2,
    d3,
    d4,
    d12,
    tomita_1,
    tomita_2,
    tomita_3,
    tomita_4,
    tomita_5,
    tomita_6,
    tomita_7,
)
from lengthlab.tasks.majority import BinaryMajority as BinaryMajority
from lengthlab.tasks.majority import BinaryMajorityInterleave as BinaryMajorityInterleave
from lengthlab.tasks.majority import Majority as Majority
from lengthlab.tasks.minesweeper import Minesweeper as Minesweeper
from lengthlab.tasks.mixture import Mixture as Mixture
from lengthlab.tasks.modulo_recall import ModuloRecall as ModuloRecall
from lengthlab.tasks.modulo_recall import modulo as modulo
from lengthlab.tasks.modulo_recall import recall as recall
from lengthlab.tasks.mqar import Mqar as Mqar
from lengthlab.tasks.multiplication import Multiplication as Multiplication
from lengthlab.tasks.needles import Needles as Needles
from lengthlab.tasks.parity import Parity as Parity
from lengthlab.tasks.parity_scratchpad import ParityScratchpad as ParityScratchpad
from lengthlab.tasks.passkey import Passkey as Passkey
from lengthlab.tasks.plane import AdditionPlane as AdditionPlane
from lengthlab.tasks.repetitive import Repetitive as Repetitive
from lengthlab.tasks.retrieval import FirstLeft as FirstLeft
from lengthlab.tasks.retrieval import FirstRight as FirstRight
from lengthlab.tasks.retrieval import LastLeft as LastLeft
from lengthlab.tasks.retrieval import LastRight as LastRight
from lengthlab.tasks.retrieval import UniqueLeft as UniqueLeft
from lengthlab.tasks.retrieval import UniqueRight as UniqueRight
from lengthlab.tasks.rule_pointers import RulePointers as RulePointers
from lengthlab.tasks.rule_programs import RulePrograms as RulePrograms
from lengthlab.tasks.rules import RuleFollowing as RuleFollowing
from lengthlab.tasks.rules import base_9_rule as base_9_rule
from lengthlab.tasks.rules import coin_flips_rule as coin_flips_rule
from lengthlab.tasks.rules import digit_sum_rule as digit_sum_rule
from lengthlab.tasks.rules import last_letters_rule as last_letters_rule
from lengthlab.tasks.rules import own_rule as own_rule
from lengthlab.tasks.running_product import RunningProduct as RunningProduct
from lengthlab.tasks.running_sum import RunningSum as RunningSum
from lengthlab.tasks.shifted_reverse import ShiftedReverse as ShiftedReverse
from lengthlab.tasks.sorting import Sort as Sort
from lengthlab.tasks.state_recall import StateRecall as StateRecall
from lengthlab.tasks.subsequence import Subsequence as Subsequence
from lengthlab.tasks.task import ALL as ALL
from lengthlab.tasks.task import Task as Task
from lengthlab.tasks.variable_tracking import VariableTracking as VariableTracking

RETRIEVAL: dict[str, Callable[..., Task]] = {
    "unique-left": UniqueLeft,
    "unique-right": UniqueRight,
    "first-left": FirstLeft,
    "first-right": FirstRight,
    "last-left": LastLeft,
    "last-right": LastRight,
}
MEMORY: dict[str, Callable[..., Task]] = {
    "passkey": Passkey,
    "needles": Needles,
    "variable-tracking": VariableTracking,
    "mqar": Mqar,
    "state-recall": StateRecall,
    "group-recall": GroupRecall,
}
COPYING: dict[str, Callable[..., Task]] = {"copy": Copy, "reverse": Reverse, "shifted-reverse": ShiftedReverse}
COUNTING: dict[str, Callable[..., Task]] = {
    "majority": Majority,
    "binary-majority": BinaryMajority,
    "binary-majority-interleave": BinaryMajorityInterleave,
    "sort": Sort,
    "parity": Parity,
    "binary-addition": BinaryAddition,
}
RULES: dict[str, Callable[..., Task]] = {
    "rule-addition": RuleFollowing,
    "rule-base-9": base_9_rule,
    "rule-last-letters": last_letters_rule,
    "rule-coin-flips": coin_flips_rule,
    "rule-digit-sum": digit_sum_rule,
    "rule-programs": RulePrograms,
    "rule-pointers": RulePointers,
    "rule": own_rule,
}
HELPERS: dict[str, Callable[..., Task]] = {
    "successor": Successor,
    "predecessor": Predecessor,
    "count": Count,
    "fill": Fill,
    "place-parity": PlaceParity,
    "subsequence": Subsequence,
    "repetitive": Repetitive,
    "no-carry": NoCarry,
    "carry-only": CarryOnly,
    "running-sum": RunningSum,
    "running-product": RunningProduct,
}
"""Of other tasks: made to be mixed with these."""
LANGUAGES: dict[str, Callable[..., Task]] = {
    "language": Language,
    "tomita-1": tomita_1,
    "tomita-2": tomita_2,
    "tomita-3": tomita_3,
    "tomita-4": tomita_4,
    "tomita-5": tomita_5,
    "tomita-6": tomita_6,
    "tomita-7": tomita_7,
    "D2": d2,
    "D3": d3,
    "D4": d4,
    "D12": d12,
    "(aa)*": aa,
    "(aaaa)*": aaaa,
    "(abab)*": abab,
}
NAMES: dict[Any, dict[str, Callable[..., Any]]] = {
    Task: {
        "modulo-recall": ModuloRecall,
        "modulo": modulo,
        "recall": recall,
        "mixture": Mixture,
        "few": Few,
        "addition": Addition,
        "multi-addition": multi_addition,
        "multiplication": Multiplication,
        "minesweeper": Minesweeper,
        "addition-plane": AdditionPlane,
        "parity-scratchpad": ParityScratchpad,
        **MEMORY,
        **RETRIEVAL,
        **COPYING,
        **COUNTING,
        **RULES,
        **HELPERS,
        **LANGUAGES,
    },
    Automaton: {"automaton": Automaton},
    Rule: {"rule": Rule},
}
"""Written out, so that a list of them can be read without torch."""

register_all(NAMES)
