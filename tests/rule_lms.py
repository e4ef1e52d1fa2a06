"""A small causal language model with a tokenizer of its own, saved as a folder: letters and numbers of two digits as tokens."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from tokenizers.decoders import Fuse
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

LETTERS = [chr(code) for code in range(32, 127)] + ["\n"]


def small_tokenizer() -> PreTrainedTokenizerFast:
    """Every character is a token, and so is every number of two or three digits."""
    numbers = [str(number) for number in range(10, 200)]
    words = {word: place for place, word in enumerate(["<pad>", "<eos>", *LETTERS, *numbers])}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"1[0-9]{2}|[1-9][0-9]|[\s\S]"), "isolated")
    tokenizer.decoder = Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>")


def save_small_lm(folder: Path, table: int = 512, layers: int = 2, width: int = 64) -> Path:
    """A Llama with random weights, always the same."""
    torch.manual_seed(0)
    tokenizer = small_tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=2 * width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=table,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
