"""Keys and values of the tokens read so far, in pages that several rows may share."""
from __future__ import annotations

from typing import Sequence

import torch
from torch import Tensor

from .model_config import ModelConfig

PAGE = 64


class Pages:
    """The pages of all layers, [layers, pages, PAGE, heads, size]; page 0 is where idle rows write."""

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        self.keys, self.values = keys, values
        # How often either was moved.
        self.moves = 0

    @property
    def count(self) -> int:
        # Values grow last.
        return self.values.shape[1] - 1

    def grow(self, count: int) -> None:
        """Makes this many pages, and moves what is in them: one tensor after the other, because both
        at once would need twice the memory.
        """
        for name in ("keys", "values"):
            pages = getattr(self, name)
            layers, before, *page = pages.shape
            if before <= count:
                grown = pages.new_zeros((layers, count + 1, *page))
                grown[:, :before] = pages
                setattr(self, name, grown)
                self.moves += 1

    def write(self, layer: int, slots: Tensor, k: Tensor, v: Tensor) -> None:
        """Stores keys and values of some tokens; a slot is page × PAGE + position in the page."""
        if k.is_cuda:
            from .paged_attention_kernel import store_gpu

            store_gpu(self.keys[layer], self.values[layer], slots, k, v)
            return
        for pages, new in ((self.keys, k), (self.values, v)):
            pages[layer].view(-1, *new.shape[1:]).index_copy_(0, slots, new)

    def read(self, layer: int, slots: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values in some slots, [slots, heads, size] each."""
        keys, values = (pages[layer].flatten(0, 1).index_select(0, slots) for pages in (self.keys, self.values))
        return keys, values

    def copy(self, sources: list[int], destinations: list[int]) -> None:
        """Copies whole pages."""
        if not sources:
            return
        for pages in (self.keys, self.values):
            pages[:, destinations] = pages[:, sources]


def no_pages(config: ModelConfig, device: torch.device, dtype: torch.dtype) -> Pages:
    """Memory for page 0 alone."""
    shape = (config.layers, 1, PAGE, config.kv_heads, config.head_size)
    return Pages(*(torch.zeros(shape, device=device, dtype=dtype) for _ in range(2)))


def page_bytes(config: ModelConfig, dtype: torch.dtype) -> int:
    """Bytes of one page in all layers."""
    width = torch.empty(0, dtype=dtype).element_size()
    return 2 * config.layers * PAGE * config.kv_heads * config.head_size * width


def pages_for(tokens: int) -> int:
    return -(-tokens // PAGE)


def page_tables(rows: Sequence[Sequence[int]]) -> Tensor:
    """The pages of several rows, [rows, pages]; shorter ones are filled up with page 0."""
    width = max(1, *map(len, rows))
    return torch.tensor([[*pages, *[0] * (width - len(pages))] for pages in rows], dtype=torch.int32)
