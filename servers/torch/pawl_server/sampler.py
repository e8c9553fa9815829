"""Sampling with continuous batching: rows join when there is room and leave when they stop.

The samples of one prompt share one reading of it and its full pages; only the last page, which each goes on
to fill with its own tokens, is copied.
"""
from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Callable, Iterable, Optional, Sequence

import torch
from torch import Tensor

from .attention import PackedAttention
from .choose import Choice, choose, choose_cut, stream_of, uniforms
from .decoder import STEPS, Decoder, RowState
from .errors import RequestError
from .model import Model
from .output_head import product
from .pages import PAGE, Pages, create_pages, pages_for

MAX_ROWS = {"cuda": 256, "cpu": 64}
# Prompt tokens read at a time.
PREFILL_TOKENS = {"cuda": 32_768, "cpu": 4096}
# Share of the GPU's free memory that pages may take, and their bytes on a CPU.
MEMORY_SHARE, CPU_BYTES = 0.5, 2**28


@dataclass(frozen=True)
class SampleRequest:
    """One prompt to continue, `count` times."""

    prompt: tuple[int, ...]
    count: int
    max_tokens: int
    seed: int
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    stop: tuple[tuple[int, ...], ...] = ()


@dataclass(eq=False)
class Row:
    """One continuation in progress."""

    request: SampleRequest
    index: int
    pages: list[int] = field(default_factory=list)
    # Those of its pages that no other row has.
    own: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    sampled_logprobs: list[float] = field(default_factory=list)
    stop_reason: str = ""

    def extend(self, token: int, logprob: float, sampled_logprob: float) -> None:
        self.tokens.append(token)
        self.logprobs.append(logprob)
        self.sampled_logprobs.append(sampled_logprob)
        stops = self.request.stop
        if stops and any(tuple(self.tokens[-len(stop) :]) == stop for stop in stops):
            self.stop_reason = "stop"
        elif len(self.tokens) >= self.request.max_tokens:
            self.stop_reason = "length"

    def state(self) -> RowState:
        request = self.request
        position = len(request.prompt) + len(self.tokens) - 1
        return RowState(
            self.tokens[-1], position, len(self.tokens), stream_of(request.seed, self.index),
            request.temperature, request.top_k, request.top_p, self.pages,
        )  # fmt: skip


@dataclass(eq=False)
class Job:
    """A request with its rows; done when all of them have stopped."""

    request: SampleRequest
    finished: Callable[[list[Row]], None]
    rows: list[Row] = field(default_factory=list)
    shared: list[int] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        return all(row.stop_reason for row in self.rows)


