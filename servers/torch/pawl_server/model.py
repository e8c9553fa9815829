"""The decoder, from Llama to what its relatives change, over packed tokens: sequences follow one
another, unpadded.

Projections that read the same input are one matrix here (query, key, value; gate and up); `pieces`
says which rows belong to which tensor of a checkpoint. A layer's arithmetic consists of pure
functions, so that one compilation serves all layers.
"""
from __future__ import annotations

import math
from typing import Callable, Iterator, NamedTuple, Optional, Protocol, Sequence, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from .attention import PackedAttention, flash_attention
from .compiling import compile_rows
from .model_config import ModelConfig
from .paged_attention import PagedAttention
from .rope import rotary, rotate
from .sequences import BLOCK

T = TypeVar("T")
LORA_ALPHA = 32.0


class Piece(NamedTuple):
    """Rows `begin` to `end` of one of our parameters: a tensor of a Hugging Face checkpoint."""

    parameter: str
    name: str
    begin: int
    end: int


def adapter_names(parameter: str) -> tuple[str, str]:
    """What the two factors of a weight's adapter are called, if it has one."""
    stem = parameter.removesuffix("weight")
    return f"{stem}lora_down", f"{stem}lora_up"


class Projection(NamedTuple):
    """A linear layer; `down` and `up` are its low-rank adapter, if it has one."""

    weight: Tensor
    bias: Optional[Tensor]
    down: Optional[Tensor]
    up: Optional[Tensor]
    scale: float


class Attend(Protocol):
    """Attention of one layer, which may see only the last tokens: from queries, keys and values [tokens, heads, size]
    to [tokens, heads, size].
    """

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor, window: Optional[int] = None) -> Tensor: ...


class LayerWeights(NamedTuple):
    """Everything that a layer computes with."""

    attention_norm: Tensor
    qkv: Projection
    out: Projection
    mlp_norm: Tensor
    gate_up: Projection
    down: Projection
    query_norm: Optional[Tensor] = None
    key_norm: Optional[Tensor] = None
    attention_output_norm: Optional[Tensor] = None
    mlp_output_norm: Optional[Tensor] = None


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype) * weight


def norm(x: Tensor, weight: Tensor, config: ModelConfig) -> Tensor:
    """A model's norm; one that adds one to its weights does so in 32 bits."""
    if not config.norms_plus_one:
        return rms_norm(x, weight, config.norm_eps)
    return rms_norm(x.float(), 1 + weight.float(), config.norm_eps).to(x.dtype)


def project(x: Tensor, p: Projection) -> Tensor:
    y = F.linear(x, p.weight, p.bias)
    if p.down is None or p.up is None:
        return y
    return y + F.linear(F.linear(x, p.down), p.up) * p.scale


def split_heads(projected: Tensor, config: ModelConfig) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values, [tokens, heads, size] each."""
    heads = projected.view(projected.shape[0], -1, config.head_size)
    return heads.split((config.heads, config.kv_heads, config.kv_heads), 1)


def swiglu(x: Tensor) -> Tensor:
    gate, up = x.chunk(2, -1)
    return F.silu(gate) * up


def geglu(x: Tensor) -> Tensor:
    gate, up = x.chunk(2, -1)
    return F.gelu(gate, approximate="tanh") * up


def before_attention(
    x: Tensor, cos: Optional[Tensor], sin: Optional[Tensor], w: LayerWeights, config: ModelConfig
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of a layer, rotated if it has a rotary embedding."""
    q, k, v = split_heads(project(norm(x, w.attention_norm, config), w.qkv), config)
    if w.query_norm is not None and w.key_norm is not None:
        q, k = norm(q, w.query_norm, config), norm(k, w.key_norm, config)
    if config.query_scalar not in (None, config.head_size):
        # Attention divides by the square root of the head size.
        q = q * (config.head_size / config.query_scalar) ** 0.5
    if cos is None or sin is None:
        return q.contiguous(), k.contiguous(), v.contiguous()
    return rotate(q, cos, sin), rotate(k, cos, sin), v.contiguous()


