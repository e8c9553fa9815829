"""Attention of one new token a row to all tokens of the row, whose keys and values lie in pages."""
from __future__ import annotations

import torch
from torch import Tensor


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
