"""torchvision beside a torch without CUDA: its wheel is built for one with it, so its own operators do not load here."""

from __future__ import annotations

import sys

import torch


def import_torchvision() -> torch.library.Library | None:
    """Its models need no operators, but it fails on import where two are unknown: let them be declared, and stay empty.

    Only where it fails, since an operator is declared once. The declarations end with what is given back: keep it.
    """
    try:
        import torchvision
    except RuntimeError as error:
        if "torchvision::nms does not exist" not in str(error):
            raise
        for name in [each for each in sys.modules if each.split(".")[0] == "torchvision"]:
            del sys.modules[name]  # halfway imported
        declared = torch.library.Library("torchvision", "FRAGMENT")
        for operator in ("nms", "qnms"):
            declared.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import torchvision  # noqa: F401

        return declared
    return None


DECLARED = import_torchvision()  # before any test imports transformers or timm, which take what they find of it
