"""Models of other architectures, through transformers: its arithmetic, our attention.

transformers lets attention be replaced by name, so packed sequences, cached pages and everything built on
them work for any decoder with plain causal attention. No code from a checkpoint is ever run.
"""
from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Optional, TypeVar

import torch
from torch import Tensor, nn

from .model import Attend, Piece
from .model_config import ModelConfig

T = TypeVar("T")
NAME = "pawl_packed"
# Layers that mix tokens by full attention, or not at all.
KNOWN_LAYERS = ("full_attention", "attention", "moe", "mlp")
# Arguments of attention that change its result and that ours does not know.
UNKNOWN = ("sliding_window", "softcap", "s_aux")


def read_other_config(folder: Path) -> ModelConfig:
    """The shape of a model that only transformers knows."""
    try:
        from transformers import AutoConfig
    except ImportError:
        raise ValueError(f"{folder / 'config.json'}: this architecture needs the package transformers, which is not installed") from None
    config = AutoConfig.from_pretrained(folder, local_files_only=True).get_text_config()
    _refuse_unknown(config, str(folder / "config.json"))
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
        qkv_bias=False,
        built_in=False,
    )


def _refuse_unknown(config: Any, origin: str) -> None:
    """Refuses, by name, layers in which tokens meet otherwise than by full attention: ours is the only one there is here."""
    kinds: dict[str, list[int]] = {}
    types = getattr(config, "layer_types", None) or getattr(config, "layers_block_type", None) or ()
    for i, kind in enumerate(types):
        if kind not in KNOWN_LAYERS:
            kinds.setdefault(kind, []).append(i)
    refused = [f"{kind} (layer{'s' if len(at) > 1 else ''} {_listed(at)})" for kind, at in kinds.items()]
    window = getattr(config, "sliding_window", None)
    if not types and window is not None and getattr(config, "use_sliding_window", True):
        refused.append(f"a sliding window of {window} tokens")
    refused += [name for name in ("attn_logit_softcapping", "final_logit_softcapping") if getattr(config, name, None)]
    if refused:
        raise ValueError(
            f"{origin}: not supported: {', '.join(refused)}; expected full attention in every layer, and logits as they come"
        )


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:8])) + (" …" if len(numbers) > 8 else "")


class OtherModel(nn.Module):
    """A model of transformers with the same forward pass as `Model`."""

    def __init__(
        self, config: ModelConfig, folder: Path, *, device: torch.device, dtype: torch.dtype, value_head: bool
    ) -> None:
        super().__init__()
        from transformers import AttentionInterface, AutoConfig, AutoModelForCausalLM

        AttentionInterface.register(NAME, _attention)
        theirs = AutoConfig.from_pretrained(folder, local_files_only=True)
        self.config = config
        self.inner = AutoModelForCausalLM.from_config(theirs, attn_implementation=NAME).to(device, dtype)
        # Dropout would make log-probabilities random.
        self.inner.eval()
        self.value_head = nn.Parameter(torch.empty(1, config.hidden_size, device=device, dtype=dtype)) if value_head else None

    def forward(
        self,
        ids: Tensor,
        positions: Tensor,
        attend: Attend,
        finish: Callable[[Tensor, Tensor, Optional[Tensor]], T],
    ) -> T:
        """Reads packed tokens; `finish` gets the last hidden states, the output matrix and the value head."""
        hidden = self.inner.base_model(
            input_ids=ids[None], position_ids=positions[None], use_cache=False, pawl_attend=attend
        ).last_hidden_state[0]
        return finish(hidden, self.inner.get_output_embeddings().weight, self.value_head)

    @torch.no_grad()
    def own_logits(self, ids: Tensor) -> Tensor:
        """The logits of one sequence by transformers alone, with its own attention."""
        self.inner.set_attn_implementation("eager")
        try:
            return self.inner(input_ids=ids[None], use_cache=False).logits[0]
        finally:
            self.inner.set_attn_implementation(NAME)

    def pieces(self) -> list[Piece]:
        """Every tensor of a checkpoint: here they have the names and shapes of the parameters."""
        return [Piece(name, name.removeprefix("inner.").replace("value_head", "value_head.weight"), 0, p.shape[0]) for name, p in self.named_parameters()]


def _attention(
    module: nn.Module, q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor], *, scaling: float, pawl_attend: Attend, **rest: Any
) -> tuple[Tensor, None]:
    """Attention as transformers calls it: [1, heads, tokens, size] to [1, tokens, heads, size]."""
    for name in UNKNOWN:
        if rest.get(name) is not None:
            raise ValueError(f"not supported: attention with {name}")
    # Ours divides by the root of the head's size.
    q = q * (scaling * q.shape[-1] ** 0.5)
    packed = (x[0].transpose(0, 1).contiguous() for x in (q, k, v))
    return pawl_attend(module.layer_idx, *packed)[None], None
