"""Reads a checkpoint's config.json: architectures that are defined here, and all others with
transformers.
"""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Optional, Sequence

from .model_config import ModelConfig, SlidingWindow
from .other_config import read_other_config
from .rope import read_scaling

# What the name of an architecture says about a model.
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "LlamaForCausalLM": {},
    "Qwen2ForCausalLM": {"qkv_bias": True},
    "Qwen3ForCausalLM": {"qk_norms": True},
    "MistralForCausalLM": {},
    "SmolLM3ForCausalLM": {},
}
# Architectures that have a sliding window in some layers only if `use_sliding_window` is set.
OPTIONAL_WINDOWS = ("Qwen2ForCausalLM", "Qwen3ForCausalLM", "SmolLM3ForCausalLM")
FULL, SLIDING = "full_attention", "sliding_attention"
# Their own values of what may be missing in config.json.
DEFAULTS: dict[str, dict[str, Any]] = {
    "Qwen3ForCausalLM": {"head_dim": 128},
    "SmolLM3ForCausalLM": {"rope_theta": 2e6, "tie_word_embeddings": True, "sliding_window": None},
}


def read_config(folder: Path) -> ModelConfig:
    """The model that a folder's config.json describes."""
    file = folder / "config.json"
    if not file.is_file():
        raise ValueError(f"{file}: no such file; expected a checkpoint folder in Hugging Face layout")
    fields = json.loads(file.read_text())
    if fields.get("architectures") and not set(fields["architectures"]) & set(ARCHITECTURES):
        return read_other_config(folder)
    return parse_config(fields, str(file))


def parse_config(fields: dict[str, Any], origin: str) -> ModelConfig:
    """The model that the content of a config.json describes; errors name `origin`."""
    names = fields.get("architectures") or []
    name = next((name for name in ARCHITECTURES if name in names), None)
    if name is None:
        raise ValueError(f"{origin}: architecture {names} is not supported; supported: {', '.join(ARCHITECTURES)}")
    fields = {**DEFAULTS.get(name, {}), **fields}
    # If both spellings are there, transformers reads the older one.
    rope = fields.get("rope_scaling") or fields.get("rope_parameters") or {}
    refused = {
        "an activation other than silu": fields.get("hidden_act", "silu") != "silu",
        "attention_bias": name != "Qwen2ForCausalLM" and bool(fields.get("attention_bias")),
        "mlp_bias": bool(fields.get("mlp_bias")),
        "use_sliding_window in this architecture": name not in OPTIONAL_WINDOWS and bool(fields.get("use_sliding_window")),
        "quantization_config": fields.get("quantization_config") is not None,
    }
    for what, present in refused.items():
        if present:
            raise ValueError(f"{origin}: not supported: {what}")
    heads = fields["num_attention_heads"]
    unrotated = _read_unrotated(fields, origin) if name == "SmolLM3ForCausalLM" else ()
    config = ModelConfig(
        vocabulary_size=fields["vocab_size"],
        hidden_size=fields["hidden_size"],
        layers=fields["num_hidden_layers"],
        heads=heads,
        kv_heads=fields.get("num_key_value_heads") or heads,
        head_size=fields.get("head_dim") or fields["hidden_size"] // heads,
        mlp_size=fields["intermediate_size"],
        max_context=fields["max_position_embeddings"],
        rope_theta=float(rope.get("rope_theta") or fields.get("rope_theta") or 10_000),
        norm_eps=float(fields.get("rms_norm_eps", 1e-6)),
        tied_embeddings=bool(fields.get("tie_word_embeddings", False)),
        rope_scaling=read_scaling(rope, fields, origin),
        unrotated_layers=unrotated,
        sliding_window=_read_window(name, fields, unrotated, origin),
        **ARCHITECTURES[name],
    )
    if config.heads % config.kv_heads or config.head_size % 2:
        raise ValueError(f"{origin}: {config.heads} heads of size {config.head_size} over {config.kv_heads} key-value heads do not fit")
    return config


def _read_unrotated(fields: dict[str, Any], origin: str) -> tuple[int, ...]:
    """The layers without a rotary embedding: those with a zero in `no_rope_layers`, or every nth."""
    layers, marks = fields["num_hidden_layers"], fields.get("no_rope_layers")
    if marks is None:
        return tuple(range(layers))[fields.get("no_rope_layer_interval", 4) - 1 :: fields.get("no_rope_layer_interval", 4)]
    if len(marks) < layers:
        raise ValueError(f"{origin}: no_rope_layers has {len(marks)} entries; expected one for each of {layers} layers")
    return tuple(layer for layer in range(layers) if not marks[layer])


def _read_window(name: str, fields: dict[str, Any], unrotated: Sequence[int], origin: str) -> Optional[SlidingWindow]:
    """The sliding window, by the rules of each architecture in transformers."""
    layers = range(fields["num_hidden_layers"])
    used = name == "MistralForCausalLM" or (name in OPTIONAL_WINDOWS and fields.get("use_sliding_window"))
    size = fields.get("sliding_window", 4096) if used else None
    usual_layers: Sequence[int] = layers
    if name == "SmolLM3ForCausalLM":
        usual_layers = unrotated
    elif name in OPTIONAL_WINDOWS:
        usual_layers = layers[fields.get("max_window_layers", 28) :]
    usual = [SLIDING if size is not None and layer in usual_layers else FULL for layer in layers]
    kinds = fields.get("layer_types") or usual
    for kind in kinds:
        if kind not in (FULL, SLIDING):
            raise ValueError(f"{origin}: not supported: layer_types with {kind!r}; only {FULL!r} and {SLIDING!r} are")
    sliding = tuple(layer for layer, kind in enumerate(kinds) if kind == SLIDING)
    if len(kinds) != len(layers) or (sliding and size is None) or (name == "MistralForCausalLM" and kinds != usual):
        raise ValueError(f"{origin}: not supported: layer_types {kinds}, which do not fit this architecture's layers and sliding_window {size}")
    return SlidingWindow(size, sliding) if size is not None and sliding else None
