"""A causal language model of Hugging Face in a folder of this disk: read, asked by greedy generation, nothing downloaded.

Shapes: B prompts, T tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig
from transformers.utils import logging as advice

from lengthlab.errors import LabError, cut, require
from lengthlab.integrations.configs import quiet

WEIGHTS = ("*.safetensors", "*.bin")
TABLE = ("max_position_embeddings", "n_positions", "n_ctx")
"""What configurations call the length of their table of positions."""
PIECE = 2**20
"""Bytes at each end of a file by which it is told from others."""
TOKENS = 2**14
"""In one forward pass of generation at the most."""


@dataclass(frozen=True)
class LanguageModel:
    """A model with its tokenizer."""

    path: Path
    model: Any
    tokenizer: Any

    @property
    def name(self) -> str:
        return self.path.resolve().name

    @property
    def longest(self) -> int | None:
        """Tokens of a prompt and its answer at the most; None where the configuration does not say."""
        config = self.model.config.get_text_config()
        return next((int(found) for name in TABLE if (found := getattr(config, name, None))), None)

    @property
    def pad(self) -> int:
        known = self.tokenizer.pad_token_id
        return int(self.tokenizer.eos_token_id if known is None else known)

    def prompt(self, text: str) -> list[int]:
        return list(self.tokenizer(text)["input_ids"])

    def completion(self, text: str) -> list[int]:
        """Its tokens, and the one that ends it."""
        return [*self.tokenizer(text, add_special_tokens=False)["input_ids"], self.tokenizer.eos_token_id]

    def require_room(self, prompt: str, completion: str, what: str) -> None:
        """Refuse what is longer than the model's table of positions."""
        tokens = len(self.prompt(prompt)) + len(self.completion(completion))
        if self.longest is not None and tokens > self.longest:
            raise LabError(
                f"{what} takes {tokens:,} tokens, and the table of positions of {self.path} has {self.longest:,}: "
                "ask for shorter lengths, or for a form that says less"
            )

    def answers(self, prompts: Sequence[str], most: int) -> list[str]:
        """What it says to each prompt, greedily, in up to `most` tokens."""
        self.model.eval()
        ids = [self.prompt(prompt) for prompt in prompts]
        order = sorted(range(len(ids)), key=lambda place: len(ids[place]))
        said = [""] * len(ids)
        for chosen in _batches(order, ids, most):
            for place, text in zip(chosen, self._generated([ids[place] for place in chosen], most), strict=True):
                said[place] = text
        return said

    @torch.no_grad()
    def _generated(self, ids: Sequence[Sequence[int]], most: int) -> list[str]:
        widest = max(map(len, ids))
        room = most if self.longest is None else min(most, self.longest - widest)
        require(room > 0, f"a prompt of {widest:,} tokens leaves no room for an answer in {self.path}")
        tokens_BT = torch.tensor([[self.pad] * (widest - len(each)) + list(each) for each in ids], device=self.model.device)
        read_BT = torch.tensor([[0] * (widest - len(each)) + [1] * len(each) for each in ids], device=self.model.device)
        greedy = GenerationConfig(  # type: ignore[no-untyped-call]
            max_new_tokens=room, do_sample=False, pad_token_id=self.pad, eos_token_id=self.tokenizer.eos_token_id
        )
        out_BT: Tensor = self.model.generate(tokens_BT, attention_mask=read_BT, generation_config=greedy)
        texts: list[str] = self.tokenizer.batch_decode(out_BT[:, widest:], skip_special_tokens=True)
        return texts


def read_language_model(path: Path) -> LanguageModel:
    """The model of a folder, with its tokenizer; code that lies in the folder is not run."""
    require(path.is_dir(), f"there is no folder {path}: --model is a folder with a Hugging Face model in it")
    if (path / "adapter_config.json").is_file() and not (path / "config.json").is_file():
        raise LabError(
            f"{path} is an adapter of LoRA and no whole model: merge it into its model with peft, and name that folder"
        )
    require((path / "config.json").is_file(), f"{path} has no config.json: it is no folder of a Hugging Face model")
    require(bool(_weights(path)), f"{path} has no weights: save the model there, or copy its *.safetensors")
    advice.disable_progress_bar()  # type: ignore[no-untyped-call]
    tokenizer = _loaded(AutoTokenizer, path, "has no tokenizer that can be read: save it there, too")
    require(
        tokenizer.eos_token_id is not None, f"the tokenizer of {path} has no token that ends a text (eos_token): give it one"
    )
    model = _read_model(path)
    rows, tokens = model.get_input_embeddings().num_embeddings, len(tokenizer)
    fits = tokens <= rows
    require(fits, f"{path}: its tokenizer has {tokens:,} tokens, its model {rows:,}: they are not of one model")
    return LanguageModel(path, model, tokenizer)


def _read_model(path: Path) -> Any:
    """All of its weights from the folder, none of them drawn: the library would draw what it does not find, and go on."""
    problem = "is no causal language model that can be read"
    also = {"output_loading_info": True, "ignore_mismatched_sizes": True}  # told here, not by its own error
    model, found = _loaded(AutoModelForCausalLM, path, problem, dtype="auto", **also)
    lacking = sorted({*found["missing_keys"], *(key for key, *_ in found["mismatched_keys"])})
    more = f" and {len(lacking) - 2:,} more" if len(lacking) > 2 else ""
    told = f"of {type(model).__name__}, they lack {', '.join(lacking[:2])}{more}, or have another size"
    require(not lacking, f"{path / 'config.json'} is not that of the weights beside it: {told}")
    ahead = f"what {type(model).__name__} says after a token depends on the next one"
    require(not _looks_ahead(model), f"{path} {problem}: {ahead}")
    return model


@torch.no_grad()
def _looks_ahead(model: Any) -> bool:
    """Whether what is said after a token depends on the next one."""
    first_BV, other_BV = (model.eval()(torch.tensor([[0, last]])).logits[:, 0].float() for last in (0, 1))
    return bool((first_BV - other_BV).abs().max() > 1e-2 * first_BV.abs().max())


def fingerprint(path: Path) -> str:
    """By which another model of the same name is told apart: the configuration, and the ends of every file of weights."""
    mixed = sha256((path / "config.json").read_bytes())
    for file in _weights(path):
        with file.open("rb") as data:
            mixed.update(f"{file.name} {file.stat().st_size}".encode())
            mixed.update(data.read(PIECE))
            data.seek(max(0, file.stat().st_size - PIECE))
            mixed.update(data.read(PIECE))
    return mixed.hexdigest()[:16]


def _weights(path: Path) -> list[Path]:
    return sorted(file for pattern in WEIGHTS for file in path.glob(pattern))


def _loaded(kind: Any, path: Path, problem: str, **choices: Any) -> Any:
    try:
        with quiet():
            return kind.from_pretrained(path, local_files_only=True, trust_remote_code=False, **choices)
    except Exception as error:  # whatever the library makes of a folder
        first = next(iter(str(error).strip().splitlines()), "")
        raise LabError(f"{path} {problem} ({type(error).__name__}: {cut(first)})") from error


def _batches(order: Sequence[int], ids: Sequence[Sequence[int]], most: int) -> Iterator[list[int]]:
    """Prompts of like length together."""
    chosen: list[int] = []
    for place in order:
        if chosen and (len(chosen) + 1) * (len(ids[place]) + most) > TOKENS:
            yield chosen
            chosen = []
        chosen.append(place)
    if chosen:
        yield chosen
