"""Attention of new tokens to all tokens of their rows, whose keys and values are in pages: prefill
that starts from kept text.
"""
from __future__ import annotations

from typing import Optional, Sequence

import torch
from torch import Tensor

from .pages import PAGE, Pages
from .sequences import send


class ExtendingAttention:
    """Each row has some tokens, of which the last ones are new; `tables` are its pages."""

    def __init__(self, pages: Pages, tables: Tensor, lengths: Sequence[int], new: Sequence[int]) -> None:
        device = pages.keys.device
        self.pages, self.tables, self.lengths, self.new = pages, tables, list(lengths), list(new)
        known = [length - count for length, count in zip(lengths, new)]
        owners, self.positions = spread(self.new, known, device)
        self.slots = slots_of(tables, owners, self.positions)
        if device.type == "cuda":
            self.ends = send(torch.tensor([0, *new]).cumsum(0).int(), device)
            self.sizes = send(torch.tensor(lengths, dtype=torch.int32), device)

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor, window: Optional[int] = None) -> Tensor:
        """Stores the new keys and values, and attends to all."""
        pages = self.pages
        pages.write(layer, self.slots, k, v)
        if q.is_cuda:
            from .extending_attention_kernel import extending_attention_gpu

            stored = pages.keys[layer], pages.values[layer]
            return extending_attention_gpu(q, *stored, self.tables, self.sizes, self.ends, max(self.new), window)
        everywhere = slots_of(self.tables, *spread(self.lengths, [0] * len(self.new), q.device))
        keys, values = pages.read(layer, everywhere)
        group = q.shape[1] // k.shape[1]
        wide = (x.repeat_interleave(group, 1).split(self.lengths) for x in (keys, values))
        return torch.cat([_attend(*row, window) for row in zip(q.split(self.new), *wide)])


def _attend(q: Tensor, k: Tensor, v: Tensor, window: Optional[int]) -> Tensor:
    """The plain form for one row: queries [new, heads, size] of its last tokens, keys and values of all."""
    scores = torch.einsum("nhd,mhd->hnm", q, k) * q.shape[-1] ** -0.5
    known = len(k) - len(q)
    hidden = torch.ones(scores.shape[1:], dtype=torch.bool).triu(known + 1)
    if window is not None:
        hidden |= torch.ones_like(hidden).tril(known - window)
    return torch.einsum("hnm,mhd->nhd", scores.masked_fill(hidden, float("-inf")).softmax(-1), v)


def spread(lengths: Sequence[int], first: Sequence[int], device: torch.device) -> tuple[Tensor, Tensor]:
    """Which of several packed rows each token belongs to, and its position there, counted from `first`."""
    counts, starts = send(torch.tensor([lengths, first]), device)
    total = sum(lengths)
    owners = torch.repeat_interleave(counts, output_size=total)
    return owners, torch.arange(total, device=device) + (starts - counts.cumsum(0) + counts)[owners]


def slots_of(tables: Tensor, owners: Tensor, positions: Tensor) -> Tensor:
    """Where the keys and values of tokens are, given the pages of their rows."""
    return tables[owners, positions // PAGE] * PAGE + positions % PAGE
