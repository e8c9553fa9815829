"""The sequences of one request as flat tensors, and their division into packed batches."""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Mapping, Optional, Sequence

import torch
from torch import Tensor

from .constraints import OUTSIDE, Automaton, Constrainer
from .errors import RequestError

# Packed batches are padded to whole blocks of tokens: few shapes for kernels, and equal rounding
# for equal shapes.
BLOCK = 128


@dataclass(frozen=True)
class Sequences:
    """Tokens of all sequences, one after another, with one entry for each prediction."""

    lengths: tuple[int, ...]
    tokens: Tensor
    targets: Tensor
    # 1 if the prediction is a target.
    mask: Tensor
    inputs: Mapping[str, Tensor]
    # The temperature of each entry's logits; None: 1 everywhere.
    temperatures: Optional[Tensor] = None
    # Answers that were held to something: sequence, first token, end, and what to.
    constraints: tuple[tuple[int, int, int, Automaton], ...] = ()
    # The masks, and for each entry which of them; made by the engine. Number 0 allows everything.
    masks: Optional[tuple[Tensor, Tensor]] = None

    @property
    def starts(self) -> list[int]:
        starts = [0]
        for length in self.lengths:
            starts.append(starts[-1] + length)
        return starts


@dataclass(frozen=True)
class Batch:
    """Some sequences, packed and on the device. `places` are their entries in the flat tensors."""

    ids: Tensor
    positions: Tensor
    # Lengths of the packed sequences, including the padding at the end as one of them.
    lengths: tuple[int, ...]
    # The packed tokens that predict targets, and their entries in the flat tensors.
    rows: Tensor
    places: Tensor
    targets: Tensor
    inputs: Mapping[str, Tensor]
    temperatures: Optional[Tensor]
    # The masks of its targets, and for each of them which.
    masks: Optional[tuple[Tensor, Tensor]] = None


def divide(lengths: Sequence[int], max_tokens: int, ranks: int) -> list[list[int]]:
    """Sequence numbers for each batch: about the same number of tokens each, and the same number of
    batches per rank.
    """
    order = sorted((i for i, length in enumerate(lengths) if length > 0), key=lambda i: -lengths[i])
    limit = max([max_tokens, *(lengths[i] for i in order[:1])])
    rounds = max(1, -(-sum(lengths) // (limit * ranks)))
    while True:
        batches: list[list[int]] = [[] for _ in range(rounds * ranks)]
        loads = [0] * len(batches)
        for i in order:
            lightest = loads.index(min(loads))
            batches[lightest].append(i)
            loads[lightest] += lengths[i]
        if max(loads) <= limit:
            return batches
        rounds += 1


def pack(sequences: Sequences, chosen: Sequence[int], device: torch.device, block: int = BLOCK) -> Batch:
    """The chosen sequences as one batch, padded to whole blocks; without sequences, a batch of padding
    that predicts nothing.
    """
    starts = sequences.starts
    spans = [torch.arange(starts[i], starts[i + 1]) for i in chosen]
    places = torch.cat([*spans, torch.zeros(0, dtype=torch.int64)])
    lengths = [sequences.lengths[i] for i in chosen]
    padding = -len(places) % block if lengths else block
    ids = torch.cat([sequences.tokens[places], torch.zeros(padding, dtype=torch.int64)])
    if padding:
        lengths.append(padding)
    rows = sequences.mask[places].nonzero().squeeze(1)
    places = places[rows]
    temperatures = sequences.temperatures
    return Batch(
        ids=send(ids, device),
        positions=send(torch.cat([torch.arange(length) for length in lengths]), device),
        lengths=tuple(lengths),
        rows=send(rows, device),
        places=places,
        targets=send(sequences.targets[places], device),
        inputs={name: send(values[places], device) for name, values in sequences.inputs.items()},
        temperatures=None if temperatures is None else send(temperatures[places], device),
        masks=_masks_at(sequences.masks, places, device),
    )


def _masks_at(masks: Optional[tuple[Tensor, Tensor]], places: Tensor, device: torch.device) -> Optional[tuple[Tensor, Tensor]]:
    """Those masks that the entries have; None if nothing is masked."""
    if masks is None:
        return None
    used, numbers = masks[1][places].unique(return_inverse=True)
    return None if not used.any() else (send(masks[0][used], device), send(numbers, device))


def with_masks(sequences: Sequences, constrainer: Constrainer) -> Sequences:
    """The sequences with the masks of what their answers were held to."""
    if not sequences.constraints:
        return sequences
    table = [torch.ones(constrainer.size, dtype=torch.bool)]
    known: dict[int, int] = {}
    numbers = torch.zeros(len(sequences.tokens), dtype=torch.int64)
    for sequence, start, end, automaton in sequences.constraints:
        masks, state = constrainer.masks(automaton), 0
        # The target of entry e is token e + 1 of its sequence.
        first = sequences.starts[sequence] - 1
        for at in range(start, end):
            mask = masks.allowed(state)
            if id(mask) not in known:
                known[id(mask)] = len(table)
                table.append(mask)
            numbers[first + at] = known[id(mask)]
            token = int(sequences.targets[first + at])
            state = masks.next(state, token)
            if state == OUTSIDE:
                raise RequestError(
                    f"sequence {sequence}: token {at} ({token}) is not allowed by what its answer was held to; was it sampled with another tokenizer, or changed?"
                )
    return replace(sequences, masks=(torch.stack(table), numbers))


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor on the device, without waiting for the work that is queued there."""
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor
