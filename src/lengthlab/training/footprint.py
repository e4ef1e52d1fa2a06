"""The least memory that a run needs, worked out from its sizes: nothing is allocated, and nothing is refused that would fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lengthlab.errors import LabError
from lengthlab.evaluation.accuracy import drawn_together
from lengthlab.evaluation.stream import stream_bytes
from lengthlab.inspection.draws import tokens_of
from lengthlab.inspection.subject import count_parameters
from lengthlab.memory import FLOAT_BYTES, TOKEN_BYTES, in_bytes, memory_of
from lengthlab.models.model import Network
from lengthlab.spec.duration import BLOCK
from lengthlab.spec.run import Run

COPIES = 4
"""Of every weight: itself, its gradient, and two averages of the optimizer."""


def require_room(run: Run, device: str) -> None:
    """Refuse a run that cannot be trained on this device, or not be measured as far as it says.

    >>> import lengthlab as ll
    >>> run = ll.Run(ll.tasks.ModuloRecall(keys=8), ll.models.lstm(width=8), ll.end_to_end(5), lengths=(1, 2), batch=10**12)
    >>> require_room(run, "cpu")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    lengthlab.errors.LabError: lstm end-to-end seed 0 would need at least 12.2 PB of memory, and cpu has ...
    """
    _require(run, training_bytes(run), device)
    require_room_to_measure(run, run.measured_at)


def require_room_to_measure(run: Run, lengths: Sequence[int]) -> None:
    """Refuse lengths at which not even the samples have room; they are drawn on the CPU, whatever they are read on."""
    _require(run, measuring_bytes(run, max(lengths, default=1)), "cpu")


def _require(run: Run, needed: Mapping[str, int], device: str) -> None:
    total, there = sum(needed.values()), memory_of(device)
    if total > there:
        most = max(needed, key=needed.__getitem__)
        told = f"{run.title} would need at least {in_bytes(total)} of memory, and {device} has {in_bytes(there)}"
        raise LabError(f"{told}; most of it ({in_bytes(needed[most])}) for {most}")


def training_bytes(run: Run) -> dict[str, int]:
    """By what they are for: weights and tables, the data that is drawn at once, the logits of a step and their gradients."""
    longest, questions = run.drawn[1], len(run.task.questions)
    tokens, vocabulary = tokens_of(run.task, longest), run.task.vocabulary
    asked = 1 if isinstance(run.blueprint, Network) else tokens
    drawn = f"{BLOCK} batches of {run.batch} sequences of {tokens} tokens, which are drawn at once (batch, lengths)"
    return {
        f"{count_parameters(run.blueprint):,} parameters, their gradients and averages (width)": _weight_bytes(run),
        "the tables that the model keeps": sum(buffer.nbytes for buffer in run.blueprint.buffers()),
        drawn: TOKEN_BYTES * BLOCK * run.batch * tokens * (1 + questions),
        f"logits of {vocabulary} words for a batch of {run.batch}": 2 * FLOAT_BYTES * run.batch * asked * vocabulary,
    }


def _weight_bytes(run: Run) -> int:
    """What is not trained has no gradient and no averages."""
    return sum(each.nbytes * (COPIES if each.requires_grad else 1) for each in run.blueprint.parameters())


def measuring_bytes(run: Run, length: int) -> dict[str, int]:
    """By what they are for: weights, the samples of a length that are drawn at once, what a stream keeps of one."""
    tokens, questions, drawn = tokens_of(run.task, length), len(run.task.questions), drawn_together(length)
    samples = "1 sample" if drawn == 1 else f"{drawn} samples"
    return {
        f"{count_parameters(run.blueprint):,} parameters (width)": FLOAT_BYTES * count_parameters(run.blueprint),
        f"{samples} of length {length}, where it is measured (evaluate)": TOKEN_BYTES * drawn * tokens * (1 + questions),
        f"the keys and values of one sample of length {length}": stream_bytes(run.blueprint, tokens),
    }


def streams_at_once(run: Run, lengths: Sequence[int], most: int) -> int:
    """How many samples of the longest of these lengths may be read side by side, such that their keys and values take at most
    half of the machine's memory; one at the least.
    """
    each = stream_bytes(run.blueprint, tokens_of(run.task, max(lengths)))
    return max(1, min(most, memory_of("cpu") // 2 // each)) if each else most
