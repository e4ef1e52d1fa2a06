"""A passkey in noise: found again millions of tokens later, after training on a thousand.

Claim: an LSTM with hierarchical sparse attention, trained on 128…1,024 tokens, has all five digits right in at least 0.99 of
the samples at 1,024, 4,096, 65,536, 1,048,576 and 4,194,304 tokens: as it is, where chunks overlap, and, once more,
where it is trained twice as long; each judged by itself. A small one, trained on 32…256 tokens on two cores, has them right in
0.95 at 65,536.

Ours and theirs: Hu et al. (arXiv 2504.16795) report 1.00 up to 64 million tokens for Mamba-2 of 370M parameters, pre-trained on
text and trained on 4,096 tokens. Ours have one layer of each kind and noise of 64 letters. Chunks of 64 tokens, landmarks
and the top 8 chunks are theirs; local attention stands beside that, as they recommend. Means stand in the place of their
encoder, and a softmax over chunks in that of stick-breaking: with both of theirs, on seed 100, the loss stayed at that of who
knows the five digits and not their order (1.59 after 500 steps of the LSTM, 1.66 after 1,450 of Mamba-2, where ln 5 is 1.61),
and the LSTM with means and softmax had 0.001 after 550.

A key that lies across two chunks is lost more often: the few tokens of it that one of them holds are a small part of its mean
(pilots: docs/long-memory.md). Where a chunk begins with the last 8 tokens of the one before it, every key is whole in one of
them, and keys and values take more room.

The chunks of other samples in the memory, as the authors train (`Phase.distractors`), are none of this study: each holds a key
of its own, and with a softmax over chunks nothing tells which of them is asked for. With those of 15 or 63 others after the
first 800 steps, on seed 100, the loss went from 0.001 to 1.5 and stayed there.

Cost: 9 runs a seed of 1,500 steps of 65,536 tokens, one of them of 3,000 (gpu), 8 more with `--part recurrences`; 3 small ones
a seed of 1,000 steps, one to three minutes each on one core (cpu). Of 1,048,576 and 4,194,304 tokens, 20 samples are read side
by side. `--part farther` measures the LSTM that is trained longer, and Mamba-2 with chunks that overlap, at 16,777,216 tokens
(5 samples); `--part farthest` Mamba-2 at 67,108,864 (one sample). Measured beside other work on one H200, three seeds at a time
in three processes: 50 seconds and 340 of Mamba-2, 340 of the LSTM at 16,777,216, of which four times as many are not asked.
Command: lengthlab reproduce passkey
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lengthlab.experiments.memory import (
    RECURRENCES,
    WITH_MEMORY,
    Recipe,
    alone_arms,
    attention_arms,
    memory_arm,
    memory_arms,
)
from lengthlab.experiments.size import Size
from lengthlab.experiments.study import Arm, At, Check, Claim, Section, Study

if TYPE_CHECKING:
    from lengthlab.spec.run import Run

GPU = Size("gpu", (128, 1024), (1024, 4096, 65_536, 1_048_576, 4_194_304), gpu=True)
NEARER = replace(GPU, lengths=(1024, 4096, 65_536))
FARTHER, FARTHEST = replace(GPU, lengths=(16_777_216,)), replace(GPU, lengths=(67_108_864,))
CPU = Size("cpu", (32, 256), (256, 1024, 65_536))
RECIPES = {
    "gpu": Recipe(256, heads=8, chunk=64, chunks=8, batch=64, steps=1_500),
    "cpu": Recipe(64, heads=4, chunk=16, chunks=4, batch=16, steps=1_000, lr=2e-3),
}
"""On two cores, a key that lies across two chunks is what is hard. At 256 tokens, on seed 100, which is not published, 0.33 of
such keys were right after 1,000 steps of 16 samples with an encoder and stick-breaking, and 1.00 of those inside a chunk; 0.97
and 1.00 after 700 steps with means and a softmax. Perhaps because a softmax leaves weight to both chunks."""
LSTM, MAMBA = MEMORY = memory_arms("passkey")
OTHERS = (*attention_arms("passkey"), *alone_arms("passkey"))
OVERLAP = 8
"""Tokens, where chunks overlap: a key has six."""
WHOLE, MAMBA_WHOLE = OVERLAPPING = tuple(
    replace(arm, name=f"{arm.name}, overlap", label=f"{arm.name}, chunks overlap") for arm in MEMORY
)
LONGER = replace(WHOLE, name=f"{WHOLE.name}, longer", label=f"{WHOLE.label}, twice the steps")
AGAIN = tuple(replace(arm, name=f"{arm.name}, farther") for arm in (LONGER, MAMBA_WHOLE))
ONCE_MORE = replace(MAMBA_WHOLE, name=f"{MAMBA_WHOLE.name}, farthest")
AFRESH = (
    "The weights that the rows above were measured with had not been kept, and the same runs were trained again; on a GPU, and "
    "beside other work, they do not come out the same to the last bit."
)
REST = tuple(memory_arm(name, "passkey") for name in RECURRENCES if name not in WITH_MEMORY)
SMALL = (LSTM, WHOLE, memory_arm("lstm", "passkey"))


def run(arm: Arm, size: str) -> Run:
    """What is measured farther is the same run."""
    from lengthlab.tasks import Passkey

    name, overlaps, way = arm.name.partition(", overlap")
    usual = RECIPES[size]
    recipe = replace(usual, overlap=OVERLAP if overlaps else 0, steps=usual.steps * (2 if "longer" in way else 1))
    return recipe.run(name, Passkey(), (GPU if size == "gpu" else CPU).trained)


def _found(words: str, arm: Arm, section: str, aside: str = "") -> Claim:
    told = f"all digits right in at least 0.99, at the training length and at every length to 4,194,304{aside}"
    return Claim(words, told, tuple(Check(arm, length, "≥", 0.99) for length in GPU.lengths), section=section, size="gpu")


PASSKEY = Study(
    name="passkey",
    title="A passkey in noise",
    question="In how long a text is a passkey found that was read once?",
    run=run,
    sizes=(GPU, CPU),
    sections=(
        Section("memory", "With hierarchical sparse attention", MEMORY, sizes=(GPU,)),
        Section("overlap", "Chunks that overlap by 8 tokens", OVERLAPPING, sizes=(GPU,)),
        Section("longer", "Chunks that overlap, trained twice as long", (LONGER,), sizes=(GPU,)),
        Section(
            "others",
            "Without hierarchical sparse attention",
            OTHERS,
            "Attention that reads everything takes time that grows with the square of the length, and is measured less far.",
            sizes=(NEARER,),
        ),
        Section("recurrences", "The other recurrences alone", REST, usual=False, sizes=(NEARER,)),
        Section("farther", "Farther, on fewer samples", AGAIN, AFRESH, usual=False, sizes=(FARTHER,)),
        Section(
            "farthest", "As far as the authors, on one sample a seed", (ONCE_MORE,), AFRESH, usual=False, sizes=(FARTHEST,)
        ),
        Section("small", "On two cores", SMALL, sizes=(CPU,)),
    ),
    seeds=3,
    claims=(
        _found(
            "An LSTM with hierarchical sparse attention finds the passkey 4,096 times as far back as it was trained.",
            LSTM,
            "memory",
        ),
        _found("Where chunks overlap, it does.", WHOLE, "overlap"),
        _found(
            "Where they overlap and it is trained twice as long, it does.", LONGER, "longer", "; written after the miss above"
        ),
        Claim(
            "Without it, nothing does.",
            "at most 0.10 at 65,536 tokens: attention, with rotary positions or with none, and both recurrences",
            tuple(Check(arm, 65_536, "≤", 0.10) for arm in OTHERS),
            section="others",
            size="gpu",
        ),
        Claim(
            "A small one, trained on two cores, finds it 256 times as far back.",
            "all digits right in at least 0.95 at 65,536 tokens",
            (Check(LSTM, 65_536, "≥", 0.95),),
            section="small",
            size="cpu",
        ),
        Claim(
            "Where chunks overlap, the small one finds it more often.",
            "at 65,536 tokens at least 0.99, and more than without",
            (Check(WHOLE, 65_536, "≥", 0.99), Check(WHOLE, 65_536, ">", At(arm=LSTM))),
            section="small",
            size="cpu",
        ),
    ),
    note="A length n counts all tokens, the answer included. Answers are read teacher-forced, digit by digit.",
    about=__doc__,
    page="docs/long-memory/passkey.md",
)
