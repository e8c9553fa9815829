"""Shared by tests: a tiny model, an engine for it, and sequences."""
from __future__ import annotations

import gc
import json
import tempfile
from pathlib import Path
from typing import Any, Optional, Sequence

import torch

from .engine import Engine
from .engine_types import EngineOptions
from .ranks import Ranks
from .sequences import Sequences

# As serve.py does: engines release memory often.
gc.freeze()

CONFIG = {
    "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": 40, "hidden_size": 16,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 4,
    "intermediate_size": 24, "max_position_embeddings": 256, "rope_theta": 10000.0, "rms_norm_eps": 1e-6,
    "tie_word_embeddings": True,
}  # fmt: skip
LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}
MISTRAL = {"architectures": ["MistralForCausalLM"], "model_type": "mistral"}
SMOLLM3 = {"architectures": ["SmolLM3ForCausalLM"], "model_type": "smollm3", "pad_token_id": None}
GEMMA3 = {
    "architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text", "head_dim": 8, "query_pre_attn_scalar": 5,
    "sliding_window": 30, "rope_theta": 500.0, "rope_local_base_freq": 50.0, "pad_token_id": None,
    "hidden_activation": "gelu_pytorch_tanh",
}  # fmt: skip
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "beta_fast": 8.0}
# What each architecture that is defined here changes in CONFIG.
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "qwen2": {},
    "llama": LLAMA,
    "llama3 rope": {**LLAMA, "head_dim": 8, "rope_theta": 500.0, "rope_scaling": LLAMA3},
    "linear rope": {**LLAMA, "rope_scaling": {"type": "linear", "factor": 4.0}},
    "dynamic rope": {**LLAMA, "rope_scaling": {"rope_type": "dynamic", "factor": 4.0}},
    "qwen3": {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "head_dim": 6},
    "qwen3 window": {
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "use_sliding_window": True, "sliding_window": 20,
        "max_window_layers": 1,
    },
    "mistral": {**MISTRAL, "sliding_window": None},
    "mistral window": {**MISTRAL, "sliding_window": 70},
    "mistral wide window": {**MISTRAL, "sliding_window": 4096},
    "smollm3": {**SMOLLM3, "no_rope_layer_interval": 2},
    "smollm3 window": {**SMOLLM3, "no_rope_layers": [0, 1], "use_sliding_window": True, "sliding_window": 20},
    "gemma3": {**GEMMA3, "layer_types": ["sliding_attention", "full_attention"]},
    "gemma3 linear rope": {
        **GEMMA3, "num_hidden_layers": 3, "sliding_window_pattern": 2, "rope_scaling": {"rope_type": "linear", "factor": 8.0},
    },
    "yarn rope": {**LLAMA, "head_dim": 8, "rope_theta": 500.0, "rope_scaling": YARN},
}  # fmt: skip
ALONE = Ranks(0, 1, torch.device("cpu"), None)


def model_folder(**changes: Any) -> tempfile.TemporaryDirectory[str]:
    """A folder with the configuration of a tiny model; weights come from a seed."""
    folder = tempfile.TemporaryDirectory()
    (Path(folder.name) / "config.json").write_text(json.dumps({**CONFIG, **changes}))
    return folder


def tiny_engine(
    folder: str,
    ranks: Ranks = ALONE,
    *,
    batch_tokens: int = 4096,
    checkpointing: bool = False,
    lora_rank: int = 0,
    value_head: bool = False,
) -> Engine:
    options = EngineOptions(dtype=torch.float32, batch_tokens=batch_tokens, checkpointing=checkpointing, compiled=False)
    engine = Engine(Path(folder), ranks, options, lora_rank=lora_rank, value_head=value_head, seed=3)
    if value_head:
        engine.weights.assign("value_head", torch.linspace(-1, 1, 16)[None])
    return engine


def random_sequences(lengths: Sequence[int], seed: int = 0, mask: Optional[float] = 0.7) -> Sequences:
    """Random tokens, of which about this share are targets."""
    generator = torch.Generator().manual_seed(seed)
    total = sum(lengths)
    ids = torch.randint(CONFIG["vocab_size"], (total,), generator=generator)
    wanted = torch.rand(total, generator=generator) < mask
    inputs = {"weights": torch.randn(total, generator=generator), "old": -3 + torch.rand(total, generator=generator)}
    return Sequences(tuple(lengths), ids, ids.roll(-1), wanted, inputs)
