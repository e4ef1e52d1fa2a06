"""Batches spread over the cores of a machine, each computed by one thread: the same numbers on one core and on many.

Torch's own threads share a product of matrices among them, and the order of its sums, so its last bits, then depend on their
number. Here a batch is one thread's, whole; torch lets go of the interpreter while it computes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch
from torch import nn

B = TypeVar("B")
R = TypeVar("R")

MOST = 8
"""Batches under way at a time: each takes memory."""


def cores(device: torch.device) -> int:
    """How many batches to compute at a time; a GPU is full with one."""
    return min(MOST, os.cpu_count() or 1) if device.type == "cpu" else 1


def map_batches(work: Callable[[nn.Module, B], R], networks: Sequence[nn.Module], batches: Iterable[B]) -> list[R]:
    """`work(network, batch)` of every batch, in order, without gradients. As many threads as there are networks, which are
    copies of one: a network may remember something while it computes, so no two threads have the same.

    >>> map_batches(lambda network, batch: network(batch).tolist(), [nn.Identity(), nn.Identity()], torch.arange(3))
    [0, 1, 2]
    """
    with torch.no_grad():
        if len(networks) == 1:
            return [work(networks[0], batch) for batch in batches]
    waiting, turn, stop = enumerate(batches), threading.Lock(), threading.Event()
    found: dict[int, R] = {}

    def compute(network: nn.Module) -> None:
        torch.set_num_threads(1)  # both this and that there are no gradients is every thread's own
        with torch.no_grad():
            while not stop.is_set():
                with turn:
                    number, batch = next(waiting, (None, None))
                if number is None or batch is None:
                    return
                found[number] = work(network, batch)

    with ThreadPoolExecutor(len(networks)) as pool:
        try:
            for thread in [pool.submit(compute, network) for network in networks]:
                thread.result()
        finally:
            stop.set()  # an error or Ctrl-C does not wait for the batches that nobody has begun
    return [found[number] for number in range(len(found))]
