"""A measurement gives the same numbers on one core and on several, at the end of training and afterwards."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from lengthlab.device import settled
from lengthlab.evaluation import accuracy as measuring
from lengthlab.evaluation.accuracy import accuracy, evaluation_set
from lengthlab.evaluation.cores import MOST, cores, map_batches
from lengthlab.models import MODELS
from lengthlab.spec.run import Run
from lengthlab.spec.schedule import end_to_end
from lengthlab.tasks import ModuloRecall
from lengthlab.training import measure, train
from small_runs import CPU, end_to_end_run, folder_of

TASK = ModuloRecall(modulus=3, values=5, keys=64)


def networks(name: str, number: int, width: int = 64) -> list[nn.Module]:
    """Copies of one, wide enough that torch would share its products among threads."""
    run = Run(TASK, MODELS[name](width), end_to_end(1), lengths=(1, 8), batch=4)
    return [run.network() for _ in range(number)]


@pytest.mark.parametrize("name", ["transformer", "lstm", "hybrid-block"])
def test_one_core_and_several_compute_the_same_bits(name: str) -> None:
    batches = [batch.tokens_BT for batch in evaluation_set(TASK, 40, samples=200)]

    def logits(network: nn.Module, tokens_BT: Tensor) -> Tensor:
        out: Tensor = network(tokens_BT)
        return out

    with settled(CPU):
        one, two, three = (map_batches(logits, networks(name, number), batches) for number in (1, 2, 3))
    assert len(one) == 4
    for alone, *others in zip(one, two, three, strict=True):
        assert not alone.requires_grad
        assert all(torch.equal(alone, other) for other in others)


def test_one_core_and_several_count_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(measuring.TOKENS, "cpu", 2**10)  # several batches of each length
    with settled(CPU):
        network, *copies = networks("hybrid-block", 3)
        assert accuracy(network, TASK, [8, 40], 200) == accuracy(network, TASK, [8, 40], 200, copies=copies)


def test_a_length_measured_later_counts_what_the_end_of_training_would_have(tmp_path: Path) -> None:
    one = train(end_to_end_run(evaluate=(3, 12)), tmp_path / "one")
    train(end_to_end_run(evaluate=(3,)), tmp_path / "two")
    later = measure(folder_of(tmp_path / "two", end_to_end_run()), [3, 12])
    assert later.counts == one.counts


def test_batches_are_computed_at_the_same_time_and_drawn_one_by_one() -> None:
    meet = threading.Barrier(2, timeout=30)
    drawn: list[int] = []

    def draws() -> object:
        for number in range(4):
            drawn.append(number)
            yield number

    def work(network: nn.Module, batch: int) -> tuple[int, int, int]:
        ahead = len(drawn)
        meet.wait()  # alone it would wait in vain
        return batch, ahead, torch.get_num_threads()

    found = map_batches(work, [nn.Identity(), nn.Identity()], draws())
    assert [batch for batch, _, _ in found] == [0, 1, 2, 3]
    assert all(ahead <= batch + 2 for batch, ahead, _ in found)
    assert {threads for _, _, threads in found} == {1}


@pytest.mark.parametrize("number", [1, 2])
def test_an_error_in_a_batch_goes_up_and_the_rest_is_left(number: int) -> None:
    begun: list[int] = []

    def work(network: nn.Module, batch: int) -> int:
        begun.append(batch)
        if batch == 1:
            raise ValueError("no")
        return batch

    with pytest.raises(ValueError, match="no"):
        map_batches(work, [nn.Identity()] * number, iter(range(10_000_000)))
    assert len(begun) < 5_000_000


def test_a_machine_with_many_cores_does_not_run_out_of_memory() -> None:
    assert 1 <= cores(CPU) <= MOST
    assert cores(torch.device("cuda")) == 1
