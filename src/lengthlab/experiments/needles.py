"""Needles: several named keys in noise, two of them asked for, to 128 K tokens after 512.

Claim: an LSTM with hierarchical sparse attention, trained on 64…512 tokens, has both needles right, ten digits in all, in
at least 0.90 of the samples at 131,072 tokens. A small one, trained on 24…64 tokens on two cores with one of two needles
asked, has it right in 0.95 at 4,096.

Ours and theirs: six needles of which two are asked, as in Hu et al. (arXiv 2504.16795), after RULER (arXiv 2404.06654), with
letters in the place of text.

Cost: 6 runs a seed of 2,000 steps of 128 samples (gpu; attention that reads everything, two of them, is measured to 16,384
tokens alone); 2 small ones a seed of 1,500 steps, about 2 minutes each on one core (cpu).
Command: lengthlab reproduce needles
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lengthlab.experiments.memory import Recipe, alone_arms, attention_arms, memory_arm, memory_arms
from lengthlab.experiments.size import Size
from lengthlab.experiments.study import Arm, Check, Claim, Section, Study

if TYPE_CHECKING:
    from lengthlab.spec.run import Run

GPU = Size("gpu", (64, 512), (512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072), gpu=True)
NEARER = replace(GPU, lengths=(512, 1024, 2048, 4096, 8192, 16_384))
CPU = Size("cpu", (24, 64), (64, 256, 1024, 4096))
RECIPES = {
    "gpu": Recipe(256, heads=8, chunk=32, chunks=8, batch=128, steps=2_000, overlap=8),
    "cpu": Recipe(64, heads=4, chunk=8, chunks=4, batch=32, steps=1_500, lr=2e-3, window=8),
}
"""On two cores, what is hard is to begin. Chosen on seeds 100, 101 and 102, which are not published. On seed 100, 1,000
steps on 64…256 tokens with chunks of 16, an encoder and stick-breaking ended at 0.03. With chunks of 8, means, a softmax
and a window of 8, and two needles of two digits of which both are asked, all digits were right in 0.80 of the samples at 64
tokens after 200 steps on 24…64, and in none after 210 on 64…256, each of which takes three times as long. The rest changes
less; it was compared at equal seconds on this seed alone. After 36 s on 24…64, at 64 and at 1,024 tokens (0.98 and 0.97
after 75 s as it is): 0.95 and 0.92 with stick-breaking, 0.89 and 0.93 with an encoder, 0.89 and 0.72 with chunks of 16,
0.81 and 0.74 with a window of 32. 1,000 steps on 24…128 take as long as 1,500 on 24…64 and end alike: 0.995 at 4,096. This
recipe, at 64 and at 4,096, by the seed: 0.99, 0.99, 1.00 and 1.00, 0.995, 0.995.

On a GPU, seed 100: all ten digits right in 0.999 of 1,000 samples at 512 tokens and in all samples from there to 131,072."""
PARAMETERS: dict[str, dict[str, Any]] = {"gpu": {}, "cpu": {"needles": 2, "asked": 1, "digits": 3, "names": 8}}
LSTM, *_ = MEMORY = memory_arms("needles")
ALONE, ATTENTION = alone_arms("needles"), attention_arms("needles")
SMALL = (LSTM, memory_arm("lstm", "needles"))


def run(arm: Arm, size: str) -> Run:
    """The run of an arm."""
    from lengthlab.tasks import Needles

    return RECIPES[size].run(arm.name, Needles(**PARAMETERS[size]), (GPU if size == "gpu" else CPU).trained)


NEEDLES = Study(
    name="needles",
    title="Needles in noise",
    question="In how long a text are needles found by their names?",
    run=run,
    sizes=(GPU, CPU),
    sections=(
        Section("needles", "Six needles, two of them asked for", (*MEMORY, *ALONE), sizes=(GPU,)),
        Section(
            "attention",
            "The same, by attention that reads everything",
            ATTENTION,
            "What it takes grows with the square of the length, and it is measured less far.",
            sizes=(NEARER,),
        ),
        Section("small", "Two needles, one of them asked for, on two cores", SMALL, sizes=(CPU,)),
    ),
    seeds=3,
    claims=(
        Claim(
            "An LSTM with hierarchical sparse attention finds both needles 256 times as far back as it was trained.",
            "all ten digits right in at least 0.90 at 131,072 tokens",
            (Check(LSTM, 131_072, "≥", 0.90),),
            section="needles",
            size="gpu",
        ),
        Claim(
            "A small one, trained on two cores, finds its needle 64 times as far back.",
            "all three digits right in at least 0.95 at 4,096 tokens",
            (Check(LSTM, 4096, "≥", 0.95),),
            section="small",
            size="cpu",
        ),
    ),
    note="A length n counts all tokens, the answers included. Answers are read teacher-forced, digit by digit.",
    about=__doc__,
    page="docs/long-memory/needles.md",
)
