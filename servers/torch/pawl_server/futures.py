"""Futures: each piece of work has an id under which its result can be fetched later."""
from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Any, Callable, Hashable, Optional

from .errors import RequestError

# Results are kept this long, so that a client that lost an answer can ask again.
KEPT_S = 900.0
MAX_WAITING = 4096


@dataclass(eq=False)
class Future:
    """One piece of work and, when it is done, its result or the error."""

    operation: str
    body: dict[str, Any]
    work: Any
    id: str = field(default_factory=lambda: secrets.token_hex(16))
    done: threading.Event = field(default_factory=threading.Event)
    done_at: float = 0.0
    result: Optional[dict[str, Any]] = None
    error: Optional[RequestError] = None

    def succeed(self, result: dict[str, Any]) -> None:
        self.result, self.done_at = result, time.monotonic()
        self.done.set()

    def fail(self, error: RequestError) -> None:
        self.error, self.done_at = error, time.monotonic()
        self.done.set()


class Futures:
    """The queue of work and its results. Work is executed one piece at a time, in order."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._waiting: deque[Future] = deque()
        self._known: OrderedDict[str, Future] = OrderedDict()
        self._repeatable: OrderedDict[Hashable, Future] = OrderedDict()

    def add(self, future: Future, once: Optional[Hashable]) -> Future:
        """Queues work; the same `once` key returns the first future again, without repeating the
        work.
        """
        with self._condition:
            if once is not None and once in self._repeatable:
                return self._repeatable[once]
            if len(self._waiting) >= MAX_WAITING:
                raise RequestError(f"{MAX_WAITING} requests are already waiting; try again later", 503)
            self._known[future.id] = future
            if once is not None:
                self._repeatable[once] = future
            for kept in (self._known, self._repeatable):
                while kept and _is_old(next(iter(kept.values()))):
                    kept.popitem(last=False)
            self._waiting.append(future)
            self._condition.notify_all()
            return future

    def find(self, id: str) -> Future:
        with self._condition:
            future = self._known.get(id)
        if future is None:
            raise RequestError(f"no request has the id {id[:80]!r}; it may have expired, or the server was restarted", 404)
        return future

    def next(self, timeout: float) -> Optional[Future]:
        """The next piece of work, or None if none comes in time."""
        with self._condition:
            self._condition.wait_for(lambda: bool(self._waiting), timeout)
            return self._waiting.popleft() if self._waiting else None

    def take_while(self, fits: Callable[[Future], bool]) -> list[Future]:
        """The pieces at the head of the queue that fit, without waiting."""
        taken = []
        with self._condition:
            while self._waiting and fits(self._waiting[0]):
                taken.append(self._waiting.popleft())
        return taken


def _is_old(future: Future) -> bool:
    return future.done.is_set() and time.monotonic() - future.done_at > KEPT_S
