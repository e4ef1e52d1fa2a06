"""What a network says to every pair of the plane, free-running.

Shapes: A first numbers, B second numbers (as samples of a batch: all pairs), T tokens, D tokens of an answer.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from lengthlab.evaluation.generation import generate
from lengthlab.rules.plane import NONE, SIDE, Plane
from lengthlab.tasks.plane import AdditionPlane

ROWS = 20
"""First numbers that are read together."""


def measure_plane(network: nn.Module, task: AdditionPlane, model: str, seed: int = 0) -> Plane:
    """Every pair asked once.

    >>> from lengthlab import models
    >>> task = AdditionPlane(numbers="whole")
    >>> plane = measure_plane(models.lstm(width=8).build(task.vocabulary), task, "lstm")
    >>> plane.said_AB.shape, plane.summary["held_out"]
    ((100, 100), 289)
    """
    device = next((parameter.device for parameter in network.parameters()), torch.device("cpu"))
    modes = {module: module.training for module in network.modules()}
    network.eval()
    held_AB = torch.from_numpy(task.split.held_out)
    said: list[int] = []
    try:
        for start in range(0, SIDE, ROWS):
            a_B, b_B = torch.cartesian_prod(torch.arange(start, start + ROWS), torch.arange(SIDE)).T
            batch = task.write(a_B, b_B, held_AB[a_B, b_B]).to(device)
            answer_BD = generate(network, batch)[:, -(3 if task.numbers == "whole" else 5) : -2]
            said += [NONE if number is None else number for number in task.said(answer_BD)]
    finally:
        for module, training in modes.items():
            module.training = training
    return Plane(model, task.split, seed, np.array(said, np.int64).reshape(SIDE, SIDE))
