"""The log-probabilities of one request, computed one packed batch after another.

On a GPU a batch may be queued on a stream of its own. Then nobody waits for it: the host goes on,
for instance with sampling, and looks later whether it is done.
"""
from __future__ import annotations

from contextlib import nullcontext
from typing import ContextManager, Optional, Sequence

import torch
from torch import Tensor

from .attention import PackedAttention
from .engine_types import Scored
from .output_head import score
from .sequences import Sequences, pack
from .weights import AnyModel


class Scoring:
    """What was asked for of some sequences, and how far it has come."""

    def __init__(
        self,
        model: AnyModel,
        sequences: Sequences,
        batches: Sequence[Sequence[int]],
        device: torch.device,
        *,
        entropies: bool,
        values: bool,
        stream: Optional["torch.cuda.Stream"] = None,
    ) -> None:
        self.model, self.sequences, self.device, self.stream = model, sequences, device, stream
        self.entropies, self.values = entropies, values
        # Sequence numbers of the batches that were not begun yet, the next one last.
        self.left = list(reversed(batches))
        self.names = ["logprobs", *(["entropies"] if entropies else []), *(["values"] if values else [])]
        # Places in the flat results, and the numbers for them, which may still be on their way.
        self.found: list[tuple[Tensor, list[Tensor]]] = []
        self.event: Optional["torch.cuda.Event"] = None

    @torch.no_grad()
    def advance(self) -> None:
        """Begins the next batch with the model's present weights; on a GPU it does not wait for it."""
        chosen = self.left[-1]
        with self._on_stream():
            batch = pack(self.sequences, chosen, self.device, self.model.block)
            found = self.model(
                batch.ids,
                batch.positions,
                PackedAttention(batch.lengths, self.device),
                lambda hidden, weight, head: score(
                    hidden.index_select(0, batch.rows), weight, head, batch.targets, batch.temperatures, entropies=self.entropies, values=self.values, masks=batch.masks
                ),
            )
            self.found.append((batch.places, [_fetched(getattr(found, name)) for name in self.names]))
            if self.device.type == "cuda":
                self.event = torch.cuda.Event()
                self.event.record()
        # Only now: a batch that failed for want of memory is tried again.
        self.left.pop()

    def _on_stream(self) -> ContextManager[None]:
        return nullcontext() if self.stream is None else torch.cuda.stream(self.stream)

    @property
    def is_computed(self) -> bool:
        """Whether the batches that were begun are done."""
        return self.event is None or self.event.query()

    def result(self) -> Scored:
        """The results by flat entry, 0 where there is no target; waits for the batches that were begun."""
        if self.event is not None:
            self.event.synchronize()
        results = {name: torch.zeros(len(self.sequences.tokens)) for name in self.names}
        for places, numbers in self.found:
            for name, values in zip(self.names, numbers):
                results[name][places] = values
        return Scored(**results)


def _fetched(values: Tensor) -> Tensor:
    """A copy in the host's memory, which on a GPU is complete when the stream has come this far."""
    if not values.is_cuda:
        return values
    return torch.empty(values.shape, dtype=values.dtype, pin_memory=True).copy_(values, non_blocking=True)
