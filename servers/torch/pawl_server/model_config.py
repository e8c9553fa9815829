"""The shape of a model, known to every part of the server."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from .rope import RopeScaling


@dataclass(frozen=True)
class SlidingWindow:
    """Layers in which a token sees only itself and the `size - 1` tokens before it."""

    size: int
    layers: tuple[int, ...]


@dataclass(frozen=True)
class ModelConfig:
    """Everything that determines a model's tensors and arithmetic."""

    vocabulary_size: int
    hidden_size: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    mlp_size: int
    max_context: int
    rope_theta: float
    norm_eps: float
    tied_embeddings: bool
    # Query, key and value projections have a bias, as in Qwen2.
    qkv_bias: bool = False
    # Queries and keys have a norm over each head before they are rotated, as in Qwen3.
    qk_norms: bool = False
    rope_scaling: Optional[RopeScaling] = None
    # Layers without a rotary embedding, as in SmolLM3.
    unrotated_layers: tuple[int, ...] = ()
    sliding_window: Optional[SlidingWindow] = None
    # Whether the model is defined here; all others are left to transformers.
    built_in: bool = True

    def window_of(self, layer: int) -> Optional[int]:
        """The tokens that a layer sees; None if it sees all that the model can read."""
        window = self.sliding_window
        return window.size if window is not None and layer in window.layers and window.size < self.max_context else None
