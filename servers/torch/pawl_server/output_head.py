"""From last hidden states to log-probabilities and, in training, to the loss and its gradient, in
one pass.

Logits exist for a chunk of tokens at a time. In training each chunk's logits become the gradient
right away: an objective is a sum over tokens, so its derivative is known as soon as a chunk's
log-probabilities are. Nothing is kept for the backward pass but the gradient itself, and nothing is
computed twice.
"""
from __future__ import annotations

from functools import lru_cache
from typing import Any, Callable, Iterator, Mapping, NamedTuple, Optional

import torch
from torch import Tensor

from .compiling import compile_rows
from .constraints import MASKED
from .expression import Objective, evaluate


# The masks of some targets, and for each target which; None: everything is allowed.
Masks = Optional[tuple[Tensor, Tensor]]


class Scores(NamedTuple):
    """One number for each target token."""

    logprobs: Tensor
    entropies: Optional[Tensor]
    values: Optional[Tensor]


class Outcome(NamedTuple):
    """The results of an objective; the loss carries the gradient. Metrics are in the order of their
    names.
    """

    loss: Tensor
    logprobs: Tensor
    metrics: Tensor
    # The loss of each token.
    losses: Tensor


def score(
    hidden: Tensor,
    weight: Tensor,
    value_head: Optional[Tensor],
    targets: Tensor,
    temperatures: Optional[Tensor],
    *,
    entropies: bool,
    values: bool,
    masks: Masks = None,
) -> Scores:
    """Log-probability of each target at its temperature, and the other requested quantities."""
    parts: list[tuple[Tensor, Optional[Tensor]]] = []
    for rows in _chunks(hidden, weight):
        logits = _logits(hidden[rows], weight, _of(temperatures, rows), masks, rows)
        logprob, _, entropy = _kernels(logits.device.type).statistics(logits, targets[rows], entropies)
        parts.append((logprob, entropy))
    empty = hidden.new_zeros(0, dtype=torch.float32)
    return Scores(
        torch.cat([part[0] for part in parts] or [empty]),
        torch.cat([part[1] for part in parts if part[1] is not None] or [empty]) if entropies else None,
        _values(hidden, value_head) if values and value_head is not None else None,
    )


def learn(
    hidden: Tensor,
    weight: Tensor,
    value_head: Optional[Tensor],
    targets: Tensor,
    temperatures: Optional[Tensor],
    inputs: Mapping[str, Tensor],
    objective: Objective,
    masks: Masks = None,
) -> Outcome:
    """The objective's loss and metrics, summed over tokens; `loss.backward()` does no redundant
    work.
    """
    return Outcome(*_Learn.apply(hidden, weight, value_head, targets, temperatures, inputs, objective, masks))


