"""FSDP2: every rank holds a part of each weight, its gradient and its moments."""
from __future__ import annotations

from contextlib import contextmanager
from typing import Iterator

import torch

from .model import Model
from .ranks import Ranks

try:
    from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
except (ImportError, ValueError):
    # Not available before 2.6; Debian's 1.13 cannot even import its predecessor with Python 3.11.
    fully_shard = None


def can_shard() -> bool:
    """Whether this PyTorch's FSDP2 can keep gathered weights while sampling; if not, ranks hold whole models."""
    return fully_shard is not None and hasattr(FSDPModule, "set_reshard_after_forward")


def shard(model: Model, ranks: Ranks, dtype: torch.dtype) -> None:
    """Shards a model that has no storage yet, layer by layer, and gives each rank its part."""
    policy = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32, cast_forward_inputs=False)
    for block in model.blocks:
        fully_shard(block, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    model.to_empty(device=ranks.device)


@contextmanager
def unsharded(model: Model, sharded: bool) -> Iterator[None]:
    """Gathers all weights once, for many forward passes; then no rank waits for another."""
    if not sharded:
        yield
        return
    modules = [*model.blocks, model]
    for module in modules:
        module.set_reshard_after_forward(False, recurse=False)
        module.unshard()
    try:
        yield
    finally:
        for module in modules:
            module.reshard()
            module.set_reshard_after_forward(module is not model, recurse=False)


@contextmanager
def without_backward(model: Model, sharded: bool) -> Iterator[None]:
    """For forward-only passes: frees gathered weights, which the next pass would otherwise reuse
    even if they have changed.

    FSDP keeps the outermost weights after a pass, for the backward pass that usually follows and
    frees them.
    """
    try:
        yield
    finally:
        if sharded:
            model.reshard()
