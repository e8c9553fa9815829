"""Hybrids, whose layers of gated delta nets or short convolutions carry a state from token to token:
transformers' own forward pass, attention and cache.

Sequences cannot be packed, because the state would pass from one to the next. They are padded on the
right, where no token sees the padding. Prompts to be continued are padded on the left, and masked.
"""
from __future__ import annotations

from collections import defaultdict
from typing import Any, Iterator, Sequence

import torch
from torch import Tensor

from .model import Attend
from .other_model import Finish, OtherModel, T

# Sequences are padded to multiples of this, so that slightly longer text does not change rounding;
# gated delta nets are computed in chunks of as many tokens.
ROUND = 64


class RecurrentModel(OtherModel):
    """A hybrid with the same forward pass as `Model`."""

    # What is padded is computed: nothing fills a batch up.
    attention, block = "sdpa", 1
    # Whether the model's code keeps masked tokens on the left out of the state; seen when it is opened.
    masks_padding = True

    def forward(self, ids: Tensor, positions: Tensor, attend: Attend, finish: Finish[T]) -> T:
        """Reads packed tokens, each sequence in a row of its own; `attend` is not needed."""
        parts: dict[int, Tensor] = {}
        for rows, width in _rows((positions == 0).nonzero()[:, 0].tolist(), len(ids)):
            padded = torch.stack([torch.nn.functional.pad(ids[begin:end], (0, width - (end - begin))) for begin, end in rows])
            hidden = self.inner.base_model(input_ids=padded, use_cache=False).last_hidden_state
            parts.update((begin, hidden[i, : end - begin]) for i, (begin, end) in enumerate(rows))
        return finish(torch.cat([parts[begin] for begin in sorted(parts)]), self.head, self.value_head)

    def new_cache(self) -> Any:
        """An empty cache: keys and values, and the states of recurrent layers."""
        from transformers import DynamicCache

        return DynamicCache(config=self.inner.config)

    def extend(self, cache: Any, ids: Tensor, positions: Tensor, mask: Tensor) -> Tensor:
        """Reads the next tokens of each row into the cache; the last one's hidden states. The mask is of
        all tokens so far.
        """
        states = self.inner.base_model(input_ids=ids, position_ids=positions, attention_mask=mask, past_key_values=cache, use_cache=True)
        return states.last_hidden_state[:, -1]


def _rows(starts: Sequence[int], total: int) -> Iterator[tuple[list[tuple[int, int]], int]]:
    """The beginnings and ends of packed sequences, those of about the same length together, and how
    wide they are padded.
    """
    groups: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for begin, end in zip(starts, [*starts[1:], total]):
        groups[-(-(end - begin) // ROUND) * ROUND].append((begin, end))
    for width, rows in groups.items():
        yield rows, width
