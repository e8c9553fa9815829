"""Sampling with continuous batching: rows join when there is space and leave when they stop.

The samples of one prompt share its prefill and its full pages; only the last page, which each
sample fills with its own tokens, is copied. If a later prompt will continue from a row, the row's
full pages are kept, and only what is new is prefilled then.
"""
from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Callable, Iterable, Optional, Sequence, Union

import torch
from torch import Tensor

from .attention import PackedAttention
from .choose import Choice, choose, choose_cut, stream_of, uniforms
from .constraints import MASKED, Automaton, TokenMasks
from .decoder import STEPS, Decoder, RowState
from .errors import RequestError
from .extending_attention import ExtendingAttention, slots_of, spread
from .memory import Memory, say
from .model import Model
from .output_head import product
from .page_pool import PagePool, Text, longer_text, text_of
from .pages import PAGE, no_pages, page_bytes, page_tables, pages_for
from .sequences import send

# Default maximum number of rows decoded at once.
MAX_ROWS = {"cuda": 256, "cpu": 64}
# Pages of fewer bytes are kept while learning.
FEW_BYTES = 2**30
MORE_MEMORY = "end other processes on this GPU, or raise the server's --memory if it has one"
# Prompt tokens prefilled at a time.
PREFILL_TOKENS = {"cuda": 32_768, "cpu": 4096}


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
    # A later prompt will continue from this one and its new tokens.
    continued: bool = False
    # What the tokens are held to, of which as many as `begun` at the end of the prompt are the first;
    # and its masks, which the engine makes.
    constraint: Optional[Automaton] = None
    begun: int = 0
    masks: Optional[TokenMasks] = None


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
    # How far it has come in what it is held to.
    held: int = 0

    def __post_init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        masks, begun = self.request.masks, self.request.begun
        if masks is not None:
            self.held = masks.after([int(token) for token in self.request.prompt[len(self.request.prompt) - begun :]])

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
        if self.request.masks is not None:
            for token in self.tokens[before:]:
                self.held = self.request.masks.next(self.held, token)
        self.logprobs += logprobs[:kept]
        self.sampled_logprobs += sampled_logprobs[:kept]

    def clear(self) -> None:
        """Begins anew."""
        self.tokens, self.logprobs, self.sampled_logprobs = [], [], []
        self.stop_reason = ""
        self._begin()

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
    prompt: Tensor
    # The prompt, if it may continue kept text.
    text: Optional[Text]
    rows: list[Row] = field(default_factory=list)
    # Pages that all rows use: those found, and if there are several rows, the prompt's other full ones.
    shared: list[int] = field(default_factory=list)
    # Tokens of the prompt whose keys and values were found.
    known: int = 0

    @property
    def is_done(self) -> bool:
        return all(row.stop_reason for row in self.rows)


