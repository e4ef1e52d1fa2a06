"""Delayed attention in axolotl, from its configuration file.

plugins:
  - lengthlab.integrations.axolotl.DelayedAttentionPlugin
delay_attention_until: 2000
"""

from __future__ import annotations

from typing import Any

from lengthlab.errors import LabError, require
from lengthlab.integrations.huggingface import DelayedAttentionCallback

try:
    from axolotl.integrations.base import BasePlugin
    from pydantic import BaseModel
except ImportError:
    raise LabError("axolotl is not installed where this runs: see https://docs.axolotl.ai") from None


class DelayArgs(BaseModel):  # type: ignore[misc, unused-ignore]
    """What the configuration file may say."""

    delay_attention_until: int | None = None
    """The step of the optimizer at which attention opens."""
    delay_attention_modules: list[str] | None = None
    """Names of what is off, if it is not all softmax attention."""


class DelayedAttentionPlugin(BasePlugin):  # type: ignore[misc, unused-ignore]
    """Gives axolotl's trainer the callback."""

    def get_input_args(self) -> str:
        return f"{DelayArgs.__module__}.{DelayArgs.__name__}"

    def add_callbacks_post_trainer(self, cfg: Any, trainer: Any) -> list[Any]:
        until = cfg.delay_attention_until
        require(
            until is not None, "the plugin of lengthlab needs delay_attention_until: in the configuration, a step to open at"
        )
        return [DelayedAttentionCallback(until=until, modules=cfg.delay_attention_modules)]
