"""Attention of one new token per row to all tokens of the row, whose keys and values are in pages."""
from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Optional

import torch
from torch import Tensor

from .pages import PAGE, Pages

# Cosines and sines of each row's position.
Rotation = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class PagedAttention:
    """Attention for one decode step: each row's pages, and its length including the new token."""

    pages: Pages
    tables: Tensor
    lengths: Tensor

    def __call__(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, window: Optional[int] = None, rotation: Optional[Rotation] = None
    ) -> Tensor:
        """Stores the new keys and values and attends; on a GPU it also rotates."""
        keys, values = self.pages.keys[layer], self.pages.values[layer]
        if q.is_cuda:
            from .paged_attention_kernel import paged_attention_gpu

            return paged_attention_gpu(q, k, v, rotation, keys, values, self.tables, self.lengths, window)
        self.pages.write(layer, self._slots, k, v)
        return paged_attention(q, keys, values, self.tables, self.lengths, window)

    @cached_property
    def _slots(self) -> Tensor:
        """Where each row's new token goes."""
        places = self.lengths - 1
        return self.tables.gather(1, (places // PAGE)[:, None])[:, 0].long() * PAGE + places % PAGE


def paged_attention(
    q: Tensor, keys: Tensor, values: Tensor, tables: Tensor, lengths: Tensor, window: Optional[int]
) -> Tensor:
    """The plain form, from queries [rows, heads, size] and pages [pages, PAGE, kv heads, size] to [rows, heads, size]."""
    rows, heads, size = q.shape
    k, v = (pages[tables.long()].flatten(1, 2) for pages in (keys, values))
    grouped = q.view(rows, k.shape[2], -1, size)
    scores = torch.einsum("rkgd,rtkd->rkgt", grouped, k) * size**-0.5
    places = torch.arange(k.shape[1], device=q.device)
    hidden = places >= lengths[:, None]
    if window is not None:
        hidden = hidden | (places < lengths[:, None] - window)
    weights = scores.masked_fill(hidden[:, None, None], float("-inf")).softmax(-1)
    return torch.einsum("rkgt,rtkd->rkgd", weights, v).reshape(rows, heads, size)
