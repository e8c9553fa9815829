"""Attention of one new token a row to all tokens of the row, whose keys and values lie in pages."""
from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .pages import Pages


@dataclass(frozen=True)
class PagedAttention:
    """Attention for one decoding step: where each row's new token goes, its pages, and its length with that token."""

    pages: Pages
    slots: Tensor
    tables: Tensor
    lengths: Tensor

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        self.pages.write(layer, self.slots, k, v)
        return self._attend(layer, q)

    def rotate_and_attend(self, layer: int, projected: Tensor, cos: Tensor, sin: Tensor, heads: int) -> Tensor:
        """The same on a GPU, from projections that are not rotated yet: one kernel rotates and stores them."""
        from .paged_attention_kernel import rotate_and_store_gpu

        keys, values = self.pages.keys[layer], self.pages.values[layer]
        return self._attend(layer, rotate_and_store_gpu(projected, cos, sin, heads, keys, values, self.slots))

    def _attend(self, layer: int, q: Tensor) -> Tensor:
        return paged_attention(q, self.pages.keys[layer], self.pages.values[layer], self.tables, self.lengths)


def paged_attention(q: Tensor, keys: Tensor, values: Tensor, tables: Tensor, lengths: Tensor) -> Tensor:
    """From queries [rows, heads, size] and pages [pages, PAGE, kv heads, size] to [rows, heads, size]."""
    if q.is_cuda:
        from .paged_attention_kernel import paged_attention_gpu

        return paged_attention_gpu(q, keys, values, tables, lengths)
    rows, heads, size = q.shape
    k, v = (pages[tables.long()].flatten(1, 2) for pages in (keys, values))
    grouped = q.view(rows, k.shape[2], -1, size)
    scores = torch.einsum("rkgd,rtkd->rkgt", grouped, k) * size**-0.5
    hidden = torch.arange(k.shape[1], device=q.device) >= lengths[:, None]
    weights = scores.masked_fill(hidden[:, None, None], float("-inf")).softmax(-1)
    return torch.einsum("rkgt,rtkd->rkgd", weights, v).reshape(rows, heads, size)
