"""A trained language model of Hugging Face's on a task of ours: the words of the task become tokens of the model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import nn

from lengthlab.errors import LabError, explain, require
from lengthlab.models.causal_lm import TranslatedLm


def trained_lm(path: Path, words: Sequence[str]) -> tuple[nn.Module, list[str]]:
    """The model in a folder that `save_pretrained` wrote, and what is to be known of its tokens. Nothing is downloaded, and no
    code of the folder is run.

    A model with as many tokens as the task has words was trained on the task, and has its numbers. In any other a word is the
    token that its tokenizer has for it, with or without a space before; a word that is none is stood in for by another token,
    always the same.
    """
    try:
        from transformers import AutoModelForCausalLM
    except ImportError:
        raise LabError(f"reading {path} needs transformers: pip install 'lengthlab[huggingface]'") from None
    require((path / "config.json").is_file(), f"{path} is no folder of a trained model: it has no config.json")
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(path, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # whatever the library says of a folder that it cannot read
        raise LabError(f"{path} cannot be read as a causal language model: {explain(error)}") from error
    size = int(model.config.get_text_config().vocab_size)
    if size == len(words):
        return TranslatedLm(model, range(size)), []
    require(size > len(words), f"the task has {len(words)} words, and the model in {path} only {size} tokens")
    own = _own_tokens(path, words)
    free = iter([number for number in range(size // 4, size) if number not in own.values()] + list(range(size // 4)))
    ids = [own[word] if word in own else next(free) for word in words]
    stood_in = len(words) - len(own)
    note = f"{stood_in} of the {len(words)} words of the task are no token of the model, and are stood in for by other tokens"
    return TranslatedLm(model, ids), [note] if stood_in else []


def _own_tokens(path: Path, words: Sequence[str]) -> dict[str, int]:
    """The words that a tokenizer beside the model has a token for; none where there is no tokenizer."""
    from transformers import AutoTokenizer

    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(path, local_files_only=True, trust_remote_code=False)
    except Exception:  # there need not be one
        return {}
    found: dict[str, int] = {}
    for word in words:
        for text in (f" {word}", word):
            ids = tokenizer.encode(text, add_special_tokens=False)
            if len(ids) == 1 and ids[0] not in found.values() and ids[0] != tokenizer.unk_token_id:
                found[word] = int(ids[0])
                break
    return found
