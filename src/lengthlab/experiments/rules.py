"""Rule following from scratch: does a model that tells every step of a rule reach further than one that says the answer?

After rule-following fine-tuning (Hu et al. 2024, arXiv 2402.17709; 2025, arXiv 2502.11525), which is defined on pretrained
models; here small ones are trained from scratch on our token forms of the same rules. Nobody has published such numbers.

Claim: trained on lengths 1…5, transformers have more samples right at n = 10 with a scratchpad than with the answer alone, and
more with the whole trace than with a scratchpad: for coin flips, sums of digits, addition, and last letters, each judged by
itself. The same with lists that are pointed into, trained on 1…10 and judged at 20. A trace is right if all of it is, which
asks more than its answer.

Cost: 12 runs a seed of 4,000 steps for each of two tasks; more with `--part addition`, `last-letters`, `flips-to-10`,
`pointers`, `meta`, `adaptation` (gpu). 4 small ones a seed (cpu: n = 1…3, measured to 6).
Command: lengthlab reproduce rules
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from lengthlab.experiments.decoder import task_named
from lengthlab.experiments.rule_adaptation import KNOWN, SEEN, adaptation_claim, adapted_arm, adapted_run
from lengthlab.experiments.rule_recipe import RECIPES
from lengthlab.experiments.size import Size
from lengthlab.experiments.study import Arm, At, Check, Claim, Section, Study

if TYPE_CHECKING:
    from lengthlab.rules.wording import Form
    from lengthlab.spec.run import Run

GPU = Size("gpu", (1, 5), (5, 6, 8, 10, 15, 20, 30), gpu=True)
TO_TEN = Size("gpu", (1, 10), (10, 12, 15, 20, 30), gpu=True)
CPU = Size("cpu", (1, 3), (3, 4, 5, 6))
FORMS: dict[Form, str] = {"direct": "answer alone", "scratchpad": "scratchpad", "trace": "whole trace"}
"""By the names that tasks have for them, as a reader knows them."""
TRANSFORMERS = {"rope": "rotary", "log-n": "none, log-n scores"}
HYBRID = {"end-to-end": "hybrid, end to end", "delayed": "hybrid, delayed"}
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
    label = f"{task.removeprefix('rule-').replace('-', ' ')}, {FORMS[form]}, {told}"
    return Arm(name, model, task, training, label, (("form", FORMS[form]), ("architecture", told)))


def pointer_arm(rule: str, form: Form) -> Arm:
    """
    >>> str(pointer_arm("digit-sum", "scratchpad"))
    'digit sum, scratchpad, transformer, coupled pointers'
    """
    told = "transformer, coupled pointers"
    label = f"{rule.replace('-', ' ')}, {FORMS[form]}, {told}"
    about = (("rule", rule), ("form", FORMS[form]), ("architecture", told))
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
        schedule = recipe.schedule(arm.training)
        return Run(task, recipe.pointing(IDS), schedule, TO_TEN.trained, recipe.batch, optimizer=recipe.optimizer)
    form, way, *rest = arm.name.split(", ")
    task = task_named(arm.task, {"form": form} | PARAMETERS.get(arm.task, {}))
    trained = CPU.trained if size == "cpu" else (TO_TEN if rest else GPU).trained
    return Run(task, recipe.model(way), recipe.schedule(arm.training), trained, recipe.batch, optimizer=recipe.optimizer)


def _order(task: str, section: str, length: int = 10) -> Claim:
    """Answer alone, scratchpad, whole trace, with both transformers."""
    pairs = [(rule_arm(task, more, way), rule_arm(task, less, way))
             for way in TRANSFORMERS for less, more in pairwise(FORMS)]  # fmt: skip
    words = task.removeprefix("rule-").replace("-", " ")
    return Claim(
        f"{words.capitalize()}: who tells more steps reaches further.",
        f"at n = {length}, answer alone < scratchpad < whole trace, with each of two transformers",
        tuple(Check(more, length, ">", At(arm=less)) for more, less in pairs),
        section=section,
        size="gpu",
    )


def _pointed_order(rule: str, length: int) -> Claim:
    """The same, with coupled pointers."""
    arms = [pointer_arm(rule, form) for form in FORMS]
    return Claim(
        f"{rule.replace('-', ' ').capitalize()}, with coupled pointers: who tells more steps reaches further.",
        f"at n = {length}, answer alone < scratchpad < whole trace",
        tuple(Check(more, length, ">", At(arm=less)) for less, more in pairwise(arms)),
        section="pointers",
        size="gpu",
    )


SMALL = (
    *(rule_arm("rule-coin-flips", form, "log-n") for form in FORMS),
    rule_arm("rule-coin-flips", "trace", "hybrid", "delayed"),
)
SMALL_TRACE, SMALL_SCRATCHPAD = (rule_arm("rule-coin-flips", form, "log-n") for form in ("trace", "scratchpad"))

RULES = Study(
    name="rules",
    title="Rules, told step by step",
    question="Does a model that tells every step of a rule reach further than one that says the answer?",
    run=run,
    sizes=(GPU, CPU),
    sections=(
        Section("coin-flips", "Coin flips", _arms("rule-coin-flips"), sizes=(GPU,)),
        Section("digit-sum", "Sums of digits", _arms("rule-digit-sum"), sizes=(GPU,)),
        Section("addition", "Addition", _arms("rule-addition"), usual=False, sizes=(GPU,)),
        Section("last-letters", "Last letters", _arms("rule-last-letters"), usual=False, sizes=(GPU,)),
        Section("flips-to-10", "Coin flips, trained on 1…10", _arms("rule-coin-flips", True), usual=False, sizes=(TO_TEN,)),
        Section(
            "pointers",
            "Lists that are pointed into, trained on 1…10",
            tuple(pointer_arm(rule, form) for rule in POINTED for form in FORMS),
            "What is left of a list is one word. Its position ids, coupled with those of the elements, say where it points, so "
            "that nothing has to be copied again and again.",
            usual=False,
            sizes=(TO_TEN,),
        ),
        Section(
            "meta",
            "Rules that were never seen",
            _arms("rule-programs"),
            "Trained on 1,000 list programs, each told before its input, and measured on 200 others: whoever has learned to "
            "follow what is told needs to see no sample of them. (Meta-RFFT adapts to the new rules first.)",
            usual=False,
            sizes=(GPU,),
        ),
        Section(
            "adaptation",
            "New rules from few samples",
            tuple(adapted_arm(form, told, seen) for form, told in FORMS.items() for seen in SEEN),
            "Five list programs of which there are 100 samples of each length in all, for 500 steps: after 4,000 steps on a "
            "thousand other programs, or alone. Measured on other inputs of these five.",
            usual=False,
            sizes=(GPU,),
        ),
        Section("small", "Coin flips, on two cores", SMALL, sizes=(CPU,)),
    ),
    seeds=3,
    claims=(
        _order("rule-coin-flips", "coin-flips"),
        _order("rule-digit-sum", "digit-sum"),
        _order("rule-addition", "addition"),
        _order("rule-last-letters", "last-letters"),
        *(_pointed_order(rule, 20) for rule in POINTED),
        adaptation_claim(FORMS["trace"], 10),
        Claim(
            "In the training range, every form is learned.",
            "scratchpad and whole trace at least 0.90 at n = 3, with the transformer",
            tuple(Check(arm, 3, "≥", 0.90) for arm in (SMALL_TRACE, SMALL_SCRATCHPAD)),
            section="small",
            size="cpu",
        ),
    ),
    note="What is right is the whole of what is said: of a trace every step, of a scratchpad every turn. A guess is right in "
    "half of the coin flips and in a ninth of the sums of digits where the answer alone is said, and never in the other forms, "
    "so that a failing trace may stand below a guess. Answers are read teacher-forced; whoever says all of it right after the "
    "right words says it after its own, too.",
    about=__doc__,
)