def after_attention(x: Tensor, attended: Tensor, w: LayerWeights, config: ModelConfig) -> Tensor:
    """The rest of a layer: output projection, MLP, and both residual connections."""
    activation = geglu if config.gelu else swiglu
    y = project(attended.flatten(1), w.out)
    x = x + (y if w.attention_output_norm is None else norm(y, w.attention_output_norm, config))
    y = project(activation(project(norm(x, w.mlp_norm, config), w.gate_up)), w.down)
    return x + (y if w.mlp_output_norm is None else norm(y, w.mlp_output_norm, config))


def add_projection(x: Tensor, y: Tensor, p: Projection) -> None:
    """Adds a projection of y to x in place, without a copy of either."""
    x.addmm_(y, p.weight.t())
    if p.down is not None and p.up is not None:
        x.addmm_(F.linear(y, p.down), p.up.t(), alpha=p.scale)


def packed_layer(
    x: Tensor, cos: Optional[Tensor], sin: Optional[Tensor], ends: Tensor, longest: int, window: Optional[int], w: LayerWeights, config: ModelConfig
) -> Tensor:
    """A whole layer over packed sequences on a GPU."""
    q, k, v = before_attention(x, cos, sin, w, config)
    return after_attention(x, flash_attention(q, k, v, ends, longest, ends, longest, window), w, config)


class Compiled(NamedTuple):
    """The parts of a layer, each compiled once for all layers and any number of tokens."""

    rotary: Callable[..., tuple[Tensor, Tensor]]
    before: Callable[..., tuple[Tensor, Tensor, Tensor]]
    after: Callable[..., Tensor]
    packed: Callable[..., Tensor]
    norm: Callable[..., Tensor]


class Block(nn.Module):
    """One layer."""

    def __init__(self, config: ModelConfig, layer: int, rank: int, device: torch.device, dtype: torch.dtype) -> None:
        super().__init__()
        self.config, self.layer, self.rank, self.window = config, layer, rank, config.window_of(layer)
        hidden, mlp = config.hidden_size, config.mlp_size
        queries, keys = config.heads * config.head_size, config.kv_heads * config.head_size
        make = lambda *shape: nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.attention_norm, self.mlp_norm = make(hidden), make(hidden)
        shapes = {
            "qkv": (queries + 2 * keys, hidden),
            "out": (hidden, queries),
            "gate_up": (2 * mlp, hidden),
            "down": (hidden, mlp),
        }
        for name, (outputs, inputs) in shapes.items():
            self.register_parameter(f"{name}_weight", make(outputs, inputs))
            self.register_parameter(f"{name}_lora_down", make(rank, inputs) if rank else None)
            self.register_parameter(f"{name}_lora_up", make(outputs, rank) if rank else None)
        self.qkv_bias = make(queries + 2 * keys) if config.qkv_bias else None
        self.query_norm, self.key_norm = (make(config.head_size) if config.qk_norms else None for _ in range(2))
        self.attention_output_norm, self.mlp_output_norm = (make(hidden) if config.output_norms else None for _ in range(2))
        self.compiled: Optional[Compiled] = None

    def projection(self, name: str) -> Projection:
        bias = self.qkv_bias if name == "qkv" else None
        down, up = getattr(self, f"{name}_lora_down"), getattr(self, f"{name}_lora_up")
        return Projection(getattr(self, f"{name}_weight"), bias, down, up, LORA_ALPHA / max(1, self.rank))

    def forward(self, x: Tensor, cos: Optional[Tensor], sin: Optional[Tensor], attend: Attend) -> Tensor:
        config, p = self.config, self.projection
        if self.layer in config.unrotated_layers:
            cos = sin = None
        weights = LayerWeights(
            self.attention_norm, p("qkv"), p("out"), self.mlp_norm, p("gate_up"), p("down"), self.query_norm, self.key_norm,
            self.attention_output_norm, self.mlp_output_norm,
        )  # fmt: skip
        if self.compiled is not None and x.is_cuda and isinstance(attend, PackedAttention):
            return self.compiled.packed(x, cos, sin, attend.ends, attend.longest, self.window, weights, config)
        if x.is_cuda and isinstance(attend, PagedAttention) and config.has_decode_kernels:
            return self._decode(x, cos, sin, attend, weights)
        parts = self.compiled or UNCOMPILED
        attended = attend(self.layer, *parts.before(x, cos, sin, weights, config), self.window)
        return parts.after(x, attended, weights, config)

    def _decode(
        self, x: Tensor, cos: Optional[Tensor], sin: Optional[Tensor], attend: PagedAttention, w: LayerWeights
    ) -> Tensor:
        """The same for one token per row, on a GPU, where every kernel counts; changes x."""
        from .layer_kernel import rms_norm_gpu, swiglu_gpu

        eps, rotation = self.config.norm_eps, None if cos is None or sin is None else (cos, sin)
        q, k, v = split_heads(project(rms_norm_gpu(x, w.attention_norm, eps), w.qkv), self.config)
        if w.query_norm is not None and w.key_norm is not None:
            q, k = (rms_norm_gpu(y.flatten(0, 1), norm, eps).view_as(y) for y, norm in ((q, w.query_norm), (k, w.key_norm)))
        add_projection(x, attend(self.layer, q, k, v, self.window, rotation).flatten(1), w.out)
        add_projection(x, swiglu_gpu(project(rms_norm_gpu(x, w.mlp_norm, eps), w.gate_up)), w.down)
        return x


