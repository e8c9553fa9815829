"""The GPU's choice of the next token, in Triton: the logits are read once, and those near the
chosen token once more.
"""
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

# Logits that one program reads.
CHUNK = 4096


def choose_gpu(logits: Tensor, temperatures: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """`choose` of choose.py: tokens, their log-probabilities, and those under the sampled
    distribution.
    """
    rows, width = logits.shape
    chunks = triton.cdiv(width, CHUNK)
    real = lambda *shape: torch.empty(shape, device=logits.device, dtype=torch.float32)
    whole = lambda *shape: torch.empty(shape, device=logits.device, dtype=torch.int64)
    tops, sums, plain_sums, best = real(rows, chunks), real(rows, chunks), real(rows, chunks), whole(rows, chunks)
    _sum_chunks[(rows, chunks)](
        logits, temperatures, tops, sums, plain_sums, best, width, chunks, logits.stride(0), CHUNK=CHUNK, num_warps=4
    )
    tokens, logprobs, sampled = whole(rows), real(rows), real(rows)
    _draw[(rows,)](
        logits, temperatures, uniform, tops, sums, plain_sums, best, tokens, logprobs, sampled,
        width, chunks, logits.stride(0), CHUNK=CHUNK, CHUNKS=triton.next_power_of_2(chunks), num_warps=8,
    )  # fmt: skip
    return tokens, logprobs, sampled


@triton.jit
def _sum_chunks(
    logits, temperatures, tops, sums, plain_sums, best, width, chunks, stride, CHUNK: tl.constexpr
):  # fmt: skip
    row, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    i = chunk * CHUNK + tl.arange(0, CHUNK)
    x = tl.load(logits + row * stride + i, mask=i < width, other=float("-inf"))
    temperature = tl.load(temperatures + row)
    divisor = tl.where(temperature == 0, 1.0, temperature)
    scaled = x / divisor
    top, place = tl.max(scaled, 0, return_indices=True)
    at = row * chunks + chunk
    tl.store(tops + at, top)
    tl.store(best + at, chunk * CHUNK + place)
    tl.store(sums + at, tl.sum(tl.exp(scaled - top), 0))
    # The model's own distribution, at temperature 1.
    tl.store(plain_sums + at, tl.sum(tl.exp(x - top * divisor), 0))


@triton.jit
def _draw(
    logits, temperatures, uniform, tops, sums, plain_sums, best, tokens, logprobs, sampled,
    width, chunks, stride, CHUNK: tl.constexpr, CHUNKS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    temperature = tl.load(temperatures + row)
    greedy = temperature == 0
    divisor = tl.where(greedy, 1.0, temperature)
    c = tl.arange(0, CHUNKS)
    is_chunk = c < chunks
    chunk_tops = tl.load(tops + row * chunks + c, mask=is_chunk, other=float("-inf"))
    top, top_chunk = tl.max(chunk_tops, 0, return_indices=True)
    level = top * divisor
    shares = tl.load(sums + row * chunks + c, mask=is_chunk, other=0.0) * tl.exp(chunk_tops - top)
    plain = tl.load(plain_sums + row * chunks + c, mask=is_chunk, other=0.0) * tl.exp((chunk_tops - top) * divisor)
    total, plain_total = tl.sum(shares, 0), tl.sum(plain, 0)
    threshold = tl.load(uniform + row) * total
    chunk = tl.minimum(tl.sum((tl.cumsum(shares, 0) <= threshold).to(tl.int32), 0), chunks - 1)
    below = tl.sum(tl.where(c < chunk, shares, 0.0), 0)
    i = chunk * CHUNK + tl.arange(0, CHUNK)
    x = tl.load(logits + row * stride + i, mask=i < width, other=float("-inf"))
    inside = below + tl.cumsum(tl.exp(x / divisor - top), 0)
    place = tl.minimum(tl.sum((inside <= threshold).to(tl.int32), 0), CHUNK - 1)
    drawn = tl.minimum(chunk * CHUNK + place, width - 1)
    chosen = tl.where(greedy, tl.load(best + row * chunks + top_chunk), drawn.to(tl.int64))
    logit = tl.load(logits + row * stride + chosen)
    tl.store(tokens + row, chosen)
    tl.store(logprobs + row, logit - level - tl.log(plain_total))
    tl.store(sampled + row, tl.where(greedy, 0.0, logit / divisor - top - tl.log(total)))
