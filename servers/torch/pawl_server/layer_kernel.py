"""The operations between a layer's matrix products, in Triton, for the few rows of a decode step.

Both are functions of model.py, and a test compares them; compiled from there they take half as long
again.
"""
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

# Outputs per program of `swiglu_gpu`.
WIDTH = 1024


def rms_norm_gpu(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    rows, size = x.shape
    out = torch.empty_like(x)
    _rms_norm[(rows,)](x, weight, out, eps, SIZE=size, WIDTH=triton.next_power_of_2(size), num_warps=4)
    return out


def swiglu_gpu(x: Tensor) -> Tensor:
    rows, size = x.shape[0], x.shape[1] // 2
    out = torch.empty(rows, size, device=x.device, dtype=x.dtype)
    _swiglu[(rows, triton.cdiv(size, WIDTH))](x, out, SIZE=size, WIDTH=WIDTH, num_warps=8)
    return out


@triton.jit
def _rms_norm(x, weight, out, eps, SIZE: tl.constexpr, WIDTH: tl.constexpr):
    i = tl.arange(0, WIDTH)
    at = tl.program_id(0) * SIZE + i
    a = tl.load(x + at, mask=i < SIZE, other=0.0)
    w = tl.load(weight + i, mask=i < SIZE, other=0.0)
    wide = a.to(tl.float32)
    scale = tl.rsqrt(tl.sum(wide * wide, 0) / SIZE + eps)
    tl.store(out + at, (wide * scale).to(a.dtype) * w, mask=i < SIZE)


@triton.jit
def _swiglu(x, out, SIZE: tl.constexpr, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    i = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    gate = tl.load(x + row * 2 * SIZE + i, mask=i < SIZE, other=0.0).to(tl.float32)
    up = tl.load(x + row * 2 * SIZE + SIZE + i, mask=i < SIZE, other=0.0).to(tl.float32)
    tl.store(out + row * SIZE + i, (gate * tl.sigmoid(gate) * up).to(out.dtype.element_ty), mask=i < SIZE)
