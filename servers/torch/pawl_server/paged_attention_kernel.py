"""The GPU's paged attention, in Triton: the keys of a row are split among programs, whose parts are then joined."""
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

# Programs wanted for one layer of one step: a few for each of a large GPU's multiprocessors.
PROGRAMS = 512
MAX_SPLITS = 16
# The fastest of those tried on an H200 (docs/gpu.md).
WARPS, STAGES = 4, 3
# A matrix unit multiplies no fewer rows than this.
MIN_ROWS = 16


def paged_attention_gpu(q: Tensor, keys: Tensor, values: Tensor, tables: Tensor, lengths: Tensor) -> Tensor:
    """From queries [rows, heads, size] and pages [pages, PAGE, kv heads, size] to [rows, heads, size]."""
    rows, heads, size = q.shape
    page, kv_heads = keys.shape[1], keys.shape[2]
    group = heads // kv_heads
    splits = max(1, min(MAX_SPLITS, PROGRAMS // (rows * kv_heads)))
    parts = torch.empty(rows, heads, splits, size, device=q.device, dtype=torch.float32)
    sums = torch.empty(rows, heads, splits, device=q.device, dtype=torch.float32)
    tops = torch.empty_like(sums)
    _attend_part[(rows, kv_heads, splits)](
        q, keys, values, tables, lengths, parts, sums, tops,
        q.stride(0), keys.stride(0), keys.stride(1), tables.stride(0), size**-0.5 * 1.4426950408889634,
        HEADS=heads, GROUP=group, GROUP_ROWS=max(MIN_ROWS, triton.next_power_of_2(group)),
        SIZE=size, SIZE_ROWS=triton.next_power_of_2(size), PAGE=page, SPLITS=splits,
        num_warps=WARPS, num_stages=STAGES,
    )  # fmt: skip
    out = torch.empty_like(q)
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


def rotate_and_store_gpu(
    projected: Tensor, cos: Tensor, sin: Tensor, heads: int, keys: Tensor, values: Tensor, slots: Tensor
) -> Tensor:
    """Splits projections [rows, heads + 2 kv heads, size]: returns rotated queries, writes rotated keys, and values.

    The rotation is that of `rotate` in model.py, to which a test holds it.
    """
    rows, every, size = projected.shape
    q = torch.empty(rows, heads, size, device=projected.device, dtype=projected.dtype)
    _rotate_and_store[(rows, every)](
        projected, cos, sin, q, keys, values, slots, projected.stride(0),
        HEADS=heads, KV_HEADS=keys.shape[2], HALF=size // 2, WIDTH=triton.next_power_of_2(size // 2), num_warps=1,
    )  # fmt: skip
    return q


@triton.jit
def _rotate_and_store(
    projected, cos, sin, q, keys, values, slots, stride,
    HEADS: tl.constexpr, KV_HEADS: tl.constexpr, HALF: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    row, head = tl.program_id(0), tl.program_id(1)
    i = tl.arange(0, WIDTH)
    inside = i < HALF
    source = projected + row * stride + head * 2 * HALF + i
    a = tl.load(source, mask=inside).to(tl.float32)
    b = tl.load(source + HALF, mask=inside).to(tl.float32)
    c = tl.load(cos + row * HALF + i, mask=inside)
    s = tl.load(sin + row * HALF + i, mask=inside)
    slot = tl.load(slots + row)
    # Queries come first, then keys; values, which are not rotated, come last.
    if head < HEADS:
        to = q + (row * HEADS + head) * 2 * HALF + i
        tl.store(to, (a * c - b * s).to(q.dtype.element_ty), mask=inside)
        tl.store(to + HALF, (b * c + a * s).to(q.dtype.element_ty), mask=inside)
    elif head < HEADS + KV_HEADS:
        to = keys + (slot * KV_HEADS + head - HEADS) * 2 * HALF + i
        tl.store(to, (a * c - b * s).to(q.dtype.element_ty), mask=inside)
        tl.store(to + HALF, (b * c + a * s).to(q.dtype.element_ty), mask=inside)
    else:
        to = values + (slot * KV_HEADS + head - HEADS - KV_HEADS) * 2 * HALF + i
        tl.store(to, a.to(q.dtype.element_ty), mask=inside)
        tl.store(to + HALF, b.to(q.dtype.element_ty), mask=inside)


@triton.jit
def _store(keys, values, slots, k, v, k_stride, v_stride, NUMBERS: tl.constexpr, WIDTH: tl.constexpr):
    token = tl.program_id(0)
    slot = tl.load(slots + token)
    i = tl.arange(0, WIDTH)
    tl.store(keys + slot * NUMBERS + i, tl.load(k + token * k_stride + i, mask=i < NUMBERS), mask=i < NUMBERS)
    tl.store(values + slot * NUMBERS + i, tl.load(v + token * v_stride + i, mask=i < NUMBERS), mask=i < NUMBERS)


@triton.jit
def _attend_part(
    q, keys, values, tables, lengths, parts, sums, tops,
    q_stride, page_stride, token_stride, table_stride, scale,
    HEADS: tl.constexpr, GROUP: tl.constexpr, GROUP_ROWS: tl.constexpr,
    SIZE: tl.constexpr, SIZE_ROWS: tl.constexpr, PAGE: tl.constexpr, SPLITS: tl.constexpr,
):  # fmt: skip
    row, kv_head, split = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    length = tl.load(lengths + row)
    pages = (length + PAGE - 1) // PAGE
    each = (pages + SPLITS - 1) // SPLITS
    first = split * each
    last = tl.minimum(first + each, pages)
    member = tl.arange(0, GROUP_ROWS)
    d = tl.arange(0, SIZE_ROWS)
    token = tl.arange(0, PAGE)
    head = kv_head * GROUP + member
    is_query = (member[:, None] < GROUP) & (d[None, :] < SIZE)
    query = tl.load(q + row * q_stride + head[:, None] * SIZE + d[None, :], mask=is_query, other=0.0)
    top = tl.full([GROUP_ROWS], float("-inf"), tl.float32)
    total = tl.zeros([GROUP_ROWS], tl.float32)
    acc = tl.zeros([GROUP_ROWS, SIZE_ROWS], tl.float32)
    for i in range(first, last):
        page = tl.load(tables + row * table_stride + i).to(tl.int64)
        at = page * page_stride + token[:, None] * token_stride + kv_head * SIZE + d[None, :]
        inside = i * PAGE + token < length
        is_key = inside[:, None] & (d[None, :] < SIZE)
        k = tl.load(keys + at, mask=is_key, other=0.0)
        v = tl.load(values + at, mask=is_key, other=0.0)
        scores = tl.dot(query, tl.trans(k)) * scale
        scores = tl.where(inside[None, :], scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp2(scores - new_top[:, None])
        shrink = tl.exp2(top - new_top)
        total = total * shrink + tl.sum(p, 1)
        acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype), v)
        top = new_top
    at = (row * HEADS + head) * SPLITS + split
    tl.store(sums + at, total, mask=member < GROUP)
    tl.store(tops + at, top, mask=member < GROUP)
    tl.store(parts + at[:, None] * SIZE + d[None, :], acc, mask=is_query)


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
        # A part without keys has the top -infinity, and so the weight 0.
        weight = tl.exp2(tl.load(tops + at * SPLITS + split) - top)
        total += weight * tl.load(sums + at * SPLITS + split)
        acc += weight * tl.load(parts + (at * SPLITS + split) * SIZE + d, mask=d < SIZE, other=0.0)
    tl.store(out + at * SIZE + d, (acc / total).to(out.dtype.element_ty), mask=d < SIZE)
