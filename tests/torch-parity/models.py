"""Tiny models of every supported architecture, for generate.py and live.py."""
from transformers import Gemma3TextConfig, LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config, SmolLM3Config

SIZES = dict(vocab_size=29, hidden_size=24, intermediate_size=40, max_position_embeddings=640)
TOKENS = dict(bos_token_id=1, eos_token_id=2, pad_token_id=None)
HEADS = dict(num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
DEEPER = dict(HEADS, num_hidden_layers=3)
GEMMA = dict(head_dim=8, query_pre_attn_scalar=5, sliding_window=35, rope_theta=500.0, rope_local_base_freq=50.0)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64)
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=160, beta_fast=8.0)


def scaled(rope, size=12):
    return LlamaConfig(**SIZES, **TOKENS, **HEADS, head_dim=size, rope_theta=500.0, rope_scaling=rope)


CONFIGS = {
    "llama": LlamaConfig(
        **SIZES, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=4, tie_word_embeddings=True
    ),
    "qwen2": Qwen2Config(
        **SIZES, num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=2, tie_word_embeddings=False
    ),
    "llama with llama3 rope": scaled(LLAMA3),
    "llama with linear rope": scaled(dict(rope_type="linear", factor=4.0)),
    "llama with dynamic rope": scaled(dict(rope_type="dynamic", factor=4.0)),
    "llama with yarn rope": scaled(YARN),
    "llama with yarn rope, not truncated": scaled(dict(YARN, truncate=False, mscale=0.8, mscale_all_dim=0.4), 16),
    "qwen3": Qwen3Config(**SIZES, **TOKENS, **HEADS, head_dim=8, tie_word_embeddings=True),
    "qwen3 with a window": Qwen3Config(
        **SIZES, **TOKENS, **HEADS, head_dim=8, use_sliding_window=True, sliding_window=20, max_window_layers=1
    ),
    "mistral": MistralConfig(**SIZES, **TOKENS, **HEADS, head_dim=8, sliding_window=None),
    "mistral with a window": MistralConfig(**SIZES, **TOKENS, **HEADS, sliding_window=33),
    "smollm3": SmolLM3Config(**SIZES, **TOKENS, **DEEPER, no_rope_layer_interval=2),
    "smollm3 with a window": SmolLM3Config(
        **SIZES, **TOKENS, **DEEPER, no_rope_layers=[0, 1, 0], use_sliding_window=True, sliding_window=40
    ),
    "gemma3": Gemma3TextConfig(**SIZES, **TOKENS, **DEEPER, **GEMMA, layer_types=["sliding_attention", "full_attention", "sliding_attention"]),
    "gemma3 with linear rope": Gemma3TextConfig(
        **SIZES, **TOKENS, **DEEPER, **GEMMA, sliding_window_pattern=2, rope_scaling=dict(rope_type="linear", factor=8.0)
    ),
}
