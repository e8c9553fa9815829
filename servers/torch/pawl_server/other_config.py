"""The shape of a model that only transformers knows; rejected if its layers mix tokens in a way that
neither we nor transformers alone can be trusted with.
"""
from __future__ import annotations

from pathlib import Path
from typing import Any

from .model_config import ModelConfig

# Layers that mix tokens by full attention, or not at all.
ATTENTION = ("full_attention", "attention")
KNOWN_LAYERS = (*ATTENTION, "moe", "mlp")
# Layers beside those of attention that carry a state from token to token: gated delta nets and short
# convolutions.
RECURRENT_LAYERS = ("linear_attention", "conv")


def read_other_config(folder: Path) -> ModelConfig:
    """The shape of a model that only transformers knows."""
    try:
        from transformers import AutoConfig
    except ImportError:
        raise ValueError(f"{folder / 'config.json'}: this architecture needs the package transformers, which is not installed") from None
    config = AutoConfig.from_pretrained(folder, local_files_only=True).get_text_config()
    recurrent = _refuse_unknown(config, str(folder / "config.json"))
    heads = config.num_attention_heads
    return ModelConfig(
        vocabulary_size=config.vocab_size,
        hidden_size=config.hidden_size,
        layers=config.num_hidden_layers,
        heads=heads,
        kv_heads=getattr(config, "num_key_value_heads", None) or heads,
        head_size=getattr(config, "head_dim", None) or config.hidden_size // heads,
        mlp_size=0,
        max_context=config.max_position_embeddings,
        rope_theta=0.0,
        norm_eps=0.0,
        tied_embeddings=bool(config.tie_word_embeddings),
        built_in=False,
        recurrent=recurrent,
    )


def _refuse_unknown(config: Any, origin: str) -> str:
    """Rejects, by name, what changes how tokens interact and is not known here; names the layers that
    carry a state.
    """
    kinds: dict[str, list[int]] = {}
    types = getattr(config, "layer_types", None) or getattr(config, "layers_block_type", None) or ()
    for i, kind in enumerate(types):
        if kind not in KNOWN_LAYERS:
            kinds.setdefault(kind, []).append(i)
    named = {kind: f"{kind} (layer{'s' if len(at) > 1 else ''} {_listed(at)})" for kind, at in kinds.items()}
    is_hybrid = any(kind in ATTENTION for kind in types)
    recurrent = [name for kind, name in named.items() if is_hybrid and kind in RECURRENT_LAYERS]
    refused = [name for name in named.values() if name not in recurrent]
    window = getattr(config, "sliding_window", None)
    if not types and window is not None and getattr(config, "use_sliding_window", True):
        refused.append(f"a sliding window of {window} tokens")
    refused += [name for name in ("attn_logit_softcapping", "final_logit_softcapping") if getattr(config, name, None)]
    if refused:
        raise ValueError(
            f"{origin}: not supported: {', '.join(refused)}; expected layers of full attention, {' and '.join(RECURRENT_LAYERS)} only "
            "beside those, and unmodified logits"
        )
    return ", ".join(recurrent)


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:8])) + (" …" if len(numbers) > 8 else "")