class _Learn(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        value_head: Optional[Tensor],
        targets: Tensor,
        temperatures: Optional[Tensor],
        inputs: Mapping[str, Tensor],
        objective: Objective,
        masks: Masks,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        kernels = _kernels(hidden.device.type)
        needs_entropy, needs_value = objective.uses("entropy"), objective.uses("value")
        metrics = hidden.new_zeros(len(objective.metrics), dtype=torch.float32)
        logprobs = hidden.new_empty(len(targets), dtype=torch.float32)
        losses = torch.empty_like(logprobs)
        d_hidden = torch.empty_like(hidden)
        d_weight: Optional[Tensor] = None
        d_value = None if value_head is None else torch.zeros_like(value_head)
        for rows in _chunks(hidden, weight):
            states = hidden[rows]
            temperature = _of(temperatures, rows)
            logits = _logits(states, weight, temperature, masks, rows)
            logprob, log_sum, entropy = kernels.statistics(logits, targets[rows], needs_entropy)
            leaves = {"logprob": logprob.requires_grad_()}
            if entropy is not None:
                leaves["entropy"] = entropy.requires_grad_()
            if needs_value:
                leaves["value"] = _values(states, value_head).requires_grad_()
            with torch.enable_grad():
                tokens, measured = evaluate(objective, {**leaves, **{n: x[rows] for n, x in inputs.items()}})
                total = tokens.sum()
            slopes = dict.fromkeys(leaves)
            if total.requires_grad:
                slopes = dict(zip(leaves, torch.autograd.grad(total, list(leaves.values()), allow_unused=True)))
            losses[rows] = tokens.detach()
            if measured:
                metrics += torch.stack([x.sum() for x in measured.values()])
            logprobs[rows] = logprob.detach()
            slope = slopes["logprob"] if slopes["logprob"] is not None else torch.zeros_like(logprob)
            # The temperature's factor in the chain rule, applied to the few numbers in full
            # precision.
            through = lambda slope: slope if slope is None or temperature is None else slope / temperature
            d_logits = kernels.gradient(
                logits, targets[rows], log_sum, through(slope.detach()), entropy, through(slopes.get("entropy")), hidden.dtype
            )
            d_hidden[rows] = d_logits @ weight
            if slopes.get("value") is not None:
                d_value += (slopes["value"][:, None] * states.float()).sum(0, keepdim=True).to(d_value.dtype)
                d_hidden[rows] += (slopes["value"][:, None] * value_head.float()).to(hidden.dtype)
            if weight.requires_grad:
                d_weight = _accumulate(d_weight, d_logits.t(), states)
            del logits, d_logits
        if d_weight is None and weight.requires_grad:
            d_weight = torch.zeros_like(weight)
        ctx.gradients = (d_hidden, None if d_weight is None else d_weight.to(weight.dtype), d_value)
        ctx.mark_non_differentiable(logprobs, metrics, losses)
        return losses.sum(), logprobs, metrics, losses

    @staticmethod
    def backward(ctx: Any, d_loss: Tensor, *_: Tensor) -> tuple[Optional[Tensor], ...]:
        scaled = (None if gradient is None else gradient.mul_(d_loss.to(gradient.dtype)) for gradient in ctx.gradients)
        return (*scaled, None, None, None, None, None)


def _logits(hidden: Tensor, weight: Tensor, temperature: Optional[Tensor], masks: Masks, rows: slice) -> Tensor:
    """Logits in 32 bits, divided by the temperature of the predicted token. What is not allowed has no
    probability, and so no gradient.
    """
    logits = product(hidden, weight.t())
    if temperature is not None:
        logits.div_(temperature[:, None])
    return logits if masks is None else logits.masked_fill_(~masks[0][masks[1][rows]], MASKED)


def _of(temperatures: Optional[Tensor], rows: slice) -> Optional[Tensor]:
    return None if temperatures is None else temperatures[rows]


def _values(hidden: Tensor, value_head: Tensor) -> Tensor:
    return hidden.float() @ value_head.float()[0]


def _chunks(hidden: Tensor, weight: Tensor) -> Iterator[slice]:
    """Tokens whose logits are held at a time: 128 MiB of them on a CPU; on a GPU 256 MiB to 2 GiB, by
    the size of the model.
    """
    numbers = min(2**29, max(2**26, 2 * weight.numel())) if hidden.is_cuda else 2**25
    size = max(128, numbers // weight.shape[0] // 128 * 128)
    return (slice(begin, begin + size) for begin in range(0, hidden.shape[0], size))


def product(a: Tensor, b: Tensor) -> Tensor:
    """A matrix product with a 32-bit result for any operands: 16-bit logits are too coarse for
    ratios.
    """
    if a.dtype == torch.float32:
        return a @ b
    if a.is_cuda and _HAS_OUT_DTYPE:
        return torch.mm(a, b, out_dtype=torch.float32)
    return (a @ b).float()


def _accumulate(total: Optional[Tensor], a: Tensor, b: Tensor) -> Tensor:
    return product(a, b) if total is None else total.add_(product(a, b))


_HAS_OUT_DTYPE = hasattr(torch.ops.aten.mm, "dtype")


class _Kernels(NamedTuple):
    statistics: Callable[..., tuple[Tensor, Tensor, Optional[Tensor]]]
    gradient: Callable[..., Tensor]


@lru_cache
def _kernels(device: str) -> _Kernels:
    if device == "cpu":
        return _Kernels(_statistics, _gradient)
    return _Kernels(compile_rows(_statistics, (0, 1)), compile_rows(_gradient, (0, 1, 2, 3, 4, 5)))


def _statistics(logits: Tensor, targets: Tensor, entropies: bool) -> tuple[Tensor, Tensor, Optional[Tensor]]:
    """Log-probability of the target, log of the sum of exponentials, and the entropy if needed."""
    log_sum = logits.logsumexp(-1)
    logprob = logits.gather(1, targets[:, None])[:, 0] - log_sum
    if not entropies:
        return logprob, log_sum, None
    probabilities = (logits - log_sum[:, None]).exp()
    return logprob, log_sum, log_sum - (probabilities * logits).sum(-1)


def _gradient(
    logits: Tensor,
    targets: Tensor,
    log_sum: Tensor,
    d_logprob: Tensor,
    entropy: Optional[Tensor],
    d_entropy: Optional[Tensor],
    dtype: torch.dtype,
) -> Tensor:
    """The gradient with respect to the logits: d logprob = onehot − p, d entropy = −p (log p +
    entropy).
    """
    logp = logits - log_sum[:, None]
    p = logp.exp()
    is_target = torch.arange(logits.shape[1], device=logits.device) == targets[:, None]
    gradient = d_logprob[:, None] * (is_target.float() - p)
    if entropy is not None and d_entropy is not None:
        gradient = gradient - d_entropy[:, None] * p * (logp + entropy[:, None])
    return gradient.to(dtype)
