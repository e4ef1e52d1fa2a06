"""The optimizer of a run, as data."""

from __future__ import annotations

from dataclasses import dataclass

from lengthlab.errors import require


@dataclass(frozen=True)
class Adam:
    """Adam keeps so much of each gradient's mean (`beta1`) and of its mean square (`beta2`) from one step to the next.

    With the usual `beta2` one large gradient after a long calm moves a weight by about 32 learning rates before it is
    forgotten, with 0.95 by about 6. A recurrence that has learned its task is calm, and may not survive the former.

    >>> import lengthlab as ll
    >>> run = ll.Run(ll.tasks.ModuloRecall(), ll.models.sandwich(width=16), ll.delayed(joint=100), optimizer=Adam(beta2=0.95))
    >>> run.optimizer
    Adam(beta1=0.9, beta2=0.95)
    """

    beta1: float = 0.9
    beta2: float = 0.999

    def __post_init__(self) -> None:
        for name in ("beta1", "beta2"):
            value = getattr(self, name)
            require(0 <= value < 1, f"optimizer.{name} must be at least 0 and less than 1, not {value}")
            object.__setattr__(self, name, float(value))  # 0 and 0.0 are one content

    @property
    def betas(self) -> tuple[float, float]:
        """As PyTorch's optimizers take them."""
        return self.beta1, self.beta2
