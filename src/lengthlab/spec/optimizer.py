"""The optimizer of a run, as data."""

from __future__ import annotations

from dataclasses import dataclass, field

from lengthlab.errors import require_number
from lengthlab.registry import register


@dataclass(frozen=True)
class Optimizer:
    """What all of them have: how much of each gradient's mean (`beta1`) and of its mean square (`beta2`) is kept from one step
    to the next, and the norm to which the gradient of all weights together is clipped; 0 clips nothing.
    """

    beta1: float = 0.9
    beta2: float = 0.999
    clip: float = field(default=0.0, metadata={"added": "0.2"})

    def __post_init__(self) -> None:
        for name in ("beta1", "beta2"):
            value = getattr(self, name)
            require_number(value, f"optimizer.{name}", least=0, below=1)
            object.__setattr__(self, name, float(value))  # 0 and 0.0 are one content
        require_number(self.clip, "optimizer.clip", least=0)

    @property
    def betas(self) -> tuple[float, float]:
        """As PyTorch's optimizers take them."""
        return self.beta1, self.beta2


@dataclass(frozen=True)
class Adam(Optimizer):
    """Adam (Kingma & Ba 2014, arXiv 1412.6980).

    With the usual `beta2` one large gradient after a long calm moves a weight by about 32 learning rates before it is
    forgotten, with 0.95 by about 6. A recurrence that has learned its task is calm, and may not survive the former.

    >>> import lengthlab as ll
    >>> run = ll.Run(ll.tasks.ModuloRecall(), ll.models.sandwich(width=16), ll.delayed(joint=100), optimizer=Adam(beta2=0.95))
    >>> run.optimizer
    Adam(beta1=0.9, beta2=0.95, clip=0.0)
    """


@dataclass(frozen=True)
class AdamW(Optimizer):
    """Adam whose weights decay by `decay` times the rate at each step (Loshchilov & Hutter 2017, arXiv 1711.05101). A part that
    is off does not decay.
    """

    decay: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        require_number(self.decay, "optimizer.decay", least=0)


register(Optimizer, "adam", Adam)
register(Optimizer, "adamw", AdamW)
