"""Leave-Square-Out with a language model of Hugging Face: fine-tuned on `42+7=` → `49` outside the square, asked everywhere.

The settings are those of Hu et al. 2024 (arXiv 2402.17709) for GPT-2: batches of 30, 1e-4 along a cosine after a warm-up of a
hundredth of the steps, 100 epochs, all weights, greedy answers.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from lengthlab.integrations.finetuning import Recipe, finetune
from lengthlab.integrations.language_model import LanguageModel, fingerprint, read_language_model
from lengthlab.rules.plane import HELD, NONE, SIDE, Plane, Split
from lengthlab.store import Folder
from lengthlab.store.ids import hash_of

BATCH, RATE, WARM_UP = 30, 1e-4, 0.01
SAID = 8
"""Tokens that an answer may have."""


def pair_rows(split: Split, held: bool = False) -> list[dict[str, str]]:
    """Pairs that are trained on, or held out, as prompts and completions.

    >>> pair_rows(Split("square", half=0, centre=(42, 7)), held=True)
    [{'prompt': '42+7=', 'completion': '49'}]
    """
    return [{"prompt": f"{a}+{b}=", "completion": str(a + b)} for a, b in split.pairs(held).tolist()]


def tuned_planes(
    path: Path, half: int, centre: tuple[int, int], epochs: float, lr: float, seed: int, store: Path, device: torch.device
) -> list[Plane]:
    """Planes of a model after training, a square held out and as many pairs at random; with 0 epochs, as it is."""
    planes = []
    for held in HELD:
        split, lm = Split(held, half, centre), read_language_model(path)
        lm.require_room("99+99=", "198", "a sum of two numbers")
        if epochs:
            recipe = Recipe(0, epochs, BATCH, lr, WARM_UP, seed=seed)
            content = {"plane": [held, half, *centre], "model": fingerprint(path), "schedule": recipe.content, "seed": seed}
            folder = Folder(store / f"square-{hash_of(content)}")
            with folder.lock():
                lm = finetune(lm, pair_rows(split), recipe, folder.path, device)
        else:
            lm.model.to(device)
        planes.append(Plane(lm.name, split, seed, said_to_all(lm)))
    return planes


def said_to_all(lm: LanguageModel) -> np.typing.NDArray[np.int64]:
    """said_AB: its answer to every pair, NONE where that is no number."""
    prompts = [f"{a}+{b}=" for a in range(SIDE) for b in range(SIDE)]
    return np.array([_number(text) for text in lm.answers(prompts, SAID)], np.int64).reshape(SIDE, SIDE)


def _number(text: str) -> int:
    """
    >>> _number(" 49 "), _number("49 or so"), _number("")
    (49, -1, -1)
    """
    said = text.strip()
    return int(said) if said.isdecimal() and said.isascii() and len(said) < 10 else NONE
