"""Chooses the next token of each row, from its logits and its own stream of random numbers."""
from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

# Tokens are drawn in two stages, a group of neighbours and then one of them: a short sum instead of
# a long one.
GROUP = 128


class Choice(NamedTuple):
    """One token per row, its log-probability under the model, and under the distribution it was
    drawn from.
    """

    tokens: Tensor
    logprobs: Tensor
    sampled_logprobs: Tensor


def uniforms(streams: Tensor, steps: Tensor) -> Tensor:
    """A number in [0, 1) for each row that depends only on the row's stream and step (splitmix64)."""
    x = streams + (steps + 1) * -7046029254386353131
    x = (x ^ _shift(x, 30)) * -4658895280553007687
    x = (x ^ _shift(x, 27)) * -7723592293110705685
    x = x ^ _shift(x, 31)
    return _shift(x, 40).float() * 2.0**-24


def stream_of(seed: int, index: int) -> int:
    """The stream of a request's sample: different seeds and samples have unrelated streams."""
    x = (seed * 0x9E3779B97F4A7C15 + index * 0xD1B54A32D192ED03 + 0x632BE59BD9B4E019) & (2**64 - 1)
    x = ((x ^ (x >> 31)) * 0x7FB5D329728EA185) & (2**64 - 1)
    x = ((x ^ (x >> 27)) * 0x81DADEF4BC2DD44D) & (2**64 - 1)
    x ^= x >> 33
    return x - 2**64 if x >= 2**63 else x


def choose(logits: Tensor, temperatures: Tensor, uniform: Tensor) -> Choice:
    """Draws from the full distribution of each row; temperature 0 is greedy."""
    if logits.is_cuda:
        from .choose_kernel import choose_gpu

        return Choice(*choose_gpu(logits, temperatures, uniform))
    greedy = temperatures == 0
    divisors = temperatures.masked_fill(greedy, 1.0)[:, None]
    scaled = logits / divisors
    top, best = scaled.max(-1, keepdim=True)
    groups = _grouped((scaled - top).exp())
    sums = groups.sum(-1).cumsum(-1)
    threshold = uniform * sums[:, -1]
    group = (sums <= threshold[:, None]).sum(-1, keepdim=True).clamp(max=sums.shape[1] - 1)
    below = F.pad(sums, (1, 0)).gather(1, group)
    inside = groups.gather(1, group[:, :, None].expand(-1, -1, GROUP))[:, 0].cumsum(-1) + below
    place = (inside <= threshold[:, None]).sum(-1, keepdim=True).clamp(max=GROUP - 1)
    drawn = (group * GROUP + place).clamp(max=logits.shape[1] - 1)
    chosen = torch.where(greedy[:, None], best, drawn)
    sampled = (scaled.gather(1, chosen) - top)[:, 0] - sums[:, -1].log()
    logprobs = logits.gather(1, chosen)[:, 0] - logits.logsumexp(-1)
    return Choice(chosen[:, 0], logprobs, sampled.masked_fill(greedy, 0.0))


def _grouped(x: Tensor) -> Tensor:
    """[rows, tokens] as [rows, groups, GROUP], with zeros at the end."""
    return F.pad(x, (0, -x.shape[1] % GROUP)).view(x.shape[0], -1, GROUP)


def choose_cut(logits: Tensor, temperatures: Tensor, uniform: Tensor, top_k: Tensor, top_p: Tensor) -> Choice:
    """Like `choose`, from the top-k most probable tokens (0: all) and the smallest set whose
    probability reaches top-p.

    Rows without truncation get the same result as from `choose`, so that a row does not depend on
    its neighbours.
    """
    plain = choose(logits, temperatures, uniform)
    greedy = temperatures == 0
    scaled = logits / temperatures.masked_fill(greedy, 1.0)[:, None]
    p, order = scaled.softmax(-1).sort(stable=True, dim=-1, descending=True)
    ranks = torch.arange(p.shape[1], device=p.device)
    # The token that reaches top-p is kept, so at least one always is.
    kept = (ranks < top_k.masked_fill(top_k == 0, p.shape[1])[:, None]) & (p.cumsum(-1) - p < top_p[:, None])
    p = p.masked_fill(~(kept | (ranks == 0)), 0.0)
    sums = p.cumsum(-1)
    last = (p > 0).sum(-1, keepdim=True) - 1
    place = torch.minimum((sums <= (uniform * sums[:, -1])[:, None]).sum(-1, keepdim=True), last)
    place = place.masked_fill(greedy[:, None], 0)
    tokens = order.gather(1, place)
    sampled = p.gather(1, place)[:, 0].log() - sums[:, -1].log()
    logprobs = logits.gather(1, tokens)[:, 0] - logits.logsumexp(-1)
    cut = Choice(tokens[:, 0], logprobs, sampled.masked_fill(greedy, 0.0))
    is_whole = (top_k == 0) & (top_p >= 1)
    return Choice(*(torch.where(is_whole, a, b) for a, b in zip(plain, cut)))


def _shift(x: Tensor, bits: int) -> Tensor:
    # PyTorch shifts signed numbers, so the copies of the sign bit are masked out.
    return (x >> bits) & ((1 << (64 - bits)) - 1)
