"""Who uses which page, and which pages can be used again.

A page that nobody uses is free, unless it is kept: then it can be found by the tokens it was read
from, until its place is needed or the weights change. Full pages may have several users; the last
page of a text, which is not full, is handed to the first text that continues it. There are as many
pages as were needed so far, within a bound.
"""
from __future__ import annotations

from array import array
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import blake2b
from typing import Callable, Optional, Sequence

import torch
from torch import Tensor

from .pages import PAGE, Pages

# More pages are added at once than are needed, because each time all of them are copied.
GROWTH = 1.25
# Bytes of a token.
TOKEN = 8


@dataclass(frozen=True)
class Text:
    """Tokens, and for each full page of them a digest of everything up to its end."""

    data: bytes
    digests: list[bytes]

    @property
    def last(self) -> tuple[bytes, bytes]:
        """The digest of all full pages, and the tokens after them."""
        return self.digests[-1] if self.digests else b"", self.data[len(self.digests) * PAGE * TOKEN :]


class PagePool:
    """Hands out pages, and takes them back."""

    def __init__(self, pages: Pages, most: Callable[[int], int]) -> None:
        """`most` says how many pages there may be, given how many there are."""
        self.pages, self._most = pages, most
        self.free: list[int] = []
        self._users: list[int] = [0]
        # Kept pages: full ones by the digest of the text up to their end, last ones by the digest
        # of the full pages before them and their own tokens.
        self._kept: dict[bytes, int] = {}
        self._last: dict[bytes, dict[bytes, int]] = {}
        self._keys: dict[int, tuple[bytes, Optional[bytes]]] = {}
        # Those without users, oldest first.
        self._unused: OrderedDict[int, None] = OrderedDict()
        self._most_used = 0
        # How many will probably be needed.
        self.expected = 0

    @property
    def used(self) -> int:
        return self.pages.count - len(self.free) - len(self._unused)

    @property
    def most(self) -> int:
        """How many pages there may be."""
        return max(self.pages.count, self._most(self.pages.count))

    def reserve(self, count: int) -> bool:
        """Makes room for so many more pages, if there is memory for them: new pages first, then
        those of kept text.
        """
        wanted = self.pages.count - len(self.free) + count
        if wanted > self.pages.count:
            self._grow(wanted)
        while len(self.free) < count and self._unused:
            self._drop(next(iter(self._unused)))
        return len(self.free) >= count

    def take(self, count: int) -> list[int]:
        """Pages with one user each; `reserve` has made room for them."""
        taken = [self.free.pop() for _ in range(count)]
        for page in taken:
            self._users[page] = 1
        self._most_used = max(self._most_used, self.used)
        return taken

    def share(self, pages: Sequence[int]) -> None:
        """Adds a user to each of these pages."""
        for page in pages:
            self._users[page] += 1
            self._unused.pop(page, None)
        self._most_used = max(self._most_used, self.used)

    def give(self, pages: Sequence[int]) -> None:
        """Takes one user away from each of these pages of a text."""
        # A page is of no use without those before it, so that the last ones go first.
        for page in reversed(pages):
            self._users[page] -= 1
            if self._users[page] == 0 and page in self._keys:
                self._unused[page] = None
            elif self._users[page] == 0:
                self.free.append(page)
        # Text that nobody comes back to must not pile up: no more of it than was ever in use at once.
        while len(self._unused) > self._most_used:
            self._drop(next(iter(self._unused)))

    def keep(self, text: Text, pages: Sequence[int]) -> None:
        """Lets the full pages of a text be found."""
        for digest, page in zip(text.digests, pages):
            if digest not in self._kept and page not in self._keys:
                self._kept[digest] = page
                self._keys[page] = digest, None

    def keep_last(self, text: Text, page: int) -> None:
        """Lets the last page of a text be found, by a text that continues it."""
        before, tokens = text.last
        if tokens and page not in self._keys:
            found = self._last.setdefault(before, {})
            if tokens not in found:
                found[tokens] = page
                self._keys[page] = before, tokens

    def find(self, text: Text, most: int) -> tuple[list[int], Optional[int], int]:
        """The kept full pages at the beginning of a text, a last one after them, and how many tokens
        they hold: at most so many.
        """
        found: list[int] = []
        for digest in text.digests[: most // PAGE]:
            page = self._kept.get(digest)
            if page is None:
                break
            found.append(page)
        known = len(found) * PAGE
        after = text.data[known * TOKEN : most * TOKEN]
        for tokens, page in self._last.get(text.digests[len(found) - 1] if found else b"", {}).items():
            if after.startswith(tokens) and self._users[page] == 0:
                return found, page, known + len(tokens) // TOKEN
        return found, None, known

    def claim(self, page: int) -> None:
        """Takes a last page over from the text it was kept for: its user will write into it."""
        self._forget_page(page)

    def forget(self) -> None:
        """Forgets all text, because the weights have changed."""
        self.free.extend(self._unused)
        self._unused.clear()
        self._kept, self._last, self._keys, self._most_used = {}, {}, {}, self.used

    def _drop(self, page: int) -> None:
        """Frees a kept page that nobody uses."""
        del self._unused[page]
        self._forget_page(page)
        self.free.append(page)

    def _forget_page(self, page: int) -> None:
        key, tokens = self._keys.pop(page)
        if tokens is None:
            del self._kept[key]
        else:
            del self._last[key][tokens]
            if not self._last[key]:
                del self._last[key]

    def _grow(self, wanted: int) -> None:
        before = self.pages.count
        for count in (max(wanted, self.expected, int(before * GROWTH)), wanted):
            if before < min(count, self.most):
                try:
                    self.pages.grow(min(count, self.most))
                    break
                except torch.cuda.OutOfMemoryError:
                    torch.cuda.empty_cache()
        self.free.extend(range(self.pages.count, before, -1))
        self._users.extend([0] * (self.pages.count - before))


def text_of(tokens: Tensor) -> Text:
    """Tokens as a text."""
    return _digested(tokens.to(torch.int64).numpy().tobytes(), [])


def longer_text(beginning: Text, tokens: Sequence[int]) -> Text:
    """A text that begins with a known one."""
    return _digested(beginning.data + array("q", tokens).tobytes(), list(beginning.digests))


def _digested(data: bytes, digests: list[bytes]) -> Text:
    """The text, of whose first pages the digests are known."""
    width = PAGE * TOKEN
    before = digests[-1] if digests else b""
    for begin in range(len(digests) * width, len(data) - width + 1, width):
        before = blake2b(before + data[begin : begin + width], digest_size=16).digest()
        digests.append(before)
    return Text(data, digests)
