"""A user's own model, read with before it is trained: the shape of its logits, whether it looks ahead, and whether it reads as
far as it will be measured.

Shapes: B samples, T tokens, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import torch
from torch import Generator, Tensor, nn

from lengthlab.errors import LabError, explain, require
from lengthlab.inspection.carry import disturb
from lengthlab.inspection.draws import untouched
from lengthlab.inspection.look_ahead import find_look_ahead
from lengthlab.inspection.part_shapes import parts_watched
from lengthlab.inspection.position_check import check_positions, unread_positions
from lengthlab.inspection.reading import in_full, quiet
from lengthlab.models.layout import Layout
from lengthlab.models.model import Network, logits
from lengthlab.spec import content
from lengthlab.spec.run import Run
from lengthlab.spec.source import Sources, is_reference
from lengthlab.tasks import Batch

PATIENCE = 3.0
"""Seconds that a forward at the greatest length may take, as far as that can be foretold."""


@dataclass(frozen=True)
class _Sample:
    """What a network reads: the last token of a sequence is only ever an answer."""

    tokens_BT: Tensor
    position_BT: Tensor | None

    @classmethod
    def of(cls, batch: Batch, device: torch.device) -> _Sample:
        position_BT = None if batch.position_BT is None else batch.position_BT[:, :-1].to(device)
        return cls(batch.tokens_BT[:, :-1].to(device), position_BT)

    def beginning(self, tokens: int) -> _Sample:
        position_BT = None if self.position_BT is None else self.position_BT[:, :tokens]
        return _Sample(self.tokens_BT[:, :tokens], position_BT)


def examine_model(run: Run, device: torch.device) -> str:
    """Raise what is known to go wrong with a run's model. What could not be tried, in words; nothing, where all was.

    >>> import lengthlab as ll
    >>> run = ll.Run(ll.tasks.ModuloRecall(keys=8), ll.models.lstm(width=8), ll.end_to_end(5), lengths=(1, 2), batch=4)
    >>> examine_model(run, torch.device("cpu"))
    ''
    """
    far = max((*run.measured_at, run.trained[1]))
    longest = _drawn(run, far, 1)
    check_positions(run, longest, far)
    name, own = _named(run)
    if not own:
        return unread_positions(run, longest)
    network, place = _readable(run, name, device)
    _check_apart(run, network, name, place)
    untried = _check_far(run, network, name, longest, place)
    _check_causal(run, network, name, place)
    return untried


def _drawn(run: Run, length: int, samples: int) -> Batch:
    try:
        with untouched():
            return run.task.draw(torch.full((samples,), length), Generator().manual_seed(0))
    except LabError:
        raise
    except Exception as error:  # a user's own task
        raise LabError(f"task '{run.task.name}' cannot draw length {length}: {explain(error)}") from error


def _named(run: Run) -> tuple[str, bool]:
    """What the model is called, by its file where it is in one, and whether anything of it is not ours."""
    sources = Sources()
    data = content.to_json(run.model, sources)
    maker = data["maker"]["name"] if isinstance(data.get("maker"), dict) else data["kind"]
    name = maker if is_reference(maker) else f"model '{run.model.name}'"
    return name, sources.has_any or not isinstance(run.blueprint, Network)


def _readable(run: Run, name: str, device: torch.device) -> tuple[nn.Module, torch.device]:
    """The network, and where it can be read with: on the CPU, where a wrong index is an error and not the end of the process;
    or else, with kernels of its own, on the device.
    """
    network, cpu = in_full(run.network()), torch.device("cpu")
    try:
        _check_shape(run, network, name, cpu)
        return network, cpu
    except LabError:
        if device.type == "cpu":
            raise
    _check_shape(run, network.to(device), name, device)
    return network, device


def _check_shape(run: Run, network: nn.Module, name: str, device: torch.device) -> None:
    """Of one sequence and of two: what drops a side of one is found."""
    for samples in (2, 1):
        _check_shape_of(_Sample.of(_drawn(run, run.trained[1], samples), device), run, network, name)


def _check_shape_of(sample: _Sample, run: Run, network: nn.Module, name: str) -> None:
    shape = tuple(sample.tokens_BT.shape)
    try:
        with parts_watched(network):
            found = _read(network, sample)
    except LabError as error:
        raise LabError(f"{name}: {error}") from error.__cause__
    except Exception as error:  # a user's own forward
        raise LabError(f"{name} fails on token ids of shape {shape}: {explain(error)}") from error
    expected = (*shape, run.task.vocabulary)
    got = str(tuple(found.shape)) if isinstance(found, Tensor) else f"a {type(found).__name__}"
    require(got == str(expected), f"expected logits of shape {expected} from {name}, got {got}")
    require(bool(found.isfinite().all()), f"{name} gives logits that are not finite before it is trained")


def _check_apart(run: Run, network: nn.Module, name: str, device: torch.device) -> None:
    """What a sequence comes to does not change with the one beside it: batches of one shape, so that random numbers are the
    same.
    """
    two = _Sample.of(_drawn(run, run.trained[1], 2), device)
    both_BTV, apart = _read(network, two), 0.0
    for row in (0, 1):
        twice = _Sample(two.tokens_BT[row].expand_as(two.tokens_BT), two.position_BT)
        change_TV = _read(network, twice)[row] - both_BTV[row]
        apart = max(apart, float(change_TV.abs().max() / both_BTV.abs().max().clamp(min=1e-6)))
    told = "reads the sequences of a batch together: what it says of one changes with the other (batch_first=True?)"
    require(apart < 1e-2, f"{name} {told}")


def _read(network: nn.Module, sample: _Sample) -> Tensor:
    """The same whenever it is read: with the same random numbers, where it draws some in spite of eval mode."""
    with torch.no_grad(), untouched(), quiet():
        torch.manual_seed(0)
        return logits(network, sample.tokens_BT, Layout(sample.position_BT))


def _check_causal(run: Run, network: nn.Module, name: str, device: torch.device) -> None:
    """The weights of the network are lost: many begin with maps of zeros, through which nothing is seen yet."""
    sample = _Sample.of(_drawn(run, run.trained[1], 1), device)
    disturb(network)
    if not _read(network, sample).isfinite().all():
        network = in_full(run.network()).to(device)
    found = find_look_ahead(
        lambda tokens_1T: _read(network, _Sample(tokens_1T, sample.position_BT)), sample.tokens_BT, run.task.vocabulary
    )
    if found is None:
        return
    earlier, later = found
    seen = f"the token at position {later}" if later is not None else "tokens that come later"
    told = f"of {sample.tokens_BT.shape[1]} tokens, its output at position {earlier} changes with {seen}"
    raise LabError(f"{name} is not causal: {told}, so it can read the answers; let it see no token before its turn")


def _check_far(run: Run, network: nn.Module, name: str, longest: Batch, device: torch.device) -> str:
    """One sequence of the greatest length that will be measured, twice as many tokens at a time, or as many as there is time
    for: attention takes four times as long for twice as many.
    """
    sample, far = _Sample.of(longest, device), max(run.measured_at)
    tokens = sample.tokens_BT.shape[1]
    works = min(_drawn(run, run.trained[1], 1).tokens_BT.shape[1] - 1, tokens)
    seconds = _seconds(network, sample.beginning(works))
    while works < tokens and 4 * seconds < PATIENCE:
        tried = min(2 * works, tokens)
        try:
            seconds = _seconds(network, sample.beginning(tried))
        except Exception as error:  # a user's own forward
            told = f"works on {works} tokens and fails on {tried}: {explain(error)}"
            beyond = f"length {far}, where it is to be measured, has {tokens}"
            raise LabError(f"{name} {told}; {beyond}: let it read further, or measure less far (evaluate)") from error
        works = tried
    if works == tokens:
        return ""
    return f"{name} was tried on {works} tokens ({seconds:.1f} s), not on the {tokens} of length {far}: that would take long"


def _seconds(network: nn.Module, sample: _Sample) -> float:
    """How long it takes to read a sample, of which it gives a row of logits for each token."""
    start = perf_counter()
    found = _read(network, sample)
    require(found.shape[:2] == sample.tokens_BT.shape, f"it gives back shape {tuple(found.shape)}")
    return perf_counter() - start
