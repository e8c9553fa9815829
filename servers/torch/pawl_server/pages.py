"""Keys and values of the tokens read so far, in pages that several rows may share."""
from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .model_config import ModelConfig

PAGE = 64


@dataclass(frozen=True)
class Pages:
    """The pages of all layers, [layers, pages, PAGE, heads, size]; page 0 is where idle rows write."""

    keys: Tensor
    values: Tensor
    free: list[int]

    @property
    def count(self) -> int:
        return self.keys.shape[1] - 1

    def take(self, count: int) -> list[int]:
        return [self.free.pop() for _ in range(count)]

    def give(self, pages: list[int]) -> None:
        self.free.extend(pages)

    def write(self, layer: int, slots: Tensor, k: Tensor, v: Tensor) -> None:
        """Stores keys and values of some tokens; a slot is page × PAGE + position in the page."""
        if k.is_cuda:
            from .paged_attention_kernel import store_gpu

            store_gpu(self.keys[layer], self.values[layer], slots, k, v)
            return
        for pages, new in ((self.keys, k), (self.values, v)):
            pages[layer].view(-1, *new.shape[1:]).index_copy_(0, slots, new)

    def copy(self, sources: list[int], destinations: list[int]) -> None:
        """Copies whole pages."""
        if not sources:
            return
        for pages in (self.keys, self.values):
            pages[:, destinations] = pages[:, sources]


def create_pages(config: ModelConfig, count: int, device: torch.device, dtype: torch.dtype) -> Pages:
    """Memory for `count` pages of tokens."""
    shape = (config.layers, count + 1, PAGE, config.kv_heads, config.head_size)
    make = lambda: torch.zeros(shape, device=device, dtype=dtype)
    return Pages(make(), make(), list(range(count, 0, -1)))


def pages_for(tokens: int) -> int:
    return -(-tokens // PAGE)
