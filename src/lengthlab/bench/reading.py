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
from lengthlab.models import Model, Network, lstm, lstm_hsa, transformer
from lengthlab.models.layout import Layout

VOCABULARY = 80
LENGTHS = {"cuda": (2**16, 2**18, 2**20, 2**22), "cpu": (2**16, 2**18, 2**20)}
"""Tokens, by the kind of device; more than are read at once."""
SHORT = {"cuda": (2**14, 2**16, 2**18), "cpu": (2**14, 2**15, 2**16)}
"""Of attention that reads everything: its work grows with the square of the length. Not if it were one block: asked is the last
token, and a last block has no query but there.
"""
WALKED = 2**20
"""The LSTM alone, which goes from token to token, is timed no further: what it takes grows with the length and nothing else."""
PEAK, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def readers(kind: str) -> dict[str, Model]:
    """By name: a state alone, two states with chunks of which a few are read, and attention that reads everything."""
    width, heads, chunk, chunks = (256, 8, 64, 8) if kind == "cuda" else (64, 4, 16, 4)
    sparse = {name: lstm_hsa(width, name, heads=heads, chunk=chunk, chunks=chunks) for name in ("lstm", "mamba2")}
    whole = transformer(width, blocks=2, heads=4, positions="none")
    return {"lstm": lstm(width), **{f"{name}-hsa": model for name, model in sparse.items()}, "transformer": whole}


def lengths_of(name: str, kind: str) -> tuple[int, ...]:
    """At which a reader is timed.

    >>> lengths_of("lstm-hsa", "cuda")[-1], lengths_of("lstm", "cuda")[-1], lengths_of("transformer", "cuda")[-1]
    (4194304, 1048576, 262144)
    """
    if name == "transformer":
        return SHORT[kind]
    return tuple(tokens for tokens in LENGTHS[kind] if name != "lstm" or tokens <= WALKED)


def reading_costs(device: torch.device, say: Callable[[str], None], lengths: tuple[int, ...] = ()) -> Iterator[Measurement]:
    """One sample of each length, read once by each model; a short one before, that nobody times. `lengths`: for all of them."""
    for name, model in readers(device.type).items():
        torch.manual_seed(0)
        network = model.build(VOCABULARY).to(device).eval()
        _read(network, 2**13)  # a longer one would leave memory behind, which the process has then already taken
        for tokens in lengths or lengths_of(name, device.type):
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
