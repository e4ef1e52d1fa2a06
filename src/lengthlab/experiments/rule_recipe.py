"""Models of the study `rules` and how they are trained, as numbers. No torch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lengthlab.models import Model
    from lengthlab.spec.optimizer import AdamW
    from lengthlab.spec.schedule import Schedule


@dataclass(frozen=True)
class Recipe:
    """As many steps for every form and model."""

    width: int
    blocks: int
    heads: int
    batch: int
    first: int
    joint: int
    peak: float

    def model(self, way: str) -> Model:
        from lengthlab.models import hybrid_block, transformer

        positions, scores = ("rope", "none") if way == "rope" else ("none", "log-n")
        make = hybrid_block if way == "hybrid" else transformer
        return make(self.width, blocks=self.blocks, heads=self.heads, positions=positions, scores=scores, pre_norm=True)

    def pointing(self, ids: int) -> Model:
        """For words that have two ids, as the decoder of position coupling."""
        from lengthlab.models import t5_decoder

        return t5_decoder(self.width, self.blocks, self.heads, position_ids=ids, tables=2, scores="log-n", orthogonal=True)

    @property
    def optimizer(self) -> AdamW:
        from lengthlab.spec.optimizer import AdamW

        return AdamW(beta2=0.95, decay=0.1, clip=1.0)

    def schedule(self, training: str) -> Schedule:
        from lengthlab.spec.rate import Cosine
        from lengthlab.spec.schedule import delayed, end_to_end

        rate = Cosine(self.peak, (self.first + self.joint) // 40)
        if training == "delayed":
            return delayed(self.first, self.joint, lr=rate)
        return end_to_end(self.first + self.joint, lr=rate)


RECIPES = {
    "gpu": Recipe(width=128, blocks=2, heads=4, batch=64, first=1_000, joint=3_000, peak=1e-3),
    "cpu": Recipe(width=64, blocks=2, heads=2, batch=32, first=400, joint=1_600, peak=2e-3),
}
POINTING = {"gpu": RECIPES["gpu"], "cpu": replace(RECIPES["cpu"], first=600, joint=2_400)}
"""With coupled pointers, on ten lengths. On two cores, seed 100, sums of digits, results right at n = 15, 20 and 30: 0.11, 0.05
and 0.12 with the answer alone; 0.99, 0.87 and 0.20 with a scratchpad; 1.00, 0.99 and 0.18 with the trace. The scratchpad of
coin flips had not learned its range: 0.48 of all that is said at n = 10.
"""