class Sampler:
    """Samples from a model with its current weights."""

    def __init__(
        self, model: Model, memory: Memory, dtype: torch.dtype, cuda_graphs: bool, rows: Optional[int] = None
    ) -> None:
        self.model, self.memory, self.device, self.dtype = model, memory, memory.device, dtype
        self.cuda_graphs = cuda_graphs
        self.most_rows = rows or MAX_ROWS[self.device.type]
        self.reset()

    def reset(self) -> None:
        """Clears all rows and pages, and gives their memory back."""
        self.decoders: dict[int, Decoder] = {}
        pages = no_pages(self.model.config, self.device, self.dtype)
        self.pool = PagePool(pages, self._most_pages)
        self.memory.release()

    def give_back(self) -> bool:
        """The same, if there are any pages."""
        if self.pool.pages.count == 0:
            return False
        self.reset()
        return True

    def make_room(self) -> None:
        """Gives the memory of many pages back between calls; the next call takes as much at once."""
        count = self.pool.pages.count
        if count * page_bytes(self.model.config, self.dtype) > FEW_BYTES:
            self.reset()
            self.pool.expected = count

    def forget(self) -> None:
        """Forgets the text that was kept, because the weights have changed."""
        self.pool.forget()

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
            if not running:
                raise RequestError(self._lacking(waiting[0]), 507)
            self._release(running)
            running = [part for part in running if not part.is_done]
            active = _active(running)
            if active:
                self._decode(active, changed=active != rows)
            rows = active

    def _release(self, running: Sequence[Part]) -> None:
        """Frees or keeps the pages of ended rows, and returns finished jobs."""
        for part in running:
            for row in part.rows:
                if row.stop_reason and row.own:
                    if part.text is not None:
                        # The last token was chosen and not read.
                        text = longer_text(part.text, row.tokens[:-1])
                        self.pool.keep(text, row.pages)
                        self.pool.keep_last(text, row.pages[len(text.digests)])
                    self.pool.give(row.own)
                    row.own = []
            if part.is_done:
                self.pool.give(part.shared)
                if part.job.is_done:
                    part.job.finished(part.job.rows)

    def _parts(self, job: Job) -> list[Part]:
        """Splits a job into parts that fit on their own."""
        request = job.request
        prompt = torch.as_tensor(request.prompt, dtype=torch.int64)
        shared, own = self._needs(request)
        most = self.most_rows
        if shared + min(most, request.count) * own > self.pool.pages.count:
            most = min(most, max(1, (self.pool.most - shared) // own))
        text = text_of(prompt) if request.continued else None
        return [Part(job, range(i, min(i + most, request.count)), prompt, text) for i in range(0, request.count, most)]

    def _needs(self, request: SampleRequest) -> tuple[int, int]:
        """The number of pages that all rows of a request share, and of those each row has for
        itself.
        """
        length = len(request.prompt)
        # Decoding may run past the last token until the host checks.
        total = pages_for(length + request.max_tokens + STEPS[self.device.type])
        shared = length // PAGE if request.count > 1 else 0
        return shared, total - shared

    def _most_pages(self, count: int) -> int:
        """The number of pages there may be if there are `count`."""
        size = page_bytes(self.model.config, self.dtype)
        most = count + self.memory.for_more_pages(count * size) // size
        # A CPU's bound is for small models; a row of full length must fit in any case.
        return most if self.device.type == "cuda" else max(most, 2 * pages_for(self.model.config.max_context + PAGE))

    def _admit(self, waiting: deque[Part], running: Sequence[Row]) -> list[Part]:
        """Takes parts that fit in addition to what is running, by rows, pages and prompt tokens."""
        admitted: list[Part] = []
        active, tokens = len(running), 0
        while waiting:
            part = waiting[0]
            count = len(part.indices)
            # At least one token must be read, to choose the next.
            found, last, known = ([], None, 0) if part.text is None else self.pool.find(part.text, len(part.prompt) - 1)
            unread = len(part.prompt) - known
            if active + count > self.most_rows or (admitted and tokens + unread > PREFILL_TOKENS[self.device.type]):
                break
            shared, own = self._needs(part.job.request)
            own -= max(0, len(found) - shared)
            shared = max(shared, len(found))
            begun = [*found, *([] if last is None else [last])]
            self.pool.share(begun)
            if not self.pool.reserve(shared + count * own - len(begun)):
                self.pool.give(begun)
                break
            waiting.popleft()
            if last is not None:
                self.pool.claim(last)
            part.known = known
            part.shared = [*begun[:shared], *self.pool.take(max(0, shared - len(begun)))]
            first = begun[shared:]
            for index in part.indices:
                mine = [*first, *self.pool.take(own - len(first))]
                part.rows.append(Row(part.job.request, index, [*part.shared, *mine], mine))
                first = []
            part.job.rows.extend(part.rows)
            admitted.append(part)
            active += count
            tokens += unread
        return admitted

    def _lacking(self, part: Part) -> str:
        shared, own = self._needs(part.job.request)
        size = page_bytes(self.model.config, self.dtype)
        needed, most = (pages * size / 2**30 for pages in (shared + own, self.pool.most))
        return (
            f"a prompt of {len(part.prompt)} tokens and {part.job.request.max_tokens} new ones need {needed:.2f} GiB of memory for keys and values, "
            f"and {most:.2f} GiB can be had; lower maxTokens, {MORE_MEMORY}"
        )

    def _read_prompts(self, parts: Sequence[Part]) -> None:
        """Prefills prompts and chooses the first token of each row; in halves if memory is short."""
        try:
            return self._read_together(parts)
        except torch.cuda.OutOfMemoryError:
            # Tried again below: in here, the error still holds the tensors of the pass that failed.
            pass
        self.memory.release()
        if len(parts) == 1:
            raise RequestError(f"no memory to prefill a prompt of {len(parts[0].prompt)} tokens; {MORE_MEMORY}", 507)
        say(f"no memory to prefill {len(parts)} prompts at once: prefilling half as many")
        half = len(parts) // 2
        self._read_prompts(parts[:half])
        self._read_prompts(parts[half:])

    @torch.no_grad()
    def _read_together(self, parts: Sequence[Part]) -> None:
        """Prefills what is not known of all prompts, packed, and chooses the first token of each row."""
        pages = self.pool.pages
        new = [len(part.prompt) - part.known for part in parts]
        ids = torch.cat([part.prompt[part.known :] for part in parts]).to(self.device)
        tables = send(page_tables([part.rows[0].pages for part in parts]), self.device)
        if any(part.known for part in parts):
            attend = ExtendingAttention(pages, tables, [len(part.prompt) for part in parts], new)
            positions = attend.positions
        else:
            owners, positions = spread(new, [0] * len(new), self.device)
            slots = slots_of(tables, owners, positions)
            attention = PackedAttention(new, self.device)

            def attend(layer: int, q: Tensor, k: Tensor, v: Tensor, window: Optional[int] = None) -> Tensor:
                pages.write(layer, slots, k, v)
                return attention(layer, q, k, v, window)

        rows = [row for part in parts for row in part.rows]
        readers = torch.tensor([i for i, part in enumerate(parts) for _ in part.rows])
        last = (torch.tensor(new).cumsum(0) - 1)[readers].to(self.device)

        def finish(hidden: Tensor, weight: Tensor, _: Optional[Tensor]) -> Choice:
            return next_tokens(product(hidden[last], weight.t()), rows)

        choice = self.model(ids, positions, attend, finish)
        for part in parts:
            if part.text is not None:
                self.pool.keep(part.text, part.rows[0].pages)
        # The last page of a prompt belongs to its first sample; the others get copies.
        partial = [part for part in parts if len(part.prompt) % PAGE]
        copies = [(part.rows[0].own[0], row.own[0]) for part in partial for row in part.rows[1:]]
        pages.copy([source for source, _ in copies], [destination for _, destination in copies])
        for row, *chosen in zip(rows, *(x[:, None].tolist() for x in choice)):
            row.extend(*chosen)

    def _decode(self, rows: Sequence[Row], changed: bool) -> None:
        """Chooses the next tokens of all rows; tries once more if memory is short."""
        chosen = None
        try:
            chosen = self._run_decoder(rows, changed)
        except torch.cuda.OutOfMemoryError:
            pass
        if chosen is None:
            say("no memory to decode: giving back what is not in use, and trying again")
            # The rows are as they were before: nothing was taken over from the steps that ran.
            self.decoders = {}
            self.memory.release()
            chosen = self._run_decoder(rows, True)
        for row, *new in zip(rows, *(x.tolist() for x in chosen)):
            row.extend(*new)

    def _run_decoder(self, rows: Sequence[Row], changed: bool) -> Choice:
        size = 8
        while size < len(rows):
            size *= 2
        if size in self.decoders and self.decoders[size].is_stale:
            self.decoders = {}
        if size not in self.decoders:
            self.decoders[size] = Decoder(self.model, self.pool.pages, size, self.cuda_graphs)
            changed = True
        decoder = self.decoders[size]
        # A mask depends on the token before, so that the host is asked after every one.
        is_held = any(row.request.masks is not None for row in rows)
        if changed or is_held != decoder.masked:
            decoder.set_rows([row.state() for row in rows])
        decoder.masked = is_held
        if is_held:
            decoder.set_allowed(allowed_tokens(rows, self.model.config.vocabulary_size))
            return decoder.run(1)
        return decoder.run(max(row.request.max_tokens - len(row.tokens) for row in rows))


def allowed_tokens(rows: Sequence[Row], size: int) -> Tensor:
    """Which tokens each row may take next: all of them for rows that are held to nothing."""
    allowed = torch.ones(len(rows), size, dtype=torch.bool)
    for i, row in enumerate(rows):
        if row.request.masks is not None:
            allowed[i] = row.request.masks.allowed(row.held)
    return allowed


def next_tokens(logits: Tensor, rows: Sequence[Row]) -> Choice:
    """The next token of each row, drawn from its own stream."""
    if any(row.request.masks is not None for row in rows):
        allowed = allowed_tokens(rows, logits.shape[1]).to(logits.device)
        logits = logits.masked_fill(~allowed, MASKED)
    tensor = lambda values, dtype: torch.tensor(values, dtype=dtype, device=logits.device)
    requests = [row.request for row in rows]
    streams = tensor([stream_of(row.request.seed, row.index) for row in rows], torch.int64)
    uniform = uniforms(streams, tensor([len(row.tokens) for row in rows], torch.int64))
    temperatures = tensor([request.temperature for request in requests], torch.float32)
    if all(request.top_k == 0 and request.top_p >= 1 for request in requests):
        return choose(logits, temperatures, uniform)
    top_k = tensor([request.top_k for request in requests], torch.int64)
    top_p = tensor([request.top_p for request in requests], torch.float32)
    return choose_cut(logits, temperatures, uniform, top_k, top_p)


def _active(running: Sequence[Part]) -> list[Row]:
    """The rows that have not ended."""
    return [row for part in running for row in part.rows if not row.stop_reason]
