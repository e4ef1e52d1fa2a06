"""Rule following from scratch: does a model that tells every step of a rule reach further than one that says the answer?

After rule-following fine-tuning (Hu et al. 2024, arXiv 2402.17709; 2025, arXiv 2502.11525), which is defined on pretrained
models; here small ones are trained from scratch on our token forms of the same rules. Nobody has published such numbers.

Claim: trained on lengths 1…5, transformers end with the right result more often at n = 10 with a scratchpad than with the
answer alone, and more often with the whole trace than with a scratchpad: for coin flips, sums of digits, addition, and last
letters, each judged by itself. The same with lists that are pointed into, trained on 1…10 and judged at 20; on two cores,
trained on 1…3 and judged at 4, for coin flips and sums of digits, and with pointers for sums of digits, trained on 1…10 and
judged at 20 (written after a pilot on a seed that is not published).

A result is what a model ends with when it reads its own words, whatever it says before; that all it says is right, and that
its loops take neither fewer turns nor more than they have to, is counted beside it.

Cost: 12 runs a seed of 4,000 steps for each of two tasks; more with `--part addition`, `last-letters`, `flips-to-10`,
`pointers`, `meta`, `adaptation` (gpu). 7 small ones a seed, up to a quarter of an hour each on one core (cpu: n = 1…3,
measured to 6), 3 more with `--part small-pointers` (n = 1…10, measured to 30).
Command: lengthlab reproduce rules
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from lengthlab.experiments.decoder import task_named
from lengthlab.experiments.rule_adaptation import KNOWN, SEEN, adaptation_claim, adapted_arm, adapted_run, of_new
from lengthlab.experiments.rule_recipe import POINTING, RECIPES
from lengthlab.experiments.size import Size
from lengthlab.experiments.study import Arm, At, Check, Claim, Section, Study
from lengthlab.store.rows import ALL

if TYPE_CHECKING:
    from lengthlab.rules.wording import Form
    from lengthlab.spec.run import Run

GPU = Size("gpu", (1, 5), (5, 6, 8, 10, 15, 20, 30), gpu=True)
TO_TEN = Size("gpu", (1, 10), (10, 12, 15, 20, 30), gpu=True)
CPU = Size("cpu", (1, 3), (3, 4, 5, 6))
POINTED_CPU = Size("cpu", (1, 10), (10, 15, 20, 30))
FORMS: dict[Form, str] = {"direct": "answer alone", "scratchpad": "scratchpad", "trace": "whole trace"}
"""By the names that tasks have for them, as a reader knows them."""
TRANSFORMERS = {"rope": "rotary", "log-n": "none, log-n scores"}
"""By their positions; the hybrid has those of the second."""
HYBRID = {"end-to-end": "hybrid, end to end", "delayed": "hybrid, delayed"}
RESULT = "result"
COUNTED = (RESULT, ALL, "enough-turns", "no-extra-turn")
"""What is shown of a model that reads its own words: its result, all that it says, and whether its loops end early or late."""
IDS = 64
"""Of coupled pointers; the longest sample that is measured takes the middle half."""
POINTERS, POINTED = "rule-pointers", ("coin-flips", "digit-sum")
"""The task in which a list is pointed into, and the rules that it is made for."""
PARAMETERS: dict[str, dict[str, Any]] = {"rule-programs": {"programs": KNOWN, "held": 200}}


def rule_arm(task: str, form: Form, way: str, training: str = "end-to-end", to_ten: bool = False) -> Arm:
    """
    >>> arm = rule_arm("rule-coin-flips", "trace", "log-n")
    >>> arm.name, str(arm)
    ('trace, log-n', 'coin flips, whole trace, transformer, none, log-n scores')
    """
    model = "hybrid-block" if way == "hybrid" else "transformer"
    told = HYBRID[training] if way == "hybrid" else f"transformer, {TRANSFORMERS[way]}"
    name = f"{form}, {way}{', 1-10' if to_ten else ''}"
    label = f"{task.removeprefix('rule-').replace('-', ' ')}{' to 10' if to_ten else ''}, {FORMS[form]}, {told}"
    positions = TRANSFORMERS.get(way, TRANSFORMERS["log-n"])
    return Arm(name, model, task, training, label, (("form", FORMS[form]), ("positions", positions)))


def pointer_arm(rule: str, form: Form) -> Arm:
    """
    >>> str(pointer_arm("digit-sum", "scratchpad"))
    'digit sum, scratchpad, transformer, coupled pointers'
    """
    told = "transformer, coupled pointers"
    label = f"{rule.replace('-', ' ')}, {FORMS[form]}, {told}"
    about = (("rule", rule), ("form", FORMS[form]), ("positions", "coupled pointers"))
    return Arm(f"{form}, {rule}", "t5-decoder", POINTERS, "end-to-end", label, about)


def _arms(task: str, to_ten: bool = False) -> tuple[Arm, ...]:
    """Every form with both transformers and the hybrid, the latter also delayed."""
    plain = [rule_arm(task, form, way, to_ten=to_ten) for way in TRANSFORMERS for form in FORMS]
    hybrids = [rule_arm(task, form, "hybrid", training, to_ten) for training in HYBRID for form in FORMS]
    return (*plain, *hybrids)


def run(arm: Arm, size: str) -> Run:
    """The run of an arm."""
    from lengthlab.spec.run import Run

    recipe = RECIPES[size]
    if arm.training == "adapted":
        return adapted_run(arm, recipe, GPU.trained)
    if arm.task == POINTERS:
        form, rule = arm.name.split(", ")
        task = task_named(POINTERS, {"rule": rule, "form": form, "ids": IDS})
        own = POINTING[size]
        return Run(task, own.pointing(IDS), own.schedule(arm.training), TO_TEN.trained, own.batch, optimizer=own.optimizer)
    form, way, *rest = arm.name.split(", ")
    task = task_named(arm.task, {"form": form} | PARAMETERS.get(arm.task, {}))
    trained = CPU.trained if size == "cpu" else (TO_TEN if rest else GPU).trained
    return Run(task, recipe.model(way), recipe.schedule(arm.training), trained, recipe.batch, optimizer=recipe.optimizer)


def _order(task: str, section: str, size: str = "gpu") -> Claim:
    """Answer alone, scratchpad, whole trace; on a GPU with both transformers."""
    length, ways, told = (10, tuple(TRANSFORMERS), ", with each of two transformers") if size == "gpu" else (4, ("log-n",), "")
    pairs = [(rule_arm(task, more, way), rule_arm(task, less, way)) for way in ways for less, more in pairwise(FORMS)]
    words = task.removeprefix("rule-").replace("-", " ")
    return Claim(
        f"{words.capitalize()}: who tells more steps reaches further.",
        f"results right at n = {length}: answer alone < scratchpad < whole trace{told}",
        tuple(Check(more, length, ">", At(arm=less), RESULT) for more, less in pairs),
        section=section,
        size=size,
    )


def _pointed_order(rule: str, length: int, section: str = "pointers", size: str = "gpu") -> Claim:
    """The same, with coupled pointers."""
    arms = [pointer_arm(rule, form) for form in FORMS]
    return Claim(
        f"{rule.replace('-', ' ').capitalize()}, with coupled pointers: who tells more steps reaches further.",
        f"results right at n = {length}: answer alone < scratchpad < whole trace",
        tuple(Check(more, length, ">", At(arm=less), RESULT) for less, more in pairwise(arms)),
        section=section,
        size=size,
    )


SMALL = {rule: tuple(rule_arm(rule, form, "log-n") for form in FORMS) for rule in ("rule-coin-flips", "rule-digit-sum")}
SMALL_FLIPS = (*SMALL["rule-coin-flips"], rule_arm("rule-coin-flips", "trace", "hybrid", "delayed"))


def _small_range(rule: str, section: str) -> Claim:
    return Claim(
        f"{rule.removeprefix('rule-').replace('-', ' ').capitalize()}: in the training range, every form is learned.",
        "all that is said is right in at least 0.90 at n = 3, in each of the three forms",
        tuple(Check(arm, 3, "≥", 0.90) for arm in SMALL[rule]),
        section=section,
        size="cpu",
    )


RULES = Study(
    name="rules",
    title="Rules, told step by step",
    question="Does a model that tells every step of a rule reach further than one that says the answer?",
    run=run,
    sizes=(GPU, CPU),
    sections=(
        Section("coin-flips", "Coin flips", _arms("rule-coin-flips"), questions=COUNTED, sizes=(GPU,)),
        Section("digit-sum", "Sums of digits", _arms("rule-digit-sum"), questions=COUNTED, sizes=(GPU,)),
        Section("addition", "Addition", _arms("rule-addition"), questions=COUNTED, usual=False, sizes=(GPU,)),
        Section("last-letters", "Last letters", _arms("rule-last-letters"), questions=COUNTED, usual=False, sizes=(GPU,)),
        Section(
            "flips-to-10",
            "Coin flips, trained on 1…10",
            _arms("rule-coin-flips", True),
            questions=COUNTED,
            usual=False,
            sizes=(TO_TEN,),
        ),
        Section(
            "pointers",
            "Lists that are pointed into, trained on 1…10",
            tuple(pointer_arm(rule, form) for rule in POINTED for form in FORMS),
            "What is left of a list is one word. Its position ids, coupled with those of the elements, say where it points, so "
            "that nothing has to be copied again and again.",
            COUNTED,
            usual=False,
            sizes=(TO_TEN,),
        ),
        Section(
            "meta",
            "Rules that were never seen",
            _arms("rule-programs"),
            "Trained on 1,000 list programs, each told before its input, and measured on 200 others: whoever has learned to "
            "follow what is told needs to see no sample of them. (Meta-RFFT adapts to the new rules first.)",
            COUNTED,
            usual=False,
            sizes=(GPU,),
        ),
        Section(
            "adaptation",
            "New rules from few samples",
            tuple(adapted_arm(form, told, seen) for form, told in FORMS.items() for seen in SEEN),
            "Five list programs of which there are 100 samples of each length in all, for 500 steps: after 4,000 steps on a "
            "thousand other programs, or alone. Measured on other inputs of these five.",
            tuple(map(of_new, COUNTED)),
            usual=False,
            sizes=(GPU,),
        ),
        Section("small", "Coin flips, on two cores", SMALL_FLIPS, questions=COUNTED, sizes=(CPU,)),
        Section("small-sums", "Sums of digits, on two cores", SMALL["rule-digit-sum"], questions=COUNTED, sizes=(CPU,)),
        Section(
            "small-pointers",
            "Sums of digits with coupled pointers, on two cores",
            tuple(pointer_arm("digit-sum", form) for form in FORMS),
            "What is left of a list is one word, whose position ids, coupled with those of the elements, say where it points.",
            COUNTED,
            usual=False,
            sizes=(POINTED_CPU,),
        ),
    ),
    seeds=3,
    claims=(
        _order("rule-coin-flips", "coin-flips"),
        _order("rule-digit-sum", "digit-sum"),
        _order("rule-addition", "addition"),
        _order("rule-last-letters", "last-letters"),
        *(_pointed_order(rule, 20) for rule in POINTED),
        _pointed_order("digit-sum", 20, "small-pointers", "cpu"),
        adaptation_claim(FORMS["trace"], 10),
        *(_small_range(rule, section) for rule, section in zip(SMALL, ("small", "small-sums"), strict=True)),
        _order("rule-coin-flips", "small", "cpu"),
        _order("rule-digit-sum", "small-sums", "cpu"),
    ),
    note="`result`: what a model ends with when it reads its own words. A guess of it is right in half of the coin flips and "
    "in a ninth of the sums of digits. All questions right: the whole of what is said, of a trace every step, of a scratchpad "
    "every turn. `enough-turns`, `no-extra-turn`: loops take as many turns in all as they have to, or more; as many, or fewer. "
    "A model that never comes to an end is stopped when it has said half as much again as the longest right sequence.",
    about=__doc__,
    far=0.90,
    page="docs/rules/rules.md",
)
