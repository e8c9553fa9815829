"""How many tokens are learned in one forward and backward pass."""
from __future__ import annotations

import torch

from .model_config import ModelConfig

MOST = {"cuda": 16_384, "cpu": 4096}
LEAST = 4096
# Activations may take about twice the memory of weights, gradients and optimiser: bytes per
# parameter.
ACTIVATION_BYTES = 32


def batch_tokens_for(config: ModelConfig, parameters: int, device: torch.device, checkpointing: bool) -> int:
    """As many as keep a GPU busy, without small models taking far more memory than their weights."""
    if device.type != "cuda" or checkpointing:
        return MOST[device.type]
    if config.recurrent:
        return LEAST
    heads = (config.heads + 2 * config.kv_heads) * config.head_size
    # What a layer keeps of each token for the backward pass, in 16 bits: its inputs, queries, keys and
    # values, what was attended to, and the MLP's gate, input and product.
    per_token = 2 * config.layers * (3 * config.hidden_size + heads + config.heads * config.head_size + 3 * config.mlp_size)
    tokens = int(ACTIVATION_BYTES * parameters / per_token)
    return max(LEAST, min(MOST["cuda"], tokens // 1024 * 1024))
