"""New rules from few samples: what a model that has followed many other rules needs to see of one. Arms of the study `rules`.

After Meta-RFFT (Hu et al. 2025, arXiv 2502.11525), whose models follow many rules first and are then adapted to a new one with
1,000 samples of each length. Here five list programs are new, each told before its input as those before were, and 100 samples
of each length are all that there are of them. The rate falls to nothing, rises again for the new rules and falls with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from lengthlab.experiments.study import Arm, At, Check, Claim
from lengthlab.store.rows import ALL

if TYPE_CHECKING:
    from lengthlab.experiments.rule_recipe import Recipe
    from lengthlab.rules.wording import Form
    from lengthlab.spec.run import Run

ASKED = "few-rule-programs"
"""The new programs, as questions of the mixture name them."""
SEEN = {"before": "a thousand programs, then few samples", "alone": "few samples alone"}
"""What a model is trained on, as a reader knows it."""
KNOWN, NEW, SAMPLES = 1_000, 5, 100
"""Programs that are trained on first, programs that are new, and samples of each length for all new ones together."""
STEPS = 500
"""On the samples of new programs."""


def adapted_arm(form: Form, told: str, seen: str) -> Arm:
    """
    >>> str(adapted_arm("trace", "whole trace", "alone"))
    'new programs, whole trace, few samples alone'
    """
    about = (("form", told), ("trained on", SEEN[seen]))
    task, label = "rule-programs+few-rule-programs", f"new programs, {told}, {SEEN[seen]}"
    return Arm(f"{form}, {seen}", "transformer", task, "adapted", label, about)


def adapted_run(arm: Arm, recipe: Recipe, lengths: tuple[int, int]) -> Run:
    """The run of an arm; measured are the new programs alone, on inputs that are drawn anew."""
    from lengthlab.spec.rate import Cosine
    from lengthlab.spec.run import Run
    from lengthlab.spec.schedule import Phase, Schedule
    from lengthlab.tasks import Few, Mixture, RulePrograms

    name, seen = arm.name.split(", ")
    form = cast("Form", name)
    known, new = RulePrograms(form, programs=KNOWN), RulePrograms(form, first=KNOWN, programs=NEW)
    first = recipe.first + recipe.joint
    before = Phase(first, lr=Cosine(recipe.peak, first // 40), mixture=(1, 0))
    adapting = Phase(STEPS, lr=Cosine(recipe.peak, STEPS // 10), mixture=(0, 1))
    schedule = Schedule("adapted", (before, adapting) if seen == "before" else (adapting,))
    task = Mixture((known, Few(new, SAMPLES)), weights=(0, 1), tag=False, measured=(0, 1))
    return Run(task, recipe.model("log-n"), schedule, lengths, recipe.batch, optimizer=recipe.optimizer)


def of_new(question: str) -> str:
    """A question about the new programs.

    >>> of_new("result"), of_new("all")
    ('few-rule-programs/result', 'all')
    """
    return question if question == ALL else f"{ASKED}/{question}"


def adaptation_claim(told: str, length: int) -> Claim:
    """That it pays to have followed other rules."""
    more, less = (adapted_arm("trace", told, seen) for seen in SEEN)
    return Claim(
        "Who has followed a thousand rules needs few samples of a new one.",
        f"new programs, whole trace, results right at n = {length}: above few samples alone",
        (Check(more, length, ">", At(arm=less), of_new("result")),),
        section="adaptation",
        size="gpu",
    )
