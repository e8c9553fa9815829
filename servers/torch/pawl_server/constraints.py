"""Answers that are held to something: which tokens may come next, from an automaton over bytes and the
bytes of every token. The client makes both (packages/core/src/constraint).
"""
from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Optional, Sequence

import torch
from torch import Tensor

from .errors import RequestError

# After the end of an answer nothing is constrained; a token that was not allowed leads outside.
ENDED, OUTSIDE = -1, -2
# The logit of what is not allowed: its probability is exactly zero.
MASKED = -1e30
# Bytes of masks that are kept of one automaton, and automata that are kept.
MOST_BYTES = 2**27
KEPT = 16


@dataclass(frozen=True, eq=False)
class Automaton:
    """A deterministic automaton over bytes; the first state is 0, and -1 is none."""

    digest: str
    # The class of each byte.
    classes: Tensor
    # [states, classes]
    next: Tensor
    accepting: Tensor


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The bytes of the tokens that stand for text; those of `ids[i]` begin at `starts[i]`."""

    ids: Tensor
    starts: Tensor
    bytes: Tensor
    end_ids: tuple[int, ...]


class TokenMasks:
    """The masks of an automaton for a vocabulary."""

    def __init__(self, automaton: Automaton, vocabulary: Vocabulary, size: int) -> None:
        self.automaton, self.vocabulary, self.size = automaton, vocabulary, size
        # A state for what leads nowhere, so that it can be looked up like the others.
        states, classes = automaton.next.shape
        self.dead = states
        table = torch.cat([automaton.next, automaton.next.new_full((1, classes), -1)])
        self.table = torch.where(table < 0, self.dead, table).to(torch.int64)
        self.live = self._live()
        if not self.live[0]:
            raise RequestError("the tokenizer cannot write what the schema asks for: it lacks tokens for single bytes")
        self.lengths = vocabulary.starts[1:] - vocabulary.starts[:-1]
        self.rows = {token: row for row, token in enumerate(vocabulary.ids.tolist())}
        self.masks: OrderedDict[int, Tensor] = OrderedDict()

    def next(self, state: int, token: int) -> int:
        """The state after a token."""
        if state < 0:
            return state
        if token in self.vocabulary.end_ids:
            return ENDED if self.automaton.accepting[state] else OUTSIDE
        row = self.rows.get(token)
        if row is None:
            return OUTSIDE
        begin, end = self.vocabulary.starts[row : row + 2].tolist()
        for one in self.automaton.classes[self.vocabulary.bytes[begin:end].long()].tolist():
            state = int(self.table[state, one])
        return state if self.live[state] else OUTSIDE

    def after(self, tokens: Sequence[int]) -> int:
        state = 0
        for token in tokens:
            state = self.next(state, token)
        return state

    def allowed(self, state: int) -> Tensor:
        """Which tokens may come next; the same tensor for the same state."""
        mask = self.masks.pop(state, None)
        if mask is None:
            mask = self._mask(state)
        self.masks[state] = mask
        if len(self.masks) > max(8, MOST_BYTES // self.size):
            self.masks.popitem(last=False)
        return mask

    def _mask(self, state: int) -> Tensor:
        mask = torch.zeros(self.size, dtype=torch.bool)
        if state < 0:
            return ~mask
        ids, starts, data = self.vocabulary.ids, self.vocabulary.starts, self.vocabulary.bytes
        rows = torch.arange(len(ids))
        at = torch.full((len(ids),), state, dtype=torch.int64)
        depth = 0
        # Byte by byte, for the tokens that have not failed.
        while len(rows):
            at = self.table[at, self.automaton.classes[data[starts[rows] + depth].long()]]
            depth += 1
            ended = self.lengths[rows] == depth
            mask[ids[rows[ended & self.live[at]]]] = True
            going = ~ended & (at != self.dead)
            rows, at = rows[going], at[going]
        if self.automaton.accepting[state]:
            mask[list(self.vocabulary.end_ids)] = True
        return mask

    def _live(self) -> Tensor:
        """The states from which bytes that are tokens lead to an end."""
        single = self.vocabulary.bytes[self.vocabulary.starts[:-1][self.vocabulary.starts.diff() == 1]]
        usable = torch.zeros(self.table.shape[1], dtype=torch.bool)
        usable[self.automaton.classes[single.long()]] = True
        live = torch.cat([self.automaton.accepting, torch.zeros(1, dtype=torch.bool)])
        while True:
            more = live | (live[self.table] & usable).any(1)
            more[self.dead] = False
            if torch.equal(more, live):
                return live
            live = more


class Constrainer:
    """The masks of a model, once it was told what its tokens stand for."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.vocabulary: Optional[Vocabulary] = None
        self.known: OrderedDict[str, TokenMasks] = OrderedDict()

    def use(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.known.clear()

    def masks(self, automaton: Automaton) -> TokenMasks:
        if self.vocabulary is None:
            raise RequestError("a constraint was given, but the model's tokens are not known; call use_vocabulary first")
        masks = self.known.pop(automaton.digest, None) or TokenMasks(automaton, self.vocabulary, self.size)
        self.known[automaton.digest] = masks
        if len(self.known) > KEPT:
            self.known.popitem(last=False)
        return masks
