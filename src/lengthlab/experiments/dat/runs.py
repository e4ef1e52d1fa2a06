"""A cell of the paper as a run."""

from __future__ import annotations

from lengthlab.experiments.dat.profile import Profile, Recipe
from lengthlab.models import MODELS, Model
from lengthlab.models.paper import AttentionChoices
from lengthlab.paper.cells import Cell
from lengthlab.run import Run
from lengthlab.tasks import ModuloRecall


def run_of(cell: Cell, seed: int, profile: Profile) -> Run:
    """The run that gives a cell its rows.

    >>> from lengthlab.experiments.dat.profile import PROFILES
    >>> run = run_of(Cell("table2", "modulo", "lstm", "end-to-end"), 0, PROFILES["paper"])
    >>> run.task.name, run.model.name, run.steps
    ('modulo', 'lstm', 153600)
    """
    recipe = profile.recipe(cell)
    return Run(
        task=_task(cell.task, profile),
        model=_model(cell.model, profile, recipe),
        schedule=recipe.schedule,
        lengths=profile.lengths,
        batch=recipe.batch,
        seed=seed,
        evaluate=profile.evaluate,
        optimizer=recipe.optimizer,
    )


def _task(name: str, profile: Profile) -> ModuloRecall:
    """Named by its questions."""
    return ModuloRecall(profile.modulus, profile.values, profile.keys, questions=tuple(name.split("-")))


def _model(name: str, profile: Profile, recipe: Recipe) -> Model:
    if name == "lstm":
        return MODELS[name](profile.width)
    return MODELS[name](profile.width, silent=recipe.silent, positions=recipe.positions, **choices(profile))


def choices(profile: Profile) -> AttentionChoices:
    """What a profile says of attention."""
    return {"blocks": profile.blocks, "heads": profile.heads, "mlp": profile.mlp}
