"""Scoring that can wait: requests for log-probabilities under a reference, which never changes.

Clients send them while they act. They are computed whenever nothing is sampled, and everything but
sampling waits for them, so that the order in which a model changes is the order of its requests. On a
GPU two batches are queued at a time: enough to keep it busy, few enough that sampling soon has it
for itself.
"""
from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

import torch

from .engine import Engine
from .engine_types import Scored
from .errors import RequestError
from .futures import Future
from .messages import Forward
from .say import say_fault
from .scoring import Scoring

# Batches that are computed or queued on the GPU at once.
AHEAD = 2
# A request that is older goes before sampling: others may sample without a pause.
PATIENCE_S = 10.0


@dataclass(eq=False)
class Entry:
    """One request, and its scoring once it was begun."""

    future: Future
    engine: Engine
    work: Forward
    since: float = field(default_factory=time.monotonic)
    scoring: Optional[Scoring] = None

    def begin(self) -> Scoring:
        if self.scoring is None:
            work = self.work
            self.scoring = self.engine.scoring(work.sequences, reference=True, entropies=work.entropies, values=work.values)
        return self.scoring


class Backlog:
    """The requests that wait; `answer` makes a result of what was scored."""

    def __init__(self, answer: Callable[[Forward, Scored], dict[str, Any]]) -> None:
        self.answer = answer
        self.entries: deque[Entry] = deque()
        # Batches on the GPU.
        self.queued: deque["torch.cuda.Event"] = deque()

    def add(self, future: Future, engine: Engine) -> None:
        self.entries.append(Entry(future, engine, future.work))

    @property
    def is_empty(self) -> bool:
        return not self.entries

    @property
    def is_overdue(self) -> bool:
        return bool(self.entries) and time.monotonic() - self.entries[0].since > PATIENCE_S

    def advance(self) -> bool:
        """Answers what is done and begins the next batch; False if none can begin now."""
        while self.queued and self.queued[0].query():
            self.queued.popleft()
        self._answer_computed()
        waiting = next((entry for entry in self.entries if entry.scoring is None or entry.scoring.left), None)
        if waiting is None or len(self.queued) >= AHEAD:
            return False
        self._begin(waiting)
        self._answer_computed()
        return True

    def finish(self) -> None:
        """Computes and answers everything."""
        while self.entries:
            if not self.advance() and self.queued:
                self.queued[0].synchronize()

    def _begin(self, entry: Entry) -> None:
        try:
            scoring = entry.begin()
            entry.engine.advance(scoring)
            if scoring.event is not None:
                self.queued.append(scoring.event)
            return
        except torch.cuda.OutOfMemoryError:
            # Gone on with below: in here, the error still holds the tensors of the pass that failed.
            pass
        except Exception as error:
            self._fail(entry, error)
            return
        try:
            work = entry.work
            scored = entry.engine.score(work.sequences, reference=True, entropies=work.entropies, values=work.values)
            self._succeed(entry, scored)
        except Exception as error:
            self._fail(entry, error)

    def _answer_computed(self) -> None:
        for entry in list(self.entries):
            if entry.scoring is not None and not entry.scoring.left and entry.scoring.is_computed:
                self._succeed(entry, entry.scoring.result())

    def _succeed(self, entry: Entry, scored: Scored) -> None:
        self.entries.remove(entry)
        entry.future.succeed(self.answer(entry.work, scored))

    def _fail(self, entry: Entry, error: Exception) -> None:
        self.entries.remove(entry)
        if not isinstance(error, RequestError):
            say_fault("a request", error)
        entry.future.fail(error if isinstance(error, RequestError) else RequestError(f"{type(error).__name__}: {error}"))