class Sampler:
    """Samples from a model as its weights are at the time."""

    def __init__(self, model: Model, device: torch.device, dtype: torch.dtype, recorded: bool) -> None:
        self.model, self.device, self.dtype, self.recorded = model, device, dtype, recorded
        self.pages: Optional[Pages] = None
        self.decoders: dict[int, Decoder] = {}

    def sample(self, requests: Sequence[SampleRequest], arrivals: Callable[[], Iterable[Job]] = tuple) -> list[list[Row]]:
        """Continues all requests, and those that `arrivals` brings meanwhile."""
        results: list[list[Row]] = [[] for _ in requests]
        waiting = deque(Job(request, lambda rows, i=i: results.__setitem__(i, rows)) for i, request in enumerate(requests))
        running: list[Job] = []
        rows: list[Row] = []
        while True:
            waiting.extend(arrivals())
            if not waiting and not running:
                return results
            admitted = self._admit(waiting, len(rows))
            if admitted:
                self._read_prompts(admitted)
                running.extend(admitted)
            ended = [row for job in running for row in job.rows if row.stop_reason and row.own]
            for row in ended:
                self._pages().give(row.own)
                row.own = []
            for job in [job for job in running if job.is_done]:
                self._pages().give(job.shared)
                running.remove(job)
                job.finished(job.rows)
            active = [row for job in running for row in job.rows if not row.stop_reason]
            if active:
                self._decode(active, changed=active != rows)
            rows = active

    def _pages(self) -> Pages:
        if self.pages is None:
            config = self.model.config
            width = torch.empty(0, dtype=self.dtype).element_size()
            size = 2 * config.layers * PAGE * config.kv_heads * config.head_size * width
            bytes_free = MEMORY_SHARE * torch.cuda.mem_get_info(self.device)[0] if self.device.type == "cuda" else CPU_BYTES
            most = MAX_ROWS[self.device.type] * (pages_for(config.max_context) + 1)
            count = max(min(int(bytes_free // size), most), 2 * pages_for(config.max_context + PAGE))
            self.pages = create_pages(config, count, self.device, self.dtype)
        return self.pages

    def _admit(self, waiting: deque[Job], active: int) -> list[Job]:
        """Takes jobs that fit: rows, pages and prompt tokens are counted, the first always fits when all is idle."""
        admitted: list[Job] = []
        tokens = 0
        pages = self._pages()
        while waiting:
            job = waiting[0]
            request = job.request
            length = len(request.prompt)
            # Decoding may run past the last wanted token until the host looks.
            total = pages_for(length + request.max_tokens + STEPS[self.device.type])
            shared = length // PAGE if request.count > 1 else 0
            needed = shared + request.count * (total - shared)
            if active + request.count > MAX_ROWS[self.device.type] and (active or admitted):
                break
            if needed > len(pages.free) or (admitted and tokens + length > PREFILL_TOKENS[self.device.type]):
                if not admitted and active == 0:
                    raise RequestError(
                        f"a request of {request.count} samples of {length} + {request.max_tokens} tokens needs {needed} pages of keys and values, but there are {len(pages.free)}; ask for fewer samples at once"
                    )
                break
            waiting.popleft()
            job.shared = pages.take(shared)
            for index in range(request.count):
                own = pages.take(total - shared)
                job.rows.append(Row(request, index, [*job.shared, *own], own))
            admitted.append(job)
            active += request.count
            tokens += length
        return admitted

    @torch.no_grad()
    def _read_prompts(self, jobs: Sequence[Job]) -> None:
        """Reads all prompts, packed, and chooses the first token of each row."""
        pages = self._pages()
        lengths = [len(job.request.prompt) for job in jobs]
        ids = torch.tensor([token for job in jobs for token in job.request.prompt])
        positions = torch.cat([torch.arange(length) for length in lengths])
        tables = [torch.tensor(job.rows[0].pages) for job in jobs]
        places = [torch.arange(length) for length in lengths]
        slots = torch.cat([table[at // PAGE] * PAGE + at % PAGE for table, at in zip(tables, places)]).to(self.device)
        attention = PackedAttention(lengths, self.device)

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            pages.write(layer, slots, k, v)
            return attention(layer, q, k, v)

        rows = [row for job in jobs for row in job.rows]
        owners = torch.tensor([i for i, job in enumerate(jobs) for _ in job.rows])
        last = (torch.tensor(lengths).cumsum(0) - 1)[owners].to(self.device)

        def finish(hidden: Tensor, weight: Tensor, _: Optional[Tensor]) -> Choice:
            return self._first_tokens(product(hidden[last], weight.t()), rows)

        choice = self.model(ids.to(self.device), positions.to(self.device), attend, finish)
        # The page a prompt ends in belongs to its first sample; the others get copies of it.
        partial = [job for job in jobs if len(job.request.prompt) % PAGE]
        copies = [(job.rows[0].own[0], row.own[0]) for job in partial for row in job.rows[1:]]
        pages.copy([source for source, _ in copies], [destination for _, destination in copies])
        for row, *chosen in zip(rows, *(x.tolist() for x in choice)):
            row.extend(*chosen)

    def _first_tokens(self, logits: Tensor, rows: Sequence[Row]) -> Choice:
        tensor = lambda values, dtype: torch.tensor(values, dtype=dtype, device=self.device)
        requests = [row.request for row in rows]
        streams = tensor([stream_of(row.request.seed, row.index) for row in rows], torch.int64)
        uniform = uniforms(streams, torch.zeros_like(streams))
        temperatures = tensor([request.temperature for request in requests], torch.float32)
        if all(request.top_k == 0 and request.top_p >= 1 for request in requests):
            return choose(logits, temperatures, uniform)
        top_k = tensor([request.top_k for request in requests], torch.int64)
        top_p = tensor([request.top_p for request in requests], torch.float32)
        return choose_cut(logits, temperatures, uniform, top_k, top_p)

    def _decode(self, rows: Sequence[Row], changed: bool) -> None:
        size = 8
        while size < len(rows):
            size *= 2
        if size not in self.decoders:
            self.decoders[size] = Decoder(self.model, self._pages(), size, self.recorded)
        decoder = self.decoders[size]
        if changed:
            decoder.set_rows([row.state() for row in rows])
        for row, *chosen in zip(rows, *(x.tolist() for x in decoder.run())):
            for token, logprob, sampled in zip(*chosen):
                if row.stop_reason:
                    break
                row.extend(token, logprob, sampled)

    def reset(self) -> None:
        """Forgets all rows and pages, after an error in the middle of sampling."""
        self.pages, self.decoders = None, {}
