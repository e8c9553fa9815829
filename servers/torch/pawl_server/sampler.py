"""Sampling with continuous batching: rows join when there is space and leave when they stop.

The samples of one prompt share its prefill and its full pages; only the last page, which each
sample fills with its own tokens, is copied.
"""
from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Callable, Iterable, Optional, Sequence, Union

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from .attention import PackedAttention
from .choose import Choice, choose, choose_cut, stream_of, uniforms
from .decoder import STEPS, Decoder, RowState
from .model import Model
from .output_head import product
from .pages import PAGE, Pages, create_pages, pages_for

# Default maximum number of rows decoded at once.
MAX_ROWS = {"cuda": 256, "cpu": 64}
# Prompt tokens prefilled at a time.
PREFILL_TOKENS = {"cuda": 32_768, "cpu": 4096}
# Fraction of the GPU's free memory that pages may use, and their bytes on a CPU.
MEMORY_SHARE, CPU_BYTES = 0.5, 2**28


@dataclass(frozen=True)
class SampleRequest:
    """One prompt to continue, `count` times."""

    prompt: Union[tuple[int, ...], Tensor]
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
    # Its pages that no other row shares.
    own: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    sampled_logprobs: list[float] = field(default_factory=list)
    stop_reason: str = ""

    def extend(self, tokens: list[int], logprobs: list[float], sampled_logprobs: list[float]) -> None:
        """Appends these tokens, up to the end."""
        before = len(self.tokens)
        self.tokens += tokens[: self.request.max_tokens - before]
        end = self._first_stop(before)
        if end is not None:
            del self.tokens[end:]
            self.stop_reason = "stop"
        elif len(self.tokens) == self.request.max_tokens:
            self.stop_reason = "length"
        kept = len(self.tokens) - before
        self.logprobs += logprobs[:kept]
        self.sampled_logprobs += sampled_logprobs[:kept]

    def _first_stop(self, begin: int) -> Optional[int]:
        """The position after the first stop sequence that ends at or after `begin`."""
        stops = self.request.stop
        last = {stop[-1] for stop in stops}
        for end in range(begin + 1, len(self.tokens) + 1) if stops else ():
            if self.tokens[end - 1] in last and any(tuple(self.tokens[:end][-len(stop) :]) == stop for stop in stops):
                return end
        return None

    def state(self) -> RowState:
        request = self.request
        position = len(request.prompt) + len(self.tokens) - 1
        return RowState(
            self.tokens[-1], position, len(self.tokens), stream_of(request.seed, self.index),
            request.temperature, request.top_k, request.top_p, self.pages,
        )  # fmt: skip


@dataclass(eq=False)
class Job:
    """A request and the callback for when all of its rows have stopped."""

    request: SampleRequest
    finished: Callable[[list[Row]], None]
    rows: list[Row] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        return len(self.rows) == self.request.count and all(row.stop_reason for row in self.rows)


@dataclass(eq=False)
class Part:
    """Rows of a job that are prefilled and decoded together: all of them, unless there are too
    many.
    """

    job: Job
    indices: range
    rows: list[Row] = field(default_factory=list)
    shared: list[int] = field(default_factory=list)

    @property
    def prompt(self) -> Union[tuple[int, ...], Tensor]:
        return self.job.request.prompt

    @property
    def is_done(self) -> bool:
        return all(row.stop_reason for row in self.rows)