UNCOMPILED = Compiled(rotary, before_attention, after_attention, packed_layer, norm)


class Model(nn.Module):
    """The whole model, except what is done with its last hidden states: that is up to the caller's
    `finish`.
    """

    block = BLOCK

    def __init__(
        self,
        config: ModelConfig,
        *,
        device: torch.device,
        dtype: torch.dtype,
        lora_rank: int = 0,
        value_head: bool = False,
        checkpointing: bool = False,
    ) -> None:
        super().__init__()
        self.config, self.checkpointing = config, checkpointing
        make = lambda *shape: nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.embedding = make(config.vocabulary_size, config.hidden_size)
        self.blocks = nn.ModuleList(
            Block(config, layer, lora_rank, device, dtype) for layer in range(config.layers)
        )
        self.norm = make(config.hidden_size)
        self.head = None if config.tied_embeddings else make(config.vocabulary_size, config.hidden_size)
        self.value_head = make(1, config.hidden_size) if value_head else None
        self.compiled: Optional[Compiled] = None
        if lora_rank:
            for name, parameter in self.named_parameters():
                parameter.requires_grad_("lora" in name or name == "value_head")

    def forward(
        self,
        ids: Tensor,
        positions: Tensor,
        attend: Attend,
        finish: Callable[[Tensor, Tensor, Optional[Tensor]], T],
    ) -> T:
        """Reads packed tokens; `finish` gets the last hidden states, the output matrix and the value head."""
        config, parts = self.config, self.compiled or UNCOMPILED
        x = F.embedding(ids, self.embedding)
        if config.scaled_embeddings:
            # Rounded like the weights, as in transformers.
            x = x * float(torch.tensor(config.hidden_size**0.5, dtype=x.dtype))
        usual = parts.rotary(positions, config.head_size, config.rope_theta, config.rope_scaling)
        window, windowed = config.sliding_window, usual
        if window is not None and window.rope_theta is not None:
            windowed = parts.rotary(positions, config.head_size, window.rope_theta, None)
        for block in self.blocks:
            cos, sin = windowed if window is not None and block.layer in window.layers else usual
            if self.checkpointing and torch.is_grad_enabled():
                x = checkpoint(block, x, cos, sin, attend, use_reentrant=False)
            else:
                x = block(x, cos, sin, attend)
        x = parts.norm(x, self.norm, config)
        return finish(x, self.embedding if self.head is None else self.head, self.value_head)

    def pieces(self) -> list[Piece]:
        """Every tensor of a checkpoint, in the order the model uses them."""
        return list(_layout(self.config, self.value_head is not None))

    def compile(self) -> None:
        """Compiles the layers' arithmetic."""
        self.compiled = Compiled(
            compile_rows(rotary, (0,)),
            compile_rows(before_attention, (0, 1, 2)),
            compile_rows(after_attention, (0, 1)),
            compile_rows(packed_layer, (0, 1, 2, 3)),
            compile_rows(norm, (0,)),
        )
        for block in self.blocks:
            block.compiled = self.compiled


