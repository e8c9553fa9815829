"""How much memory this process may take, and what it does when there is none."""
from __future__ import annotations

import gc
import sys
from dataclasses import dataclass
from typing import Optional

import torch

# Pages may take this share of what is free whenever more are needed, so that learning and other
# servers find room too; and this many bytes on a CPU.
PAGES_SHARE, PAGES_ON_CPU = 0.5, 2**28
# What pages leave for prefill and decoding, and what CUDA itself takes of a process's memory.
WORK_BYTES, CUDA_BYTES = 2**30, int(0.8 * 2**30)


@dataclass(frozen=True)
class Memory:
    """The memory of a device; `limit` is the most that this process may take of a GPU, in bytes."""

    device: torch.device
    limit: Optional[int] = None

    def __post_init__(self) -> None:
        if self.limit is not None and self.device.type == "cuda":
            total = torch.cuda.get_device_properties(self.device).total_memory
            torch.cuda.set_per_process_memory_fraction(min(1.0, self._for_tensors(self.limit) / total), self.device)

    def for_more_pages(self, held: int) -> int:
        """Bytes that pages may take in addition to those they hold."""
        if self.device.type != "cuda":
            return max(0, PAGES_ON_CPU - held)
        reserved, allocated = torch.cuda.memory_reserved(self.device), torch.cuda.memory_allocated(self.device)
        free = torch.cuda.mem_get_info(self.device)[0] + reserved - allocated
        if self.limit is not None:
            free = min(free, self._for_tensors(self.limit) - allocated)
        return int(PAGES_SHARE * max(0, free - WORK_BYTES))

    def _for_tensors(self, limit: int) -> int:
        return max(0, limit - CUDA_BYTES)

    def release(self) -> None:
        """Gives unused memory back to the device, for other processes."""
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()


def say(message: str) -> None:
    """A line in the server's log."""
    print(message, file=sys.stderr, flush=True)
