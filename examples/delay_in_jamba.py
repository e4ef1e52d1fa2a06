"""Does delayed attention help outside our own models? A small Jamba (Mamba and attention), trained from scratch on
modulo-recall with Hugging Face's Trainer, end to end and delayed: accuracy by length, far beyond the training range.

    pip install 'lengthlab[huggingface]'
    python examples/delay_in_jamba.py [--steps 3000] [--first 1000] [--seeds 1]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import IterableDataset
from transformers import JambaConfig, Trainer, TrainingArguments, set_seed
from transformers.utils import logging

from lengthlab.evaluation.accuracy import accuracy
from lengthlab.integrations.huggingface import DelayedAttentionCallback, as_model
from lengthlab.tasks import IGNORE, ModuloRecall

TASK = ModuloRecall(modulus=2, values=10, keys=64)
TRAINED, MEASURED, BATCH = (1, 10), (5, 10, 15, 20, 30, 40), 32
CONFIG = JambaConfig(
    hidden_size=48,
    intermediate_size=96,
    num_hidden_layers=2,
    attn_layer_period=2,  # Mamba, attention
    attn_layer_offset=1,
    num_attention_heads=4,
    num_key_value_heads=4,
    num_experts=1,
    mamba_d_state=8,
    mamba_expand=2,
    max_position_embeddings=128,
)


class Samples(IterableDataset[dict[str, Tensor]]):
    """Fresh samples without end. Labels are set at the answers alone; while attention is off, at that of `modulo` alone."""

    def __init__(self, seed: int, callback: DelayedAttentionCallback | None) -> None:
        self.seed, self.callback = seed, callback

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        generator = torch.Generator().manual_seed(self.seed)
        while True:
            batch = TASK.sample(BATCH, TRAINED, generator)
            labels_BT = torch.full_like(batch.tokens_BT, IGNORE)
            closed = self.callback is not None and self.callback.delay is not None and not self.callback.delay.is_open
            for question in ("modulo",) if closed else TASK.questions:
                shifted_BT = batch.target[question].roll(1, dims=1)  # the library shifts labels by one
                labels_BT = labels_BT.where(shifted_BT == IGNORE, shifted_BT)
            yield {"input_ids": batch.tokens_BT, "labels": labels_BT}


def trained(steps: int, first: int | None, seed: int) -> nn.Module:
    """A Jamba after so many steps, the `first` of them without attention."""
    set_seed(seed)
    network = as_model(CONFIG).build(TASK.vocabulary)
    callback = DelayedAttentionCallback(until=first) if first else None
    args = TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        max_steps=steps,
        per_device_train_batch_size=1,  # a sample of the dataset is a batch already
        learning_rate=1e-3,
        lr_scheduler_type="constant",
        report_to="none",
        save_strategy="no",
        logging_steps=500,
        use_cpu=True,
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    callbacks: list[Any] = [callback] if callback else []
    samples = Samples(seed, callback)
    Trainer(network.model, args, data_collator=lambda rows: rows[0], train_dataset=samples, callbacks=callbacks).train()
    return network


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=3_000)
    parser.add_argument("--first", type=int, default=1_000, help="of them without attention, in the delayed training")
    parser.add_argument("--seeds", type=int, default=1)
    asked = parser.parse_args()
    logging.set_verbosity_error()
    torch.set_num_threads(1)  # so small a model gains nothing from a second one, and loses much if it has to share it
    rows = [f"{'modulo / recall / all at n =':32s}" + "".join(f"{n:>20d}" for n in MEASURED)]
    for seed in range(asked.seeds):
        for name, first in (("end to end", None), ("delayed", asked.first)):
            counts = accuracy(trained(asked.steps, first, seed), TASK, MEASURED)
            found = {(each.length, each.question): each.accuracy for each in counts}
            cells = [" / ".join(f"{found[n, question]:.2f}" for question in ("modulo", "recall", "all")) for n in MEASURED]
            rows.append(f"{f'{name}, seed {seed}':32s}" + "".join(f"{cell:>20s}" for cell in cells))
            print(rows[-1], flush=True)
    print("\n".join(rows))


if __name__ == "__main__":
    main()
