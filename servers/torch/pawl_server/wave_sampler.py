"""Sampling from hybrids, in waves: rows of similar length begin together, with one cache, and those
that ask meanwhile wait for the next wave.

The samples of one prompt share its prefill. Nothing is kept for prompts that continue earlier ones.
"""
from __future__ import annotations

from typing import Any, Callable, Iterable, Optional, Sequence, Union

import torch
from torch import Tensor

from .errors import RequestError
from .memory import Memory, say
from .output_head import product
from .recurrent_model import RecurrentModel
from .sampler import MAX_ROWS, MORE_MEMORY, Job, Row, Sampler, SampleRequest, next_tokens

# Prompt tokens read at a time, with padding.
PROMPT_TOKENS = {"cuda": 65_536, "cpu": 8192}


class WaveSampler:
    """Samples from a hybrid with its current weights."""

    def __init__(self, model: RecurrentModel, memory: Memory, rows: Optional[int] = None) -> None:
        self.model, self.memory, self.device = model, memory, memory.device
        self.most_rows = rows or MAX_ROWS[self.device.type]

    def reset(self) -> None:
        """Gives unused memory back."""
        self.memory.release()

    def give_back(self) -> bool:
        """Nothing is held between calls."""
        return False

    def make_room(self) -> None:
        """Nothing is held between calls."""

    def forget(self) -> None:
        """No text is kept."""

    def sample(self, requests: Sequence[SampleRequest], arrivals: Callable[[], Iterable[Job]] = tuple) -> list[list[Row]]:
        """Continues all requests, and those that `arrivals` adds meanwhile."""
        results: list[list[Row]] = [[] for _ in requests]
        jobs = [Job(request, lambda rows, i=i: results.__setitem__(i, rows)) for i, request in enumerate(requests)]
        waiting: list[Row] = []
        while True:
            jobs.extend(arrivals())
            for job in jobs:
                if not job.rows:
                    job.rows = [Row(job.request, index) for index in range(job.request.count)]
                    waiting.extend(job.rows)
            if waiting:
                wave = self._wave(waiting)
                self._run(wave)
                waiting = [row for row in waiting if not row.stop_reason]
            for job in [job for job in jobs if job.is_done]:
                jobs.remove(job)
                job.finished(job.rows)
            if not jobs:
                return results

    def _wave(self, waiting: Sequence[Row]) -> list[Row]:
        """The row that has waited longest, and others whose prompts are padded little beside it."""
        length = len(waiting[0].request.prompt)
        similar = range(-(-length // 2), 2 * length + 1) if self.model.masks_padding else (length,)
        wave: list[Row] = []
        prompts: dict[int, int] = {}
        for row in waiting:
            size = len(row.request.prompt)
            there = {**prompts, id(row.request): size}
            fits = len(there) * max(there.values()) <= PROMPT_TOKENS[self.device.type]
            if size in similar and len(wave) < self.most_rows and (fits or not wave):
                wave.append(row)
                prompts = there
        return wave

    def _run(self, rows: list[Row]) -> None:
        """Samples these rows to their ends; in halves if memory is short."""
        try:
            return self._run_together(rows)
        except torch.cuda.OutOfMemoryError:
            # Tried again below: in here, the error still holds the tensors of the pass that failed.
            pass
        self.memory.release()
        if len(rows) == 1:
            request = rows[0].request
            raise RequestError(f"no memory for a prompt of {len(request.prompt)} tokens and {request.max_tokens} new ones; lower maxTokens, {MORE_MEMORY}", 507)
        say(f"no memory to sample {len(rows)} rows at once: sampling half as many")
        for half in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):
            for row in half:
                row.clear()
            self._run(half)

    @torch.no_grad()
    def _run_together(self, rows: list[Row]) -> None:
        prompts = list({id(row.request): row.request for row in rows}.values())
        width = max(len(request.prompt) for request in prompts)
        ids, mask = torch.zeros(2, len(prompts), width, dtype=torch.int64)
        for i, request in enumerate(prompts):
            begin = width - len(request.prompt)
            ids[i, begin:], mask[i, begin:] = torch.as_tensor(request.prompt), 1
        ids, mask = ids.to(self.device), mask.to(self.device)
        cache = self.model.new_cache()
        states = self.model.extend(cache, ids, (mask.cumsum(1) - 1).clamp(min=0), mask)
        # Which row of the cache each row continues: its prompt's, and later its own.
        places = {id(request): i for i, request in enumerate(prompts)}
        source = self._tensor([places[id(row.request)] for row in rows])
        while True:
            self._choose(states[source], rows)
            left = [i for i, row in enumerate(rows) if not row.stop_reason]
            if not left:
                return
            rows, source = [rows[i] for i in left], source[left]
            if not torch.equal(source, torch.arange(len(states), device=self.device)):
                cache.reorder_cache(source)
                mask = mask[source]
            mask = torch.cat([mask, mask.new_ones(len(rows), 1)], 1)
            last = self._tensor([[row.tokens[-1]] for row in rows])
            states = self.model.extend(cache, last, mask.sum(1, keepdim=True) - 1, mask)
            source = self._tensor(range(len(rows)))

    def _choose(self, states: Tensor, rows: Sequence[Row]) -> None:
        choice = next_tokens(product(states, self.model.head.t()), rows)
        for row, *new in zip(rows, *(x[:, None].tolist() for x in choice)):
            row.extend(*new)

    def _tensor(self, numbers: Sequence[Any]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.int64, device=self.device)


AnySampler = Union[Sampler, WaveSampler]
