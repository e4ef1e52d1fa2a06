"""The paper's text read in other ways, as runs: does delayed training still work?"""

from __future__ import annotations

from dataclasses import replace

from lengthlab.experiments.dat.profile import Profile
from lengthlab.experiments.dat.runs import choices, run_of
from lengthlab.models import Attention, Lstm, Mlp, Model, chain, named, repeat, residual
from lengthlab.paper.cells import Cell
from lengthlab.paper.readings import Reading
from lengthlab.run import Run
from lengthlab.schedule import OFF, Phase, Schedule


def run_of_reading(reading: Reading, seed: int, profile: Profile) -> Run:
    """A delayed run on the task of Figure 1, read so."""
    run = run_of(Cell(reading.cell.part, reading.cell.task, reading.model, "delayed"), seed, profile)
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
    >>> from lengthlab.experiments.dat.profile import SHORT
    >>> network = lstm_in_each_block(replace(SHORT, width=16)).build(vocabulary=20)
    >>> [site.name for site in find(network, "attention")]
    ['body.0.attention', 'body.1.attention', 'body.2.attention', 'body.3.attention']
    """
    attend = named("attend", Attention(choices(profile)["heads"]))
    attention = named("attention", chain(residual(attend), residual(Mlp(profile.mlp))))
    block = chain(residual(Lstm()), attention)
    return Model("hybrid-block-lstm-in-each", profile.width, repeat(profile.blocks, block))
