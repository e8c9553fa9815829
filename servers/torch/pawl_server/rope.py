"""Rotary position embeddings, and how they are stretched for longer contexts, as transformers computes
them.
"""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Optional

import torch
from torch import Tensor

KINDS = ("linear", "dynamic", "llama3", "yarn")


@dataclass(frozen=True)
class RopeScaling:
    """`rope_scaling` of a config.json.

    The kind "dynamic" only changes texts longer than the model's context, depending on the longest one read
    so far; no text may be that long here, so it changes nothing.
    """

    kind: str
    factor: float
    original_context: int = 0
    # llama3: the turns in the original context below which a frequency is divided, and above which it is kept.
    low: float = 1.0
    high: float = 4.0
    # yarn: the factor of cosines and sines, and the same bounds in the other order.
    attention_factor: float = 1.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True


def read_scaling(rope: dict[str, Any], fields: dict[str, Any], origin: str) -> Optional[RopeScaling]:
    """The scaling in a config.json's `rope_scaling` or `rope_parameters`."""
    kind = rope.get("rope_type", rope.get("type", "default"))
    partial = rope.get("partial_rotary_factor", fields.get("partial_rotary_factor"))
    if partial not in (None, 1):
        raise ValueError(f"{origin}: not supported: partial_rotary_factor {partial}; only whole heads are")
    if kind == "default":
        return None
    if kind not in KINDS:
        raise ValueError(f"{origin}: not supported: rope_scaling of type {kind!r}; only {', '.join(KINDS)} and default are")
    needed = ("factor", "low_freq_factor", "high_freq_factor") if kind == "llama3" else ("factor",)
    for name in needed:
        if not isinstance(rope.get(name), (int, float)) or rope[name] <= 0:
            raise ValueError(f"{origin}: rope_scaling.{name} is {rope.get(name)!r}; expected a positive number")
    factor = float(rope["factor"])
    context = fields.get("original_max_position_embeddings") or rope.get("original_max_position_embeddings")
    context = context or fields["max_position_embeddings"]
    if kind == "llama3":
        return RopeScaling(kind, factor, context, float(rope["low_freq_factor"]), float(rope["high_freq_factor"]))
    if kind == "yarn":
        strength = lambda times: 1.0 if factor <= 1 else 0.1 * times * math.log(factor) + 1.0
        both = rope.get("mscale") and rope.get("mscale_all_dim")
        usual = strength(rope["mscale"]) / strength(rope["mscale_all_dim"]) if both else strength(1)
        return RopeScaling(
            kind, factor, context, attention_factor=rope.get("attention_factor") or usual,
            beta_fast=rope.get("beta_fast") or 32, beta_slow=rope.get("beta_slow") or 1, truncate=rope.get("truncate", True),
        )  # fmt: skip
    return RopeScaling(kind, factor)


def rotary(positions: Tensor, size: int, theta: float, scaling: Optional[RopeScaling]) -> tuple[Tensor, Tensor]:
    """Cosines and sines of the angles at some positions: [tokens, size / 2]."""
    half = size // 2
    exponents = torch.arange(half, device=positions.device, dtype=torch.float32) / half
    frequencies = torch.pow(theta, -exponents)
    if scaling is not None:
        frequencies = _stretched(frequencies, theta, half, scaling)
    angles = positions[:, None].float() * frequencies
    if scaling is None or scaling.attention_factor == 1:
        return angles.cos(), angles.sin()
    return angles.cos() * scaling.attention_factor, angles.sin() * scaling.attention_factor


def _stretched(frequencies: Tensor, theta: float, half: int, scaling: RopeScaling) -> Tensor:
    """Only arithmetic on the device, because this is part of a CUDA graph."""
    if scaling.kind == "dynamic":
        return frequencies
    if scaling.kind == "linear":
        return frequencies / scaling.factor
    if scaling.kind == "llama3":
        turns = frequencies * (scaling.original_context / (2 * math.pi))
        kept = ((turns - scaling.low) / (scaling.high - scaling.low)).clamp(0, 1)
    else:
        # The (fractional) pair that turns so many times in the original context.
        pair = lambda turns: half * math.log(scaling.original_context / (turns * 2 * math.pi)) / math.log(theta)
        begin, end = pair(scaling.beta_fast), pair(scaling.beta_slow)
        if scaling.truncate:
            begin, end = math.floor(begin), math.ceil(end)
        begin, end = max(begin, 0), min(end, 2 * half - 1)
        pairs = torch.arange(half, device=frequencies.device, dtype=torch.float32)
        kept = 1 - ((pairs - begin) / (0.001 if begin == end else end - begin)).clamp(0, 1)
    return (1 - kept) * (frequencies / scaling.factor) + kept * frequencies


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary position embedding of [tokens, heads, size], over the pairs (i, i + size / 2)."""
    a, b = x.float().chunk(2, -1)
    cos, sin = cos[:, None], sin[:, None]
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)