def _layout(config: ModelConfig, value_head: bool) -> Iterator[Piece]:
    queries, keys = config.heads * config.head_size, config.kv_heads * config.head_size
    hidden, mlp, vocabulary = config.hidden_size, config.mlp_size, config.vocabulary_size
    yield Piece("embedding", "model.embed_tokens.weight", 0, vocabulary)
    for layer in range(config.layers):
        ours, theirs = f"blocks.{layer}", f"model.layers.{layer}"
        yield Piece(f"{ours}.attention_norm", f"{theirs}.input_layernorm.weight", 0, hidden)
        for kind in ("weight", "bias") if config.qkv_bias else ("weight",):
            parts = (("q", queries), ("k", keys), ("v", keys))
            yield from _pieces(f"{ours}.qkv_{kind}", [(f"{theirs}.self_attn.{p}_proj.{kind}", n) for p, n in parts])
        if config.qk_norms:
            yield Piece(f"{ours}.query_norm", f"{theirs}.self_attn.q_norm.weight", 0, config.head_size)
            yield Piece(f"{ours}.key_norm", f"{theirs}.self_attn.k_norm.weight", 0, config.head_size)
        yield Piece(f"{ours}.out_weight", f"{theirs}.self_attn.o_proj.weight", 0, hidden)
        after_attention = f"{theirs}.post_attention_layernorm.weight"
        if config.output_norms:
            yield Piece(f"{ours}.attention_output_norm", after_attention, 0, hidden)
        before_mlp = f"{theirs}.pre_feedforward_layernorm.weight" if config.output_norms else after_attention
        yield Piece(f"{ours}.mlp_norm", before_mlp, 0, hidden)
        halves = [(f"{theirs}.mlp.{part}_proj.weight", mlp) for part in ("gate", "up")]
        yield from _pieces(f"{ours}.gate_up_weight", halves)
        yield Piece(f"{ours}.down_weight", f"{theirs}.mlp.down_proj.weight", 0, hidden)
        if config.output_norms:
            yield Piece(f"{ours}.mlp_output_norm", f"{theirs}.post_feedforward_layernorm.weight", 0, hidden)
    yield Piece("norm", "model.norm.weight", 0, hidden)
    if not config.tied_embeddings:
        yield Piece("head", "lm_head.weight", 0, vocabulary)
    if value_head:
        yield Piece("value_head", "value_head.weight", 0, 1)


def _pieces(parameter: str, parts: Sequence[tuple[str, int]]) -> Iterator[Piece]:
    begin = 0
    for name, rows in parts:
        yield Piece(parameter, name, begin, begin + rows)
        begin += rows


def initial_value(name: str, shape: torch.Size, config: ModelConfig, generator: torch.Generator) -> Tensor:
    """Initial numbers of a parameter: normal, smaller if it ends a residual branch; norms' factors 1;
    biases and heads 0.
    """
    if name.endswith("norm"):
        return torch.zeros(shape) if config.norms_plus_one else torch.ones(shape)
    if len(shape) == 1 or name == "value_head" or name.endswith("lora_up"):
        return torch.zeros(shape)
    ends = name.endswith(("out_weight", "down_weight"))
    deviation = 0.02 / math.sqrt(2 * config.layers) if ends else 0.02
    if name.endswith("lora_down"):
        deviation = 1 / math.sqrt(shape[1])
    return torch.randn(shape, generator=generator, device=generator.device) * deviation
