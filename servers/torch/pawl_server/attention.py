"""Causal attention inside each of several packed sequences."""
from __future__ import annotations

from typing import Optional, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from .sequences import send

# Padded lengths on a CPU are multiples of this, so that slightly longer text does not change
# rounding.
ROUND = 64


class PackedAttention:
    """Attention for one packing: flash attention over variable lengths on a GPU, padded rows on a CPU."""

    def __init__(self, lengths: Sequence[int], device: torch.device) -> None:
        ends = torch.tensor([0, *lengths]).cumsum(0)
        if device.type == "cuda":
            self.ends = send(ends.int(), device)
            # The kernel needs a bound; few different bounds mean few compilations.
            self.longest = max(1024, 1 << (max(lengths) - 1).bit_length())
            return
        width = -(-max(lengths) // ROUND) * ROUND
        self.shape = (len(lengths), width)
        # The position of each packed token in the padded rows.
        self.places = torch.cat([i * width + torch.arange(length) for i, length in enumerate(lengths)])

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor, window: Optional[int] = None) -> Tensor:
        if q.is_cuda:
            return flash_attention(q, k, v, self.ends, self.longest, window)
        group = q.shape[1] // k.shape[1]
        padded = [self._pad(x) for x in (q, k.repeat_interleave(group, 1), v.repeat_interleave(group, 1))]
        attended = causal_attention(*padded, window)
        return attended.transpose(1, 2).reshape(-1, *q.shape[1:])[self.places]

    def _pad(self, x: Tensor) -> Tensor:
        """[tokens, heads, size] as [sequences, heads, width, size]."""
        rows, width = self.shape
        padded = x.new_zeros(rows * width, *x.shape[1:]).index_copy(0, self.places, x)
        return padded.view(rows, width, *x.shape[1:]).transpose(1, 2)


def flash_attention(q: Tensor, k: Tensor, v: Tensor, ends: Tensor, longest: int, window: Optional[int]) -> Tensor:
    """Flash attention over packed sequences that end at `ends`; grouped heads are read in place."""
    run = torch.ops.aten._flash_attention_forward
    if window is None:
        return run(q, k, v, ends, ends, longest, longest, 0.0, True, False)[0]
    sides = {"window_size_left": window - 1, "window_size_right": 0}
    return run(q, k, v, ends, ends, longest, longest, 0.0, True, False, **sides)[0]


def causal_attention(q: Tensor, k: Tensor, v: Tensor, window: Optional[int]) -> Tensor:
    """Causal attention of [rows, heads, length, size], to the last tokens only if there is a window."""
    if window is None and hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    visible = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).tril()
    if window is not None:
        visible = visible.triu(1 - window)
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=visible)
    # PyTorch before 2.0 has no fused attention.
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    return scores.masked_fill(~visible, float("-inf")).softmax(-1) @ v
