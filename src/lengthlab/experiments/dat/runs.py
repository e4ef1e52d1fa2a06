"""An arm of the paper as a run, and the paper's text read in other ways."""

from __future__ import annotations

from dataclasses import replace

from lengthlab.experiments.dat.profile import PROFILES, Profile, Recipe
from lengthlab.experiments.dat.readings import READINGS, Reading
from lengthlab.experiments.study import Arm
from lengthlab.models import MODELS, Attention, Lstm, Mlp, Model, chain, named, repeat, residual
from lengthlab.models.paper import AttentionChoices
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import OFF, Phase, Schedule
from lengthlab.tasks import ModuloRecall


def run_at(arm: Arm, size: str) -> Run:
    """The run that gives an arm its rows; the sizes of the paper are profiles."""
    readings = {reading.arm: reading for reading in READINGS}
    profile = PROFILES[size]
    return run_of_reading(readings[arm], profile) if arm in readings else run_of(arm, profile)


def run_of(arm: Arm, profile: Profile, seed: int = 0) -> Run:
    """A line of a table.

    >>> from lengthlab.experiments.dat.arms import arm_of
    >>> run = run_of(arm_of("table2", "lstm"), PROFILES["paper"])
    >>> run.task.name, run.model.name, run.steps
    ('modulo', 'lstm', 153600)
    """
    recipe = profile.recipe(arm)
    return Run(
        task=ModuloRecall(profile.modulus, profile.values, profile.keys, questions=tuple(arm.task.split("-"))),
        model=_model(arm.model, profile, recipe),
        schedule=recipe.schedule,
        lengths=profile.lengths,
        batch=recipe.batch,
        seed=seed,
        optimizer=recipe.optimizer,
    )


def _model(name: str, profile: Profile, recipe: Recipe) -> Model:
    if name == "lstm":
        return MODELS[name](profile.width)
    return MODELS[name](profile.width, silent=recipe.silent, positions=recipe.positions, **choices(profile))


def choices(profile: Profile) -> AttentionChoices:
    """What a profile says of attention."""
    return {"blocks": profile.blocks, "heads": profile.heads, "mlp": profile.mlp}


def run_of_reading(reading: Reading, profile: Profile) -> Run:
    """A delayed run on the task of Figure 1, read so."""
    run = run_of(replace(reading.arm, model=reading.model, training="delayed"), profile)
    model = lstm_in_each_block(profile) if reading.lstms == "each block" else run.model
    phases = tuple(_read(phase, reading) for phase in run.schedule.phases)
    return replace(run, model=model, schedule=Schedule(run.schedule.name, phases))


def _read(phase: Phase, reading: Reading) -> Phase:
    """A phase with attention off, as the reading has it; the others as they are."""
    if not phase.off:
        return phase
    return replace(phase, off=OFF[reading.covers], asks=() if reading.asks == "both" else (reading.asks,))


def lstm_in_each_block(profile: Profile) -> Model:
    """The hybrid block with all of it repeated: LSTM, attention and MLP in every block. `attention` and `attend` mean in each
    block what they mean in the paper's seven: attention with its MLP, and the attention function alone.

    >>> from lengthlab.switch import find
    >>> network = lstm_in_each_block(replace(PROFILES["short"], width=16)).build(vocabulary=20)
    >>> [site.name for site in find(network, "attention")]
    ['body.0.attention', 'body.1.attention', 'body.2.attention', 'body.3.attention']
    """
    attend = named("attend", Attention(choices(profile)["heads"]))
    attention = named("attention", chain(residual(attend), residual(Mlp(profile.mlp))))
    block = chain(residual(Lstm()), attention)
    return Model("hybrid-block-lstm-in-each", profile.width, repeat(profile.blocks, block))
