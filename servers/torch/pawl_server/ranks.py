"""The processes that share a model: one, or as many as torchrun started."""
from __future__ import annotations

import datetime
import json
import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Iterator, Optional

import torch
import torch.distributed as dist
from torch import Tensor

from .errors import RequestError

# Ranks wait much longer for work than for each other; torchrun ends them all when one dies.
PATIENCE = datetime.timedelta(days=30)


@dataclass(frozen=True)
class Ranks:
    """This process's place among all; messages go over the CPU, so they never wait for a busy GPU
    stream.
    """

    rank: int
    size: int
    device: torch.device
    messages: Optional["dist.ProcessGroup"]

    @property
    def first(self) -> bool:
        return self.rank == 0

    def broadcast(self, value: Any = None) -> Any:
        """The first rank's JSON value, on every rank."""
        return value if self.size == 1 else self._from(0, value)

    def gather(self, value: Any) -> list[Any]:
        """The JSON values of all ranks, on every rank."""
        if self.size == 1:
            return [value]
        return [self._from(source, value) for source in range(self.size)]

    def _from(self, source: int, value: Any) -> Any:
        data = json.dumps(value).encode() if source == self.rank else b""
        length = torch.tensor([len(data)])
        dist.broadcast(length, source, group=self.messages)
        content = torch.empty(int(length), dtype=torch.uint8)
        if source == self.rank:
            content = torch.frombuffer(bytearray(data), dtype=torch.uint8)
        dist.broadcast(content, source, group=self.messages)
        return json.loads(bytes(content.numpy()))

    @contextmanager
    def together(self) -> Iterator[None]:
        """What cannot be read by one rank fails on all: none goes on to wait for another, or with
        other weights. What is done inside must not need the other ranks after it failed.
        """
        problem: Optional[Exception] = None
        try:
            yield
        except (ValueError, KeyError, OSError, RequestError) as error:
            problem = error
        found = self.gather(None if problem is None else str(problem))
        if problem is not None:
            raise problem
        for rank, text in enumerate(found):
            if text is not None:
                raise RequestError(f"process {rank + 1} of {self.size}: {text}")

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum over all ranks of a tensor, in place."""
        if self.size > 1:
            dist.all_reduce(tensor, group=None if tensor.is_cuda else self.messages)
        return tensor


def join_ranks() -> Ranks:
    """This process alone, or its place in a torchrun job."""
    cuda = torch.cuda.is_available()
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        return Ranks(0, 1, torch.device("cuda", 0) if cuda else torch.device("cpu"), None)
    local, shared = int(os.environ.get("LOCAL_RANK", "0")), os.environ.get("PAWL_SHARED_GPU") == "1"
    count = torch.cuda.device_count()
    if cuda and local >= count and not shared:
        sys.exit(f"process {local + 1} on this machine has no GPU: there are {count}, and each process needs one (--nproc {count})")
    device = torch.device("cuda", local % count) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    # NCCL does not allow two processes on one GPU; gloo does, but is slow, so this is only for
    # tests.
    dist.init_process_group("nccl" if cuda and not shared else "gloo", timeout=PATIENCE)
    return Ranks(dist.get_rank(), size, device, dist.new_group(backend="gloo", timeout=PATIENCE))
