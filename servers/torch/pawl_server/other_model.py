"""Models of other architectures, through transformers: its arithmetic, our attention.

transformers lets attention be replaced by name, so packed sequences, cached pages and everything
built on them work for any decoder with plain causal attention. No code from a checkpoint is ever
run.
"""
from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Optional, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .model import LORA_ALPHA, Attend, Piece
from .model_config import ModelConfig
from .sequences import BLOCK

T = TypeVar("T")
Finish = Callable[[Tensor, Tensor, Optional[Tensor]], T]
NAME = "pawl_packed"
# Arguments of attention that change its result and that ours does not support.
UNKNOWN = ("sliding_window", "softcap", "s_aux")


class OtherModel(nn.Module):
    """A transformers model with the same forward pass as `Model`."""

    attention, block = NAME, BLOCK

    def __init__(
        self, config: ModelConfig, folder: Path, *, device: torch.device, dtype: torch.dtype, lora_rank: int, value_head: bool
    ) -> None:
        super().__init__()
        from transformers import AttentionInterface, AutoConfig, AutoModelForCausalLM

        AttentionInterface.register(NAME, _attention)
        theirs = AutoConfig.from_pretrained(folder, local_files_only=True).get_text_config()
        self.config = config
        with torch.device(device):
            # Not cast afterwards: rotary embeddings compute their frequencies in 32 bits.
            self.inner = AutoModelForCausalLM.from_config(theirs, attn_implementation=self.attention, dtype=dtype)
        # Dropout would make log-probabilities random.
        self.inner.eval()
        if lora_rank:
            self.inner.requires_grad_(False)
            _add_adapters(self.inner, lora_rank)
        self.value_head = nn.Parameter(torch.empty(1, config.hidden_size, device=device, dtype=dtype)) if value_head else None

    def forward(self, ids: Tensor, positions: Tensor, attend: Attend, finish: Finish[T]) -> T:
        """Reads packed tokens; `finish` gets the last hidden states, the output matrix and the value head."""
        hidden = self.inner.base_model(
            input_ids=ids[None], position_ids=positions[None], use_cache=False, pawl_attend=attend
        ).last_hidden_state[0]
        return finish(hidden, self.head, self.value_head)

    @property
    def head(self) -> Tensor:
        """The output matrix."""
        return self.inner.get_output_embeddings().weight

    @torch.no_grad()
    def own_logits(self, ids: Tensor) -> Tensor:
        """The logits of one sequence from transformers alone, with its own attention."""
        self.inner.set_attn_implementation("eager")
        try:
            return self.inner(input_ids=ids[None], use_cache=False).logits[0]
        finally:
            self.inner.set_attn_implementation(self.attention)

    def pieces(self) -> list[Piece]:
        """Every tensor of a checkpoint: here they have the names and shapes of the parameters."""
        return [
            Piece(name, name.removeprefix("inner.").replace("value_head", "value_head.weight"), 0, p.shape[0])
            for name, p in self.named_parameters()
            if "lora_" not in name
        ]


def _add_adapters(model: Any, rank: int) -> None:
    """Gives every linear layer but the output matrix an adapter."""
    head = model.get_output_embeddings()
    for module in model.modules():
        if isinstance(module, nn.Linear) and module is not head:
            weight = module.weight
            module.lora_down = nn.Parameter(weight.new_empty(rank, weight.shape[1]))
            module.lora_up = nn.Parameter(weight.new_empty(weight.shape[0], rank))
            module.register_forward_hook(lambda m, given, y: y + F.linear(F.linear(given[0], m.lora_down), m.lora_up) * (LORA_ALPHA / rank))


def _attention(
    module: nn.Module, q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor], *, scaling: float, pawl_attend: Attend, **rest: Any
) -> tuple[Tensor, None]:
    """Attention as transformers calls it: [1, heads, tokens, size] to [1, tokens, heads, size]."""
    for name in UNKNOWN:
        if rest.get(name) is not None:
            raise ValueError(f"not supported: attention with {name}")
    # Ours divides by the square root of the head size.
    q = q * (scaling * q.shape[-1] ** 0.5)
    packed = (x[0].transpose(0, 1).contiguous() for x in (q, k, v))
    return pawl_attend(module.layer_idx, *packed)[None], None
