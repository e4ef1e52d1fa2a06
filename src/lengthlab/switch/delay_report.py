"""What a check of a closed delay has seen, as data and in words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DelayReport:
    """What was seen in a model with parts of it off; all of it right, or there would have been an error."""

    off: tuple[str, ...]
    """Modules that are skipped; each was called."""
    left: tuple[str, ...]
    """Modules whose attention stays on and reaches the output."""
    unused: tuple[str, ...]
    """Modules in which attention is computed for nothing: no number of the output depends on it."""
    still: tuple[str, ...]
    """Parameters outside that stand still because only attention feeds them."""
    without_gradient: tuple[str, ...]
    """Parameters outside that learn when everything is on and have no gradient now."""
    blind: bool = False
    """Whether some rows of an output, a class token's, are the same for any input until it opens."""
    trained: bool = True
    """Whether the model could be trained on the batch with everything on, so that gradients were looked at."""

    def __str__(self) -> str:
        several = f"{len(self.off)} modules are off, were called, and give"
        off = several if len(self.off) > 1 else "1 module is off, was called, and gives"
        lines = [f"{off} what fits: the input reaches every output."]
        for what, names in (
            ("Attention stays on, and reaches the output, in", self.left),
            ("Attention is computed and thrown away in", self.unused),
            ("Fed by attention alone, and held still until it opens:", _owners(self.still)),
            ("Learn once it is open, and have no gradient until then:", _owners(self.without_gradient)),
        ):
            lines += [f"{what} {some(names)}."] if names else []
        if self.blind:
            lines.append("Some rows of an output, such as a class token's, are the same for any input until it opens.")
        if not self.trained:
            lines.append(
                "No gradient could be looked at: on this batch the model cannot be trained, not even with all of it on."
            )
        return "\n".join(lines)


def some(names: tuple[str, ...]) -> str:
    """The first of these names, and how many more there are."""
    shown = ", ".join(f"'{name}'" for name in names[:4])
    return shown if len(names) <= 4 else f"{shown} and {len(names) - 4} more"


def _owners(parameters: tuple[str, ...]) -> tuple[str, ...]:
    """The modules that have them, each once."""
    return tuple(dict.fromkeys(name.rpartition(".")[0] or name for name in parameters))
