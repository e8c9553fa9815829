"""Options and results of an engine."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

import torch
from torch import Tensor


@dataclass(frozen=True)
class EngineOptions:
    """How models are computed on this server."""

    dtype: torch.dtype
    # Tokens in one forward pass; None: chosen by the model's size.
    batch_tokens: Optional[int]
    checkpointing: bool
    compiled: bool
    # Maximum number of rows sampled at once; None: chosen by device.
    sample_rows: Optional[int] = None
    # The most memory of a GPU that this process may take, in bytes; None: what there is.
    memory: Optional[int] = None


@dataclass(frozen=True)
class Scored:
    """Results by flat entry of the request's sequences; 0 for entries that are not targets."""

    logprobs: Tensor
    entropies: Optional[Tensor] = None
    values: Optional[Tensor] = None


@dataclass(frozen=True)
class Learned:
    """The summed loss and metrics, and log-probabilities by flat entry."""

    loss: float
    metrics: dict[str, float]
    logprobs: Tensor
