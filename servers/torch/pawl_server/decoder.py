"""One decode step for many rows: read each row's newest token, choose its next one.

Everything that a decode step reads and writes stays in the same buffers on the device, so that on a
GPU a step is a CUDA graph, and several steps run without the host in between.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Optional, Sequence

import torch
from torch import Tensor

from .choose import Choice, choose, choose_cut, uniforms
from .compiling import compile_rows
from .constraints import MASKED
from .model import Model
from .output_head import product
from .paged_attention import PagedAttention
from .pages import PAGE, Pages, page_tables

# Decode steps between two checks of the results by the host.
STEPS = {"cuda": 16, "cpu": 1}


@dataclass(frozen=True)
class RowState:
    """What a decode step needs to know about one row."""

    token: int
    # Position of the newest token, which has been chosen but not read yet.
    position: int
    # Tokens chosen so far.
    step: int
    stream: int
    temperature: float
    top_k: int
    top_p: float
    pages: Sequence[int]


class Decoder:
    """Buffers and decode step for a number of rows; idle rows are computed and ignored."""

    def __init__(self, model: Model, pages: Pages, rows: int, cuda_graphs: bool) -> None:
        device = pages.keys.device
        whole = lambda *shape, dtype=torch.int64: torch.zeros(shape, dtype=dtype, device=device)
        self.model, self.pages, self.rows, self.cuda_graphs = model, pages, rows, cuda_graphs
        # Counted, because holding on to the tensors would keep the memory of pages that have moved.
        self.moves = pages.moves
        self.tokens, self.positions, self.steps, self.streams = whole(rows), whole(rows), whole(rows), whole(rows)
        self.temperatures, self.top_p = whole(rows, dtype=torch.float32), whole(rows, dtype=torch.float32)
        self.top_k = whole(rows)
        width = -(-model.config.max_context // PAGE) + 1
        self.tables = whole(rows, width, dtype=torch.int32)
        self.at = whole(1)
        count = STEPS[device.type]
        self.chosen = whole(count, rows)
        self.logprobs = whole(count, rows, dtype=torch.float32)
        self.sampled_logprobs = whole(count, rows, dtype=torch.float32)
        # Each of these is many kernels if it is not compiled.
        self.uniforms = compile_rows(uniforms, (0, 1)) if cuda_graphs else uniforms
        self.advance = torch.compile(advance) if cuda_graphs else advance
        self.graphs: dict[tuple[bool, bool], Callable[[], None]] = {}
        # Whether rows are held to something, and which tokens each may take next.
        self.masked = False
        self.allowed: Optional[Tensor] = None
        self.width = width
        self.cut = False

    @property
    def is_stale(self) -> bool:
        """Whether the pages have moved since: a CUDA graph still reads them where they were."""
        return self.moves != self.pages.moves

    def set_rows(self, rows: Sequence[RowState]) -> None:
        """Sets the rows that are decoded from now on."""
        idle = RowState(0, 0, 0, 0, 1.0, 0, 1.0, ())
        every = [*rows, *[idle] * (self.rows - len(rows))]
        for buffer, values in (
            (self.tokens, [row.token for row in every]),
            (self.positions, [row.position for row in every]),
            (self.steps, [row.step for row in every]),
            (self.streams, [row.stream for row in every]),
            (self.temperatures, [row.temperature for row in every]),
            (self.top_k, [row.top_k for row in every]),
            (self.top_p, [row.top_p for row in every]),
        ):
            buffer.copy_(torch.tensor(values, dtype=buffer.dtype))
        tables = page_tables([row.pages for row in every])
        used = tables.shape[1]
        self.tables[:, :used].copy_(tables)
        self.cut = any(row.top_k > 0 or row.top_p < 1 for row in rows)
        # A CUDA graph always sees the whole table; it reads only as far as a row is long.
        self.width = self.tables.shape[1] if self.cuda_graphs else used

    def set_allowed(self, allowed: Tensor) -> None:
        """Sets which tokens the rows may take next."""
        if self.allowed is None:
            self.allowed = torch.ones(self.rows, allowed.shape[1], dtype=torch.bool, device=self.tokens.device)
        self.allowed[: len(allowed)].copy_(allowed)

    def run(self, wanted: int) -> Choice:
        """The next tokens of each row, as many as wanted or as fit: [rows, steps]."""
        self.at.zero_()
        step = self._captured_step(self.cut) if self.cuda_graphs else self._step
        count = min(wanted, self.chosen.shape[0])
        for _ in range(count):
            step()
        return Choice(*(x[:count].t().cpu() for x in (self.chosen, self.logprobs, self.sampled_logprobs)))

    def _captured_step(self, cut: bool) -> Callable[[], None]:
        key = (cut, self.masked)
        if key not in self.graphs:
            state = [x.clone() for x in (self.tokens, self.positions, self.steps)]
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for _ in range(2):
                    self._step()
            torch.cuda.current_stream().wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            # Kernels keep the priority they were recorded with: they go before those of scoring.
            with torch.cuda.graph(graph, stream=torch.cuda.Stream(priority=-1)):
                self._step()
            self.graphs[key] = graph.replay
            # Recording really ran the step before; reading the same token again has the same
            # effect.
            for buffer, value in zip((self.tokens, self.positions, self.steps), state):
                buffer.copy_(value)
            self.at.zero_()
        return self.graphs[key]

    @torch.no_grad()
    def _step(self) -> None:
        tables = self.tables[:, : self.width]
        attend = PagedAttention(self.pages, tables, self.positions + 1)

        def finish(hidden: Tensor, weight: Tensor, _: Optional[Tensor]) -> Choice:
            uniform = self.uniforms(self.streams, self.steps)
            logits = product(hidden, weight.t())
            if self.masked:
                logits = logits.masked_fill(~self.allowed, MASKED)
            if self.cut:
                return choose_cut(logits, self.temperatures, uniform, self.top_k, self.top_p)
            return choose(logits, self.temperatures, uniform)

        choice = self.model(self.tokens, self.positions, attend, finish)
        kept = (self.chosen, self.logprobs, self.sampled_logprobs)
        self.advance(choice, kept, self.at, self.tokens, (self.positions, self.steps))


def advance(choice: Choice, kept: Sequence[Tensor], at: Tensor, tokens: Tensor, counts: Sequence[Tensor]) -> None:
    """Stores the chosen tokens, and advances to the next one."""
    for buffer, values in zip(kept, choice):
        buffer.index_copy_(0, at, values[None])
    tokens.copy_(choice.tokens)
    for count in (*counts, at):
        count.add_(1)
