"""Futures: each piece of work has an id under which its result can be fetched later."""
from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Any, Callable, Hashable, Optional

from torch import Tensor

from .errors import RequestError

# Results are kept this long, so that a client that lost an answer can ask again; less long once it was sent.
KEPT_S = 900.0
SENT_S = 600.0
MAX_WAITING = 4096
# How often old results are looked for while requests come.
CHECK_S = 1.0
# Bytes of requests that wait, and of results that are kept. The oldest results go first, those already sent before others.
MAX_WAITING_BYTES = 2**31
MAX_KEPT_BYTES = 2**30
# What a future takes up without its request or result.
FUTURE_BYTES = 2048


@dataclass(eq=False)
class Future:
    """One piece of work and, when it is done, its result or the error."""

    operation: str
    body: dict[str, Any]
    work: Any
    # What its request takes up while it waits.
    bytes: int = 0
    id: str = field(default_factory=lambda: secrets.token_hex(16))
    done: threading.Event = field(default_factory=threading.Event)
    done_at: float = 0.0
    # When its result was first sent.
    sent_at: Optional[float] = None
    result: Optional[dict[str, Any]] = None
    error: Optional[RequestError] = None
    once: Optional[Hashable] = None

    def succeed(self, result: dict[str, Any]) -> None:
        self.result = result
        self._finish(size_of(result))

    def fail(self, error: RequestError) -> None:
        self.error = error
        self._finish(0)

    def _finish(self, size: int) -> None:
        # Repeats are answered from the result; the request itself may be large.
        self.work, self.bytes, self.done_at = None, FUTURE_BYTES + size, time.monotonic()
        self.body = {name: self.body[name] for name in ("assigned_id", "model_id") if name in self.body}
        self.done.set()


class Futures:
    """The queue of work and its results. Work is executed one piece at a time, in order."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._waiting: deque[Future] = deque()
        self._known: OrderedDict[str, Future] = OrderedDict()
        self._repeatable: dict[Hashable, Future] = {}
        self._checked_at = time.monotonic()

    def add(self, future: Future, once: Optional[Hashable]) -> Future:
        """Queues work; the same `once` key returns the first future again, without repeating the
        work.
        """
        with self._condition:
            if once is not None and once in self._repeatable:
                return self._repeatable[once]
            waiting = sum(other.bytes for other in self._waiting)
            if len(self._waiting) >= MAX_WAITING or (self._waiting and waiting + future.bytes > MAX_WAITING_BYTES):
                raise RequestError(f"{len(self._waiting)} requests of {waiting} bytes are already waiting; try again later", 503)
            if time.monotonic() - self._checked_at > CHECK_S:
                self._forget_old()
            self._known[future.id] = future
            if once is not None:
                future.once = once
                self._repeatable[once] = future
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

    @property
    def is_waiting(self) -> bool:
        """Whether there is a next piece of work."""
        with self._condition:
            return bool(self._waiting)

    def take_while(self, fits: Callable[[Future], bool]) -> list[Future]:
        """The pieces at the head of the queue that fit, without waiting."""
        taken = []
        with self._condition:
            while self._waiting and fits(self._waiting[0]):
                taken.append(self._waiting.popleft())
        return taken

    def forget_old(self) -> None:
        """Drops results that nobody will ask for again."""
        with self._condition:
            self._forget_old()

    def _forget_old(self) -> None:
        self._checked_at = time.monotonic()
        done = [future for future in self._known.values() if future.done.is_set()]
        gone = [future for future in done if _is_old(future)]
        # Those that were sent first, then the oldest.
        kept = sorted((future for future in done if not _is_old(future)), key=lambda future: (future.sent_at is None, future.done_at))
        size = sum(future.bytes for future in kept)
        for future in kept:
            if size <= MAX_KEPT_BYTES:
                break
            size -= future.bytes
            gone.append(future)
        for future in gone:
            del self._known[future.id]
            if future.once is not None:
                del self._repeatable[future.once]


def _is_old(future: Future) -> bool:
    now = time.monotonic()
    return now - future.done_at > KEPT_S or (future.sent_at is not None and now - future.sent_at > SENT_S)


def size_of(value: object) -> int:
    """The memory that a result takes up, roughly."""
    if isinstance(value, Tensor):
        return 100 + value.numel() * value.element_size()
    if isinstance(value, dict):
        return 100 + sum(size_of(part) for part in value.values())
    if isinstance(value, (list, tuple)):
        if value and isinstance(value[0], (int, float)):
            return 56 + 40 * len(value)
        return 56 + sum(8 + size_of(part) for part in value)
    return 60
