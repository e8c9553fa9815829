"""The GPU's attention of new tokens to their rows' pages, in Triton: one program for some of a row's
new tokens and a head of keys. Keys and values are read where they are, without a copy.
"""
from __future__ import annotations

from typing import Optional

import torch
import triton
import triton.language as tl
from torch import Tensor

# Queries of a program, new tokens times heads that share keys: at least what a matrix unit takes.
LEAST, MOST = 16, 128
STAGES = 3


def extending_attention_gpu(
    q: Tensor, keys: Tensor, values: Tensor, tables: Tensor, lengths: Tensor, ends: Tensor, most: int, window: Optional[int] = None
) -> Tensor:
    """From the queries of new tokens, packed row after row, [tokens, heads, size], to [tokens, heads, size].

    A row's new tokens end at its entry of `ends`, which begin with 0, and are its last; no row has
    more than `most`. Their keys and values are already in the pages [pages, PAGE, kv heads, size].
    """
    _, heads, size = q.shape
    page, kv_heads = keys.shape[1], keys.shape[2]
    group = heads // kv_heads
    block = max(LEAST, min(MOST, triton.next_power_of_2(most * group)))
    out = torch.empty_like(q)
    _extend[(len(lengths), kv_heads, triton.cdiv(most * group, block))](
        q, keys, values, tables, lengths, ends, out, q.stride(0), tables.stride(0), size**-0.5 * 1.4426950408889634,
        HEADS=heads, KV_HEADS=kv_heads, GROUP=group, SIZE=size, SIZE_ROWS=max(LEAST, triton.next_power_of_2(size)),
        PAGE=page, BLOCK=block, WINDOW=window or 0, num_warps=8 if block > 64 else 4, num_stages=STAGES,
    )  # fmt: skip
    return out


@triton.jit
def _extend(
    q, keys, values, tables, lengths, ends, out, q_stride, table_stride, scale,
    HEADS: tl.constexpr, KV_HEADS: tl.constexpr, GROUP: tl.constexpr, SIZE: tl.constexpr, SIZE_ROWS: tl.constexpr,
    PAGE: tl.constexpr, BLOCK: tl.constexpr, WINDOW: tl.constexpr,
):  # fmt: skip
    row, kv_head, block = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    first = tl.load(ends + row)
    new = tl.load(ends + row + 1) - first
    if block * BLOCK >= new * GROUP:
        return
    known = tl.load(lengths + row) - new
    query = block * BLOCK + tl.arange(0, BLOCK)
    d = tl.arange(0, SIZE_ROWS)
    token = tl.arange(0, PAGE)
    in_size = d < SIZE
    position = known + query // GROUP
    at = (first + query // GROUP).to(tl.int64)
    head = kv_head * GROUP + query % GROUP
    is_query = (query < new * GROUP)[:, None] & in_size[None, :]
    queries = tl.load(q + at[:, None] * q_stride + head[:, None] * SIZE + d[None, :], mask=is_query, other=0.0)

    top = tl.full([BLOCK], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    acc = tl.zeros([BLOCK, SIZE_ROWS], tl.float32)
    last = known + tl.minimum((block * BLOCK + BLOCK - 1) // GROUP, new - 1)
    begin = tl.maximum(known + block * BLOCK // GROUP + 1 - WINDOW, 0) if WINDOW > 0 else 0
    for number in range(begin // PAGE, last // PAGE + 1):
        page = tl.load(tables + row * table_stride + number).to(tl.int64)
        place = (page * PAGE + token[:, None]) * (KV_HEADS * SIZE) + kv_head * SIZE + d[None, :]
        there = number * PAGE + token
        is_key = (there <= last)[:, None] & in_size[None, :]
        key = tl.load(keys + place, mask=is_key, other=0.0)
        value = tl.load(values + place, mask=is_key, other=0.0)
        seen = there[None, :] <= position[:, None]
        if WINDOW > 0:
            seen = seen & (there[None, :] > position[:, None] - WINDOW)
        scores = tl.where(seen, tl.dot(queries, tl.trans(key)) * scale, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, 1))
        # A query whose window begins on a later page has seen nothing yet.
        base = tl.where(new_top == float("-inf"), 0.0, new_top)
        p = tl.exp2(scores - base[:, None])
        shrink = tl.exp2(top - base)
        total = total * shrink + tl.sum(p, 1)
        acc = acc * shrink[:, None] + tl.dot(p.to(value.dtype), value)
        top = new_top
    to = out + at[:, None] * (HEADS * SIZE) + head[:, None] * SIZE + d[None, :]
    tl.store(to, (acc / total[:, None]).to(out.dtype.element_ty), mask=is_query)
