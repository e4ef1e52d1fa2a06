"""What it takes to read a long sequence in pieces, by its length: seconds and peak memory.

Weights are as they were drawn: neither depends on what was learned.

Shapes: B = 1 sample, T tokens.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

import torch

from lengthlab.bench.measurement import Measurement
from lengthlab.evaluation.stream import say_in_pieces
from lengthlab.models import Model, Network, hybrid_block, lstm, lstm_hsa
from lengthlab.models.layout import Layout

VOCABULARY = 80
LENGTHS = {"cuda": (2**16, 2**18, 2**20, 2**22), "cpu": (2**15, 2**16, 2**17)}
"""Tokens, by the kind of device. Each is above the length up to which a sequence is read at once."""
WHOLE = {"cuda": 2**20, "cpu": 2**16}
"""Attention that reads everything again for every piece is read no further: its work grows with the square of the length."""
WIDTH = {"cuda": 256, "cpu": 64}
PEAK, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def readers(kind: str) -> dict[str, Model]:
    """By name: a state alone, with chunks of which a few are read, and with attention that reads everything."""
    width, chunk = WIDTH[kind], 64 if kind == "cuda" else 16
    sparse = lstm_hsa(width, heads=8 if kind == "cuda" else 4, chunk=chunk, chunks=8 if kind == "cuda" else 4)
    return {"lstm": lstm(width), "lstm-hsa": sparse, "hybrid-block": hybrid_block(width, blocks=1, heads=4, positions="none")}


def reading_costs(
    device: torch.device, say: Callable[[str], None], lengths: tuple[int, ...] | None = None, whole: int | None = None
) -> Iterator[Measurement]:
    """One sample of each length, read once by each model; a short one before, that nobody times."""
    longest = WHOLE[device.type] if whole is None else whole
    for name, model in readers(device.type).items():
        torch.manual_seed(0)
        network = model.build(VOCABULARY).to(device).eval()
        _read(network, 2**13)
        for tokens in lengths or LENGTHS[device.type]:
            if name == "hybrid-block" and tokens > longest:
                continue
            say(f"{name}, a sequence of {tokens:,} tokens")
            seconds, memory = _read(network, tokens)
            yield Measurement("reading", f"{tokens:,} tokens", name, 1, tokens, 0.0, (seconds,), memory)


def _read(network: Network, tokens: int) -> tuple[float, int]:
    """Seconds, and bytes at the peak beyond those before: of the GPU, or of this process. Asked is the last token."""
    device = next(network.parameters()).device
    tokens_BT = torch.randint(VOCABULARY, (1, tokens), generator=torch.Generator().manual_seed(0))
    before = _held(device)
    start = perf_counter()
    say_in_pieces(network, tokens_BT, Layout(query_BQ=torch.tensor([[tokens - 1]])))
    seconds = perf_counter() - start  # what was said is on the host, so nothing is under way
    return seconds, max(0, _peak(device) - before)


def _held(device: torch.device) -> int:
    """Bytes in use now, from which the peak is counted anew. 0 where the system does not say."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return torch.cuda.memory_allocated(device)
    try:
        RESET.write_text("5")  # the highest mark of resident memory falls to what is resident
    except OSError:
        return 0
    return _resident("VmRSS")


def _peak(device: torch.device) -> int:
    return torch.cuda.max_memory_allocated(device) if device.type == "cuda" else _resident("VmHWM")


def _resident(name: str) -> int:
    """Of this process, as Linux counts it; 0 elsewhere."""
    try:
        lines = PEAK.read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), 0)
