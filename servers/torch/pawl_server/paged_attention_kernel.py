"""The GPU's paged attention, in Triton: one program rotates, stores and attends for a row and a
head of keys.

If there are few rows, the keys of a row are split over several programs, whose partial results are
then combined.
"""
from __future__ import annotations

from typing import Optional

import torch
import triton
import triton.language as tl
from torch import Tensor

# Desired programs per layer of a decode step: about as many as a large GPU runs at once.
PROGRAMS = 256
MAX_SPLITS = 16
# The fastest of those tried on an H200 (docs/gpu.md): pages in flight at a time, as far as shared
# memory allows.
WARPS, STAGES, SHARED_BYTES = 4, 5, 160 * 1024
# The minimum number of rows of a matrix unit.
MIN_ROWS = 16


def paged_attention_gpu(
    q: Tensor, k: Tensor, v: Tensor, rotation: Optional[tuple[Tensor, Tensor]],
    keys: Tensor, values: Tensor, tables: Tensor, lengths: Tensor, window: Optional[int] = None,
) -> Tensor:  # fmt: skip
    """From a new token's queries, keys and values, [rows, heads, size], to [rows, heads, size].

    Keys and values are stored in the pages [pages, PAGE, kv heads, size], at the end of each row.
    Given cosines and sines, queries and keys are rotated first, as by `rotate` of model.py; a test
    compares them. With a window, only the last tokens of a row are read, as many as it says.
    """
    rows, heads, size = q.shape
    page, kv_heads = keys.shape[1], keys.shape[2]
    group, half = heads // kv_heads, size // 2
    splits = max(1, min(MAX_SPLITS, PROGRAMS // (rows * kv_heads)))
    stages = max(1, min(STAGES, SHARED_BYTES // (2 * page * size * keys.element_size())))
    out = torch.empty(rows, heads, size, device=q.device, dtype=q.dtype)
    parts, sums, tops = (
        (torch.empty(rows, heads, splits, n, device=q.device, dtype=torch.float32) for n in (size, 1, 1))
        if splits > 1
        else (None, None, None)
    )
    cos, sin = rotation or (None, None)
    _attend[(rows, kv_heads, splits)](
        q, k, v, cos, sin, keys, values, tables, lengths, out, parts, sums, tops,
        q.stride(0), k.stride(0), v.stride(0), tables.stride(0), size**-0.5 * 1.4426950408889634,
        ROTATE=rotation is not None, HEADS=heads, KV_HEADS=kv_heads, GROUP=group,
        GROUP_ROWS=max(MIN_ROWS, triton.next_power_of_2(group)), HALF=half,
        HALF_ROWS=max(MIN_ROWS, triton.next_power_of_2(half)), SIZE_ROWS=triton.next_power_of_2(size),
        PAGE=page, SPLITS=splits, WINDOW=window or 0, num_warps=WARPS, num_stages=stages,
    )  # fmt: skip
    if splits > 1:
        _join_parts[(rows, heads)](
            parts, sums, tops, out, HEADS=heads, SIZE=size, SIZE_ROWS=triton.next_power_of_2(size), SPLITS=splits,
            num_warps=1,
        )  # fmt: skip
    return out


def store_gpu(keys: Tensor, values: Tensor, slots: Tensor, k: Tensor, v: Tensor) -> None:
    """Writes keys and values of some tokens to their slots in the pages."""
    numbers = k.shape[1] * k.shape[2]
    _store[(k.shape[0],)](
        keys, values, slots, k, v, k.stride(0), v.stride(0), NUMBERS=numbers,
        WIDTH=triton.next_power_of_2(numbers), num_warps=1,
    )  # fmt: skip


@triton.jit
def _store(keys, values, slots, k, v, k_stride, v_stride, NUMBERS: tl.constexpr, WIDTH: tl.constexpr):
    token = tl.program_id(0)
    slot = tl.load(slots + token)
    i = tl.arange(0, WIDTH)
    tl.store(keys + slot * NUMBERS + i, tl.load(k + token * k_stride + i, mask=i < NUMBERS), mask=i < NUMBERS)
    tl.store(values + slot * NUMBERS + i, tl.load(v + token * v_stride + i, mask=i < NUMBERS), mask=i < NUMBERS)


@triton.jit
def _attend(
    q, k, v, cos, sin, keys, values, tables, lengths, out, parts, sums, tops,
    q_stride, k_stride, v_stride, table_stride, scale,
    ROTATE: tl.constexpr, HEADS: tl.constexpr, KV_HEADS: tl.constexpr, GROUP: tl.constexpr,
    GROUP_ROWS: tl.constexpr, HALF: tl.constexpr, HALF_ROWS: tl.constexpr, SIZE_ROWS: tl.constexpr,
    PAGE: tl.constexpr, SPLITS: tl.constexpr, WINDOW: tl.constexpr,
):  # fmt: skip
    row, kv_head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    SIZE: tl.constexpr = 2 * HALF
    member = tl.arange(0, GROUP_ROWS)
    i = tl.arange(0, HALF_ROWS)
    d = tl.arange(0, SIZE_ROWS)
    token = tl.arange(0, PAGE)
    in_half, in_size = i < HALF, d < SIZE
    head = kv_head * GROUP + member
    is_query = (member[:, None] < GROUP) & in_half[None, :]

    old = tl.load(lengths + row) - 1
    own_page = tl.load(tables + row * table_stride + old // PAGE).to(tl.int64)
    # The new token: its halves are rotated against each other, and it is attended to first.
    q_at = q + row * q_stride + head[:, None] * SIZE + i[None, :]
    q_a, q_b = tl.load(q_at, mask=is_query, other=0.0), tl.load(q_at + HALF, mask=is_query, other=0.0)
    k_at = k + row * k_stride + kv_head * SIZE + i
    k_a, k_b = tl.load(k_at, mask=in_half, other=0.0), tl.load(k_at + HALF, mask=in_half, other=0.0)
    new_value = tl.load(v + row * v_stride + kv_head * SIZE + d, mask=in_size, other=0.0)
    if ROTATE:
        c = tl.load(cos + row * HALF + i, mask=in_half, other=0.0)
        s = tl.load(sin + row * HALF + i, mask=in_half, other=0.0)
        kind = q_a.dtype
        a, b = q_a.to(tl.float32), q_b.to(tl.float32)
        q_a, q_b = (a * c[None, :] - b * s[None, :]).to(kind), (b * c[None, :] + a * s[None, :]).to(kind)
        a, b = k_a.to(tl.float32), k_b.to(tl.float32)
        k_a, k_b = (a * c - b * s).to(kind), (b * c + a * s).to(kind)
    is_first = split == 0
    score = tl.sum(q_a.to(tl.float32) * k_a.to(tl.float32)[None, :], 1)
    score = (score + tl.sum(q_b.to(tl.float32) * k_b.to(tl.float32)[None, :], 1)) * scale
    top = tl.where(is_first, score, float("-inf"))
    total = tl.where(is_first, tl.full([GROUP_ROWS], 1.0, tl.float32), 0.0)
    acc = tl.where(is_first, 1.0, 0.0) * (tl.zeros([GROUP_ROWS, SIZE_ROWS], tl.float32) + new_value.to(tl.float32)[None, :])

    pages = (old + PAGE - 1) // PAGE
    # The new token is one of those in the window.
    begin = tl.maximum(old + 1 - WINDOW, 0) if WINDOW > 0 else 0
    each = (pages - begin // PAGE + SPLITS - 1) // SPLITS
    first = begin // PAGE + split * each
    for at in range(first, tl.minimum(first + each, pages)):
        page = tl.load(tables + row * table_stride + at).to(tl.int64)
        place = (page * PAGE + token[:, None]) * (KV_HEADS * SIZE) + kv_head * SIZE
        inside = at * PAGE + token < old
        if WINDOW > 0:
            inside = inside & (at * PAGE + token >= begin)
        is_key = inside[:, None] & in_half[None, :]
        key_a = tl.load(keys + place + i[None, :], mask=is_key, other=0.0)
        key_b = tl.load(keys + place + HALF + i[None, :], mask=is_key, other=0.0)
        value = tl.load(values + place + d[None, :], mask=inside[:, None] & in_size[None, :], other=0.0)
        scores = (tl.dot(q_a, tl.trans(key_a)) + tl.dot(q_b, tl.trans(key_b))) * scale
        scores = tl.where(inside[None, :], scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp2(scores - new_top[:, None])
        shrink = tl.exp2(top - new_top)
        total = total * shrink + tl.sum(p, 1)
        acc = acc * shrink[:, None] + tl.dot(p.to(value.dtype), value)
        top = new_top

    if is_first:
        own = (own_page * PAGE + old % PAGE) * (KV_HEADS * SIZE) + kv_head * SIZE
        tl.store(keys + own + i, k_a, mask=in_half)
        tl.store(keys + own + HALF + i, k_b, mask=in_half)
        tl.store(values + own + d, new_value, mask=in_size)
    is_out = (member[:, None] < GROUP) & in_size[None, :]
    if SPLITS == 1:
        at = (row * HEADS + head[:, None]) * SIZE + d[None, :]
        tl.store(out + at, (acc / total[:, None]).to(out.dtype.element_ty), mask=is_out)
    else:
        part = (row * HEADS + head) * SPLITS + split
        tl.store(sums + part, total, mask=member < GROUP)
        tl.store(tops + part, top, mask=member < GROUP)
        tl.store(parts + part[:, None] * SIZE + d[None, :], acc, mask=is_out)


@triton.jit
def _join_parts(
    parts, sums, tops, out,
    HEADS: tl.constexpr, SIZE: tl.constexpr, SIZE_ROWS: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * HEADS + tl.program_id(1)
    d = tl.arange(0, SIZE_ROWS)
    top = tl.full([1], float("-inf"), tl.float32)
    for split in range(SPLITS):
        top = tl.maximum(top, tl.load(tops + at * SPLITS + split))
    total = tl.zeros([1], tl.float32)
    acc = tl.zeros([SIZE_ROWS], tl.float32)
    for split in range(SPLITS):
        # A part without keys has the maximum -infinity, and so the weight 0.
        weight = tl.exp2(tl.load(tops + at * SPLITS + split) - top)
        total += weight * tl.load(sums + at * SPLITS + split)
        acc += weight * tl.load(parts + (at * SPLITS + split) * SIZE + d, mask=d < SIZE, other=0.0)
    tl.store(out + at * SIZE + d, (acc / total).to(out.dtype.element_ty), mask=d < SIZE)
