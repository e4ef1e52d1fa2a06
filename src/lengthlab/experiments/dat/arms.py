"""The 26 cells of the paper: which architecture is trained on which task, and how."""

from __future__ import annotations

from lengthlab.experiments.study import Arm

LENGTHS = (5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 75, 100)
"""Where the paper measures."""
TRAINED = (1, 25)
"""The lengths it trains on."""
WIDTH = 256
GREEN = 0.90
"""Accuracy above this is green in its Figure 1."""

NOTATION = {
    "transformer": "Transformer",
    "lstm": "LSTM",
    "lstm-on-attention": "LSTM ∘ Attn",
    "attention-on-lstm": "Attn ∘ LSTM",
    "hybrid-block": "Hybrid Block",
    "sandwich": "LSTM ∘ Attn ∘ LSTM",
    "parallel": "LSTM + Attn",
}
"""Our names of the architectures, and the paper's; in the order of its tables."""
HYBRIDS = tuple(name for name in NOTATION if name not in ("transformer", "lstm"))
TASKS = {"table1": "recall", "table2": "modulo", "figure1": "modulo-recall"}
"""The tables and the figure of the paper, and the task of each."""


def arm_of(section: str, model: str, training: str = "end-to-end") -> Arm:
    """A line of a table; all arms of a section are named after it, so model and training tell them apart.

    >>> str(arm_of("figure1", "sandwich", "delayed"))
    'sandwich, delayed'
    """
    about = (("in the paper", NOTATION[model]),)
    return Arm(section, model, TASKS[section], training, label=f"{model}, {training}", about=about)


TABLE1 = tuple(arm_of("table1", model) for model in NOTATION)
TABLE2 = tuple(arm_of("table2", model) for model in NOTATION)
DELAYED = tuple(arm_of("figure1", model, "delayed") for model in HYBRIDS)
FIGURE1 = (*(arm_of("figure1", model) for model in NOTATION), *DELAYED)
ARMS = (*TABLE1, *TABLE2, *FIGURE1)
"""7 of Table 1, 7 of Table 2, 7 + 5 of Figure 1."""
