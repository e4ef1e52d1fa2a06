"""What the machine can do at best: one large matrix product, timed."""

from __future__ import annotations

import os
from time import perf_counter

import torch

GPU_SIZE, CPU_SIZE = 8192, 1024
REPEATS = 5
BATCH_SECONDS = 0.1


def peaks(device: torch.device) -> dict[str, float]:
    """Floating-point operations a second, by what does them: `bf16` on a GPU, `one core` and `all cores` of a CPU."""
    if device.type == "cuda":
        return {"bf16": matmul_peak(device, torch.bfloat16, GPU_SIZE)}
    threads = torch.get_num_threads()
    found = {}
    try:
        for name, number in (("one core", 1), ("all cores", os.cpu_count() or 1)):
            torch.set_num_threads(number)
            found[name] = matmul_peak(device, torch.float32, CPU_SIZE)
    finally:
        torch.set_num_threads(threads)
    return found


def matmul_peak(device: torch.device, dtype: torch.dtype, size: int) -> float:
    """The best of a few tries, operations a second.

    >>> matmul_peak(torch.device("cpu"), torch.float32, size=64) > 0
    True
    """
    a, b = torch.randn(2, size, size, device=device).to(dtype)
    out = torch.empty_like(a)
    _seconds(a, b, out, 1)  # warms up
    times = max(1, round(BATCH_SECONDS / _seconds(a, b, out, 1)))
    seconds = min(_seconds(a, b, out, times) / times for _ in range(REPEATS))
    return 2 * size**3 / seconds


def _seconds(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, times: int) -> float:
    _wait(a.device)
    start = perf_counter()
    for _ in range(times):
        torch.mm(a, b, out=out)
    _wait(a.device)
    return perf_counter() - start


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
