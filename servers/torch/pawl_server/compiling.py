"""Compiled functions over tensors whose first dimension, tokens or rows, varies from call to call."""
from __future__ import annotations

from typing import Any, Callable, Sequence

import torch


def compile_rows(function: Callable[..., Any], varying: Sequence[int]) -> Callable[..., Any]:
    """Compiles a function once for any length of the given arguments; everything else is fixed."""
    compiled = torch.compile(function)

    def call(*arguments: Any) -> Any:
        for place in varying:
            if arguments[place] is not None:
                torch._dynamo.maybe_mark_dynamic(arguments[place], 0)
        return compiled(*arguments)

    return call
