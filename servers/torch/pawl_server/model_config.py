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
    # Base of their rotary embedding, if it is not that of the other layers.
    rope_theta: Optional[float] = None


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
    # Query, key and value projections have a bias.
    qkv_bias: bool = False
    # Queries and keys have a norm over each head, before they are rotated.
    qk_norms: bool = False
    # The factor of a norm is one more than its weight.
    norms_plus_one: bool = False
    # What attention and MLP add to the residual stream is normed first.
    output_norms: bool = False
    # Embeddings are multiplied by the square root of the hidden size.
    scaled_embeddings: bool = False
    # The activation of the MLP's gate is GELU, approximated by tanh, and not SiLU.
    gelu: bool = False
    # Attention scores are divided by its square root; the default is the size of a head.
    query_scalar: Optional[float] = None
    rope_scaling: Optional[RopeScaling] = None
    # Layers without a rotary embedding.
    unrotated_layers: tuple[int, ...] = ()
    sliding_window: Optional[SlidingWindow] = None
    # Whether the model is defined here; all others are left to transformers.
    built_in: bool = True
    # Names the layers that carry a state from token to token, which packing and pages do not allow.
    recurrent: str = ""

    def window_of(self, layer: int) -> Optional[int]:
        """The tokens that a layer sees; None if it sees all that the model can read."""
        window = self.sliding_window
        return window.size if window is not None and layer in window.layers and window.size < self.max_context else None

    @property
    def has_decode_kernels(self) -> bool:
        """Whether the GPU's kernels between matrix products compute these layers: Llama's norms and SwiGLU."""
        return not (self.norms_plus_one or self.output_norms or self.gelu or self.query_scalar)
