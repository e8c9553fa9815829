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
    "Gemma3ForCausalLM": {
        "qk_norms": True, "norms_plus_one": True, "output_norms": True, "scaled_embeddings": True, "gelu": True,
    },
}  # fmt: skip
# Architectures that have a sliding window in some layers only if `use_sliding_window` is set.
OPTIONAL_WINDOWS = ("Qwen2ForCausalLM", "Qwen3ForCausalLM", "SmolLM3ForCausalLM")
# The sizes of a model, with the largest that are accepted.
SIZES = {
    "vocab_size": 2**23, "hidden_size": 2**17, "num_hidden_layers": 2**10, "num_attention_heads": 2**12,
    "num_key_value_heads": 2**12, "head_dim": 2**13, "intermediate_size": 2**19, "max_position_embeddings": 2**25,
}  # fmt: skip
FULL, SLIDING = "full_attention", "sliding_attention"
GELU = "gelu_pytorch_tanh"
# Their own values of what may be missing in config.json.
DEFAULTS: dict[str, dict[str, Any]] = {
    "Qwen3ForCausalLM": {"head_dim": 128},
    "SmolLM3ForCausalLM": {"rope_theta": 2e6, "tie_word_embeddings": True, "sliding_window": None},
    "Gemma3ForCausalLM": {
        "head_dim": 256, "rope_theta": 1e6, "rope_local_base_freq": 1e4, "tie_word_embeddings": True,
        "query_pre_attn_scalar": 256, "hidden_activation": GELU,
    },
}  # fmt: skip


def read_config(folder: Path) -> ModelConfig:
    """The model that a folder's config.json describes."""
    file = folder / "config.json"
    if not file.is_file():
        raise ValueError(f"{file}: no such file; expected a checkpoint folder in Hugging Face layout")
    fields = json.loads(file.read_text())
    if not isinstance(fields, dict):
        raise ValueError(f"{file}: expected a JSON object")
    if fields.get("architectures") and not set(fields["architectures"]) & set(ARCHITECTURES):
        return read_other_config(folder)
    return parse_config(fields, str(file))


def text_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """The configuration of the text part of a model of text and images; that of any other as it is."""
    if "text_config" not in fields:
        return fields
    names = [name.replace("ForConditionalGeneration", "ForCausalLM") for name in fields["architectures"]]
    return {**fields["text_config"], "architectures": names}


def parse_config(fields: dict[str, Any], origin: str) -> ModelConfig:
    """The model that the content of a config.json describes; errors name `origin`."""
    names = fields.get("architectures") or []
    name = next((name for name in ARCHITECTURES if name in names), None)
    if name is None:
        raise ValueError(f"{origin}: architecture {names} is not supported; supported: {', '.join(ARCHITECTURES)}")
    fields = {**DEFAULTS.get(name, {}), **fields}
    is_gemma = name == "Gemma3ForCausalLM"
    newer = fields.get("rope_parameters") or {}
    by_type = FULL in newer or SLIDING in newer
    full, sliding = newer.get(FULL) or {}, newer.get(SLIDING) or {}
    # If both spellings are there, transformers reads the older one.
    rope = fields.get("rope_scaling") or (full if by_type else newer)
    refused = {
        "an activation other than silu": not is_gemma and fields.get("hidden_act", "silu") != "silu",
        f"an activation other than {GELU}": is_gemma and fields["hidden_activation"] != GELU,
        **{field: fields.get(field) is not None for field in ("attn_logit_softcapping", "final_logit_softcapping")},
        "use_bidirectional_attention": bool(fields.get("use_bidirectional_attention")),
        f"rope_parameters {'' if by_type else 'not '}by type of layer in this architecture": bool(newer) and by_type != is_gemma,
        "stretched rotary embeddings in layers with a sliding window": sliding.get("rope_type", "default") != "default",
        "attention_bias": name != "Qwen2ForCausalLM" and bool(fields.get("attention_bias")),
        "mlp_bias": bool(fields.get("mlp_bias")),
        "use_sliding_window in this architecture": name not in OPTIONAL_WINDOWS and bool(fields.get("use_sliding_window")),
        "quantization_config": fields.get("quantization_config") is not None,
    }
    for what, present in refused.items():
        if present:
            raise ValueError(f"{origin}: not supported: {what}")
    for field, most in SIZES.items():
        value = fields.get(field, 1 if field == "num_key_value_heads" else None)
        if value is not None or field not in ("head_dim", "num_key_value_heads"):
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
                raise ValueError(f"{origin}: {field}: expected a whole number from 1 to {most}, found {str(value)[:40]}")
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
        rope_theta=float(rope.get("rope_theta") or full.get("rope_theta") or fields.get("rope_theta") or 10_000),
        norm_eps=float(fields.get("rms_norm_eps", 1e-6)),
        tied_embeddings=bool(fields.get("tie_word_embeddings", False)),
        rope_scaling=read_scaling(rope, fields, origin),
        unrotated_layers=unrotated,
        sliding_window=_read_window(name, fields, unrotated, sliding, origin),
        query_scalar=fields["query_pre_attn_scalar"] if is_gemma else None,
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


def _read_window(
    name: str, fields: dict[str, Any], unrotated: Sequence[int], rope: dict[str, Any], origin: str
) -> Optional[SlidingWindow]:
    """The sliding window, by the rules of each architecture in transformers; `rope` is that of its layers."""
    layers = range(fields["num_hidden_layers"])
    is_gemma, is_mistral = name == "Gemma3ForCausalLM", name == "MistralForCausalLM"
    used = is_gemma or is_mistral or (name in OPTIONAL_WINDOWS and fields.get("use_sliding_window"))
    size = fields.get("sliding_window", 4096) if used else None
    usual_layers: Sequence[int] = layers
    if name == "SmolLM3ForCausalLM":
        usual_layers = unrotated
    elif is_gemma:
        usual_layers = [layer for layer in layers if (layer + 1) % fields.get("sliding_window_pattern", 6)]
    elif not is_mistral:
        usual_layers = layers[fields.get("max_window_layers", 28) :]
    usual = [SLIDING if size is not None and layer in usual_layers else FULL for layer in layers]
    kinds = fields.get("layer_types") or usual
    for kind in kinds:
        if kind not in (FULL, SLIDING):
            raise ValueError(f"{origin}: not supported: layer_types with {kind!r}; only {FULL!r} and {SLIDING!r} are")
    sliding = tuple(layer for layer, kind in enumerate(kinds) if kind == SLIDING)
    if len(kinds) != len(layers) or (sliding and size is None) or (is_mistral and kinds != usual):
        raise ValueError(f"{origin}: not supported: layer_types {kinds}, which do not fit this architecture's layers and sliding_window {size}")
    if size is None or not sliding:
        return None
    return SlidingWindow(size, sliding, float(rope.get("rope_theta") or fields["rope_local_base_freq"]) if is_gemma else None)
