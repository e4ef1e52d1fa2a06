"""Run folders written by hand, as many as a page has to hold: settings by rate, model and training, each with seeds."""

from __future__ import annotations

import json
import random
from itertools import product
from pathlib import Path
from typing import Any

LENGTHS = (5, 10, 20, 40, 80, 160, 320, 640)
MODELS = ("hybrid-block", "lstm", "transformer", "sandwich")
PORTRAIT = {
    "sample": ["<bos>", "k1", "2", "<modulo>", "1", "<recall>", "k1", "2"],
    "scored": {"modulo": [4], "recall": [7]},
    "parts": [
        {"depth": 0, "text": "embedding", "path": "embedding", "parameters": 160, "off": False},
        {"depth": 1, "text": "attention, 2 heads", "path": "body.attend", "parameters": 1024, "off": True},
    ],
    "theory": {"says": "promised", "citation": "Lemma 7", "reason": "tokens do not repeat"},
}


LINE = {"length": 20, "question": "modulo"}
DIAGNOSIS: dict[str, Any] = {
    **{"version": 1, "run": "0", "task": "modulo-recall", "model": "lstm", "trained": [1, 10], "seconds": 9.0},
    **{"words": "Modulo is carried by the recurrence.", "notes": ["no attention is at work"]},
    "pathways": [LINE | {"samples": 200, "chance": 0.2, "whole": 0.5, "cut": {"attention": 0.4, "another": 0.2}}],
    "aims": [
        LINE
        | {"layer": "body.attention.0.attend", "head": head, "samples": 100, "weight": 0.5, "rank": 2.0, "entropy": 1.5}
        | {"right": 0.5, "wrong": 0.3, "spread": 0.2}
        for head in range(2)
    ],
    "states": [LINE | {"samples": 500, "right": 0.6, "q": 1.2}],
    "breakings": [
        {
            "question": "modulo",
            "rule": "drift",
            "growth": 1.0,
            "q": 0.5,
            "predicted": 15.0,
            "measured": 14.0,
            "measured_to": 640,
        }
    ],
    "remainders": [LINE | {"what": "answer 1", "right": 0.5, "chance": 0.2}],
    "pictures": [
        {
            "kind": "attention",
            "question": "modulo",
            "length": 20,
            "right": False,
            "tokens": 60,
            "rows": [["head 0", "0123456789" * 6]],
        }
        | {"mark": 9}
    ],
}
"""What `lengthlab why` would have kept of a run."""


def write_run(store: Path, number: int, lr: float, model: str, training: str, seed: int, lines: int = 60, **more: Any) -> Path:
    """One finished run; everything in it follows from its number."""
    draw = random.Random(number)
    run = f"{number:012x}"
    folder = store / run
    folder.mkdir(parents=True)
    first = {"kind": "phase", "length": 500, "lr": lr, "off": ["attention"] if training == "delayed" else []}
    schedule = {"kind": "schedule", "name": training, "phases": [first, {"kind": "phase", "length": 1000, "lr": lr}]}
    task = {"kind": "modulo-recall", "modulus": 5}
    content = {"task": task, "model": {"name": model, "width": 32}, "schedule": schedule, "seed": seed, "lengths": [1, 10]}
    far = draw.uniform(5, 400)
    counts: list[dict[str, Any]] = [
        {"length": n, "question": asked, "correct": int(1000 / (1 + (n / far) ** 3) * draw.uniform(0.97, 1)), "total": 1000}
        for n in LENGTHS
        for asked in ("all", "modulo", "recall")
    ]
    for count in counts:
        if count["question"] == "recall":  # an answer of four tokens, half of the wrong ones right
            count |= {"tokens": 4000, "right_tokens": 2000 + 2 * count["correct"]}
    told = {"run": run, "model": model, "task": "modulo-recall", "training": training, "seed": seed, "counts": counts}
    made = {
        **{"settings": f"{lr} {model} {training}", "lengths": [1, 10], "steps": 1500, "ends": [500, 1500], "batch": 64},
        **{"chance": {"modulo": 0.2, "recall": 0.1, "all": 0.02}, "seconds": 12.5, "precision": "fp32", "commit": "abc1234"},
        **{"hardware": "a slide rule", "versions": {"torch": "2.13.0", "python": "3.11.7"}},
        **{"date": "2025-01-01T00:00:00+00:00", "portrait": PORTRAIT},
    }
    log = [_line(step, lines, lr, draw) for step in range(1, lines + 1)]
    (folder / "run.json").write_text(json.dumps(content | {"batch": 64} | more))
    (folder / "result.json").write_text(json.dumps(told | made))
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in log))
    return folder


def _line(number: int, lines: int, lr: float, draw: random.Random) -> dict[str, Any]:
    step = number * 1500 // lines
    line = {"step": step, "phase": 1 if step <= 500 else 2, "loss": 3 / number + draw.uniform(0, 0.02), "lr": lr}
    return line | ({"accuracy": {"10": min(1, number / lines), "30": min(1, number / lines / 2)}} if number % 10 == 0 else {})


def write_runs(store: Path, runs: int, seeds: int = 3) -> Path:
    """So many finished runs in a store."""
    rates = [round(1e-4 * 1.1**power, 7) for power in range(-(-runs // (seeds * len(MODELS) * 2)))]
    chosen = list(product(rates, MODELS, ("end-to-end", "delayed"), range(seeds)))[:runs]
    for number, (lr, model, training, seed) in enumerate(chosen):
        write_run(store, number, lr, model, training, seed)
    return store