class Sampler:
    """Samples from a model with its current weights."""

    def __init__(
        self, model: Model, device: torch.device, dtype: torch.dtype, cuda_graphs: bool, rows: Optional[int] = None
    ) -> None:
        self.model, self.device, self.dtype, self.cuda_graphs = model, device, dtype, cuda_graphs
        self.most_rows = rows or MAX_ROWS[device.type]
        self.pages: Optional[Pages] = None
        self.decoders: dict[int, Decoder] = {}

    def sample(self, requests: Sequence[SampleRequest], arrivals: Callable[[], Iterable[Job]] = tuple) -> list[list[Row]]:
        """Continues all requests, and those that `arrivals` adds meanwhile."""
        results: list[list[Row]] = [[] for _ in requests]
        jobs = [Job(request, lambda rows, i=i: results.__setitem__(i, rows)) for i, request in enumerate(requests)]
        waiting = deque(part for job in jobs for part in self._parts(job))
        running: list[Part] = []
        rows: list[Row] = []
        while True:
            waiting.extend(part for job in arrivals() for part in self._parts(job))
            if not waiting and not running:
                return results
            # All prompts that fit are prefilled first: a decode step costs little more for many
            # rows than for few.
            while admitted := self._admit(waiting, _active(running)):
                self._read_prompts(admitted)
                running.extend(admitted)
            self._release(running)
            running = [part for part in running if not part.is_done]
            active = _active(running)
            if active:
                self._decode(active, changed=active != rows)
            rows = active

    def _release(self, running: Sequence[Part]) -> None:
        """Frees the pages of ended rows, and returns finished jobs."""
        pages = self._pages()
        for part in running:
            for row in part.rows:
                if row.stop_reason:
                    pages.give(row.own)
                    row.own = []
            if part.is_done:
                pages.give(part.shared)
                if part.job.is_done:
                    part.job.finished(part.job.rows)

    def _parts(self, job: Job) -> list[Part]:
        """Splits a job into parts that fit on their own."""
        request, pages = job.request, self._pages()
        shared, own = self._needs(request)
        most = min(self.most_rows, max(1, (pages.count - shared) // own))
        return [Part(job, range(i, min(i + most, request.count))) for i in range(0, request.count, most)]

    def _needs(self, request: SampleRequest) -> tuple[int, int]:
        """The number of pages that all rows of a request share, and of those each row has for
        itself.
        """
        length = len(request.prompt)
        # Decoding may run past the last token until the host checks.
        total = pages_for(length + request.max_tokens + STEPS[self.device.type])
        shared = length // PAGE if request.count > 1 else 0
        return shared, total - shared

    def _pages(self) -> Pages:
        if self.pages is None:
            config = self.model.config
            width = torch.empty(0, dtype=self.dtype).element_size()
            size = 2 * config.layers * PAGE * config.kv_heads * config.head_size * width
            bytes_free = MEMORY_SHARE * torch.cuda.mem_get_info(self.device)[0] if self.device.type == "cuda" else CPU_BYTES
            most = self.most_rows * (pages_for(config.max_context) + 1)
            count = max(min(int(bytes_free // size), most), 2 * pages_for(config.max_context + PAGE))
            self.pages = create_pages(config, count, self.device, self.dtype)
        return self.pages

    def _admit(self, waiting: deque[Part], running: Sequence[Row]) -> list[Part]:
        """Takes parts that fit in addition to what is running, by rows, pages and prompt tokens."""
        admitted: list[Part] = []
        active, tokens = len(running), 0
        pages = self._pages()
        while waiting:
            part = waiting[0]
            shared, own = self._needs(part.job.request)
            count = len(part.indices)
            fits = active + count <= self.most_rows and shared + count * own <= len(pages.free)
            if not fits or (admitted and tokens + len(part.prompt) > PREFILL_TOKENS[self.device.type]):
                break
            waiting.popleft()
            part.shared = pages.take(shared)
            for index in part.indices:
                mine = pages.take(own)
                part.rows.append(Row(part.job.request, index, [*part.shared, *mine], mine))
            part.job.rows.extend(part.rows)
            admitted.append(part)
            active += count
            tokens += len(part.prompt)
        return admitted

    @torch.no_grad()
    def _read_prompts(self, parts: Sequence[Part]) -> None:
        """Prefills all prompts, packed, and chooses the first token of each row."""
        pages = self._pages()
        sizes = [len(part.prompt) for part in parts]
        lengths = torch.tensor(sizes, device=self.device)
        ids = torch.cat([torch.as_tensor(part.prompt) for part in parts]).to(self.device)
        owners, positions = spread(lengths, len(ids))
        tables = pad_sequence([torch.tensor(part.rows[0].pages) for part in parts], batch_first=True).to(self.device)
        slots = tables[owners, positions // PAGE] * PAGE + positions % PAGE
        attention = PackedAttention(sizes, self.device)

        def attend(layer: int, q: Tensor, k: Tensor, v: Tensor, window: Optional[int] = None) -> Tensor:
            pages.write(layer, slots, k, v)
            return attention(layer, q, k, v, window)

        rows = [row for part in parts for row in part.rows]
        readers = torch.tensor([i for i, part in enumerate(parts) for _ in part.rows], device=self.device)
        last = (lengths.cumsum(0) - 1)[readers]

        def finish(hidden: Tensor, weight: Tensor, _: Optional[Tensor]) -> Choice:
            return self._first_tokens(product(hidden[last], weight.t()), rows)

        choice = self.model(ids, positions, attend, finish)
        # The last page of a prompt belongs to its first sample; the others get copies.
        partial = [part for part in parts if len(part.prompt) % PAGE]
        copies = [(part.rows[0].own[0], row.own[0]) for part in partial for row in part.rows[1:]]
        pages.copy([source for source, _ in copies], [destination for _, destination in copies])
        for row, *chosen in zip(rows, *(x[:, None].tolist() for x in choice)):
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
            self.decoders[size] = Decoder(self.model, self._pages(), size, self.cuda_graphs)
        decoder = self.decoders[size]
        if changed:
            decoder.set_rows([row.state() for row in rows])
        wanted = max(row.request.max_tokens - len(row.tokens) for row in rows)
        for row, *chosen in zip(rows, *(x.tolist() for x in decoder.run(wanted))):
            row.extend(*chosen)

    def reset(self) -> None:
        """Clears all rows and pages, after an error during sampling."""
        self.pages, self.decoders = None, {}


def _active(running: Sequence[Part]) -> list[Row]:
    """The rows that have not ended."""
    return [row for part in running for row in part.rows if not row.stop_reason]


def spread(lengths: Tensor, total: int) -> tuple[Tensor, Tensor]:
    """Which of several packed sequences each token belongs to, and its position there."""
    owners = torch.repeat_interleave(lengths, output_size=total)
    starts = lengths.cumsum(0) - lengths
    return owners, torch.arange(total, device=lengths.device) - starts[owners]
