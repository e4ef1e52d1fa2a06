"""Models of other libraries, each as small as its library builds it, with something that it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

VOCABULARY = 20
CLASSES = 5
SMALL = {"embed_dim": 16, "depth": 2, "num_heads": 2, "num_classes": CLASSES}
PATCHES = {"img_size": 32, "patch_size": 8}

Make = Callable[[], nn.Module]
Take = Callable[[int], Tensor]


def tokens(seed: int) -> Tensor:
    return torch.randint(3, VOCABULARY, (2, 9), generator=torch.Generator().manual_seed(seed))


def vectors(seed: int) -> Tensor:
    return torch.randn(2, 9, 16, generator=torch.Generator().manual_seed(seed))


def images(side: int) -> Take:
    return lambda seed: torch.randn(2, 3, side, side, generator=torch.Generator().manual_seed(seed))


def seeing(model: nn.Module, head: str) -> nn.Module:
    """A model whose last map starts at zero, given numbers: its output would be zero for any input."""
    nn.init.normal_(model.get_parameter(f"{head}.weight"))
    return model


def timm_vit(**changes: Any) -> nn.Module:
    from timm.models.vision_transformer import VisionTransformer

    return VisionTransformer(**PATCHES, **SMALL, **changes)


def timm_cait() -> nn.Module:
    from timm.models.cait import Cait

    return Cait(**PATCHES, **SMALL, init_values=1.0)


def timm_xcit() -> nn.Module:
    from timm.models.xcit import Xcit

    return Xcit(**PATCHES, **SMALL)


def timm_levit() -> nn.Module:
    from timm.models.levit import Levit

    stages = {"embed_dim": (16, 24, 32), "depth": (1, 1, 1), "num_heads": (2, 2, 2)}
    return Levit(img_size=64, key_dim=8, num_classes=CLASSES, **stages)


def timm_mvit(**changes: Any) -> nn.Module:
    from timm.models.mvitv2 import MultiScaleVit, MultiScaleVitCfg

    sizes = MultiScaleVitCfg(depths=(1, 1, 1, 1), embed_dim=8, **changes)
    return MultiScaleVit(sizes, img_size=(64, 64), num_classes=CLASSES)


def timm_hiera() -> nn.Module:
    from timm.models.hiera import Hiera

    return seeing(Hiera(img_size=(64, 64), embed_dim=8, stages=(1, 1, 1, 1), num_classes=CLASSES), "head.fc")


def timm_skresnet() -> nn.Module:
    from timm import create_model

    return create_model("skresnet18", num_classes=CLASSES)


def timm_pvt() -> nn.Module:
    from timm.models.pvt_v2 import PyramidVisionTransformerV2

    stages = {"depths": (1, 1, 1, 1), "embed_dims": (8, 16, 16, 32), "num_heads": (1, 1, 2, 2)}
    return PyramidVisionTransformerV2(num_classes=CLASSES, **stages)


def torchvision_swin(version: int) -> nn.Module:
    from torchvision.models.swin_transformer import PatchMergingV2, SwinTransformer, SwinTransformerBlockV2

    newer = {"block": SwinTransformerBlockV2, "downsample_layer": PatchMergingV2} if version == 2 else {}
    stages = {"patch_size": [2, 2], "embed_dim": 8, "depths": [2, 2], "num_heads": [2, 2], "window_size": [4, 4]}
    return SwinTransformer(num_classes=CLASSES, stochastic_depth_prob=0.0, **stages, **newer)


def torchvision_vit() -> nn.Module:
    from torchvision.models import VisionTransformer

    sizes = {"num_layers": 2, "num_heads": 2, "hidden_dim": 16, "mlp_dim": 32}
    return seeing(VisionTransformer(image_size=32, patch_size=8, num_classes=CLASSES, **sizes), "heads.head")


def x_transformers(**changes: Any) -> nn.Module:
    """With attention in layers 0 and 2, and an MLP in 1 and 3."""
    from x_transformers import Decoder, TransformerWrapper

    layers = Decoder(dim=16, depth=2, heads=2, attn_dim_head=8, **changes)
    return TransformerWrapper(num_tokens=VOCABULARY, max_seq_len=16, attn_layers=layers)


def x_transformers_hybrid() -> nn.Module:
    """A GRU beside the heads of each attention; the axial dimension of 1 folds nothing, and without it there are no norms."""
    return x_transformers(attn_hybrid_module=nn.GRU(16, 16, batch_first=True), attn_hybrid_fold_axial_dim=1)


class AfterLSTM(nn.Module):
    """A recurrent layer below a decoder of x-transformers: the hybrid in which attention can wait."""

    def __init__(self) -> None:
        super().__init__()
        from x_transformers import Decoder

        self.embed = nn.Embedding(VOCABULARY, 16)
        self.lstm = nn.LSTM(16, 16, batch_first=True)
        self.decoder = Decoder(dim=16, depth=2, heads=2, attn_dim_head=8)
        self.head = nn.Linear(16, VOCABULARY)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.decoder(self.lstm(self.embed(ids))[0]))


def torchtune() -> nn.Module:
    from torchtune.models.llama3 import llama3

    sizes = {"num_layers": 2, "num_heads": 2, "num_kv_heads": 2, "embed_dim": 16, "max_seq_len": 16, "intermediate_dim": 16}
    return llama3(vocab_size=VOCABULARY, **sizes)


def litgpt() -> nn.Module:
    from litgpt import GPT, Config

    sizes = {"n_layer": 2, "n_head": 2, "n_embd": 16, "block_size": 16, "padded_vocab_size": VOCABULARY}
    return GPT(Config(name="small", vocab_size=VOCABULARY, **sizes))


def fla(kind: str) -> nn.Module:
    from fla import models

    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_heads": 2, "head_dim": 16, "vocab_size": VOCABULARY}
    config = getattr(models, f"{kind}Config")(**sizes)
    return getattr(models, f"{kind}ForCausalLM")(config)


class Plain(nn.MultiheadAttention):
    """A subclass that is called as its parent is."""


class OfOne(nn.MultiheadAttention):
    """A subclass of one input and one output."""

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(x, x, x, need_weights=False)[0]


class Adding(nn.MultiheadAttention):
    """A subclass that adds its input itself."""

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x + super().forward(x, x, x, need_weights=False)[0]


class Own(nn.MultiheadAttention):
    """A subclass that takes the parameters of its parent, and computes by itself."""

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        q, k, v = nn.functional.linear(x, self.in_proj_weight, self.in_proj_bias).chunk(3, -1)
        return self.out_proj((q @ k.transpose(-2, -1) / self.embed_dim**0.5).softmax(-1) @ v)


class Block(nn.Module):
    """One of these, then an MLP, each added."""

    def __init__(self, kind: type[nn.MultiheadAttention]) -> None:
        super().__init__()
        self.norm, self.attn = nn.LayerNorm(16), kind(16, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 16), nn.GELU())

    def forward(self, x: Tensor) -> Tensor:
        if type(self.attn) is Plain:
            y = self.norm(x)
            x = x + self.attn(y, y, y)[0]
        else:
            x = self.attn(x) if type(self.attn) is Adding else x + self.attn(self.norm(x))
        return x + self.mlp(x)


def subclassed(kind: type[nn.MultiheadAttention]) -> nn.Module:
    return nn.Sequential(nn.Linear(16, 16), Block(kind), Block(kind), nn.Linear(16, CLASSES))
