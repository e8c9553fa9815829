"""The other side of gpu_bench.py: plain transformers, used as well as a careful user would, and as
many do.

Right padding with causal attention needs no mask, and only hidden states that predict a target go
through the output matrix; samples of one prompt share its prefill. Comparisons that favour us are
included too, under their own names.
"""
from __future__ import annotations

import gc
import time
from dataclasses import dataclass
from typing import Any, Callable, Iterator

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

Json = dict[str, Any]
GPU = torch.cuda.is_available()
# Tokens in a batch, including padding: as many as our engine takes.
BATCH_TOKENS = 16_384


def timed(work: Callable[[], object], repeat: int = 3, warm: int = 1) -> float:
    """The median seconds of some repetitions, after warming up."""
    for _ in range(warm):
        work()
    seconds = []
    for _ in range(repeat):
        synchronize()
        begin = time.perf_counter()
        work()
        synchronize()
        seconds.append(time.perf_counter() - begin)
    return sorted(seconds)[len(seconds) // 2]


def synchronize() -> None:
    if GPU:
        torch.cuda.synchronize()


def peak_gib(work: Callable[[], object]) -> float:
    if not GPU:
        return 0.0
    torch.cuda.reset_peak_memory_stats()
    work()
    return torch.cuda.max_memory_allocated() / 2**30


def free(*_: object) -> None:
    gc.collect()
    if GPU:
        torch.cuda.empty_cache()


def plain_model(shape: Json, dtype: torch.dtype) -> Any:
    from transformers import Qwen2Config, Qwen2ForCausalLM

    with torch.device("cuda" if GPU else "cpu"):
        model = Qwen2ForCausalLM(Qwen2Config(**shape))
    return model.to(dtype)


@dataclass(frozen=True)
class Batch:
    """A batch of sequences, padded on the right: tokens, which are real, and which predict a
    target.
    """

    ids: Tensor
    real: Tensor
    targets: Tensor


def make_batches(lengths: list[int], masks: list[Tensor], vocabulary: int, rows: int | None = None) -> list[Batch]:
    """Batches of sequences of similar length: of the given number of rows, or as many as fit into
    BATCH_TOKENS.
    """
    device = "cuda" if GPU else "cpu"
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])

    def batch(places: list[int]) -> Batch:
        longest = max(lengths[i] for i in places)
        real = torch.arange(longest)[None] < torch.tensor([lengths[i] for i in places])[:, None]
        targets = torch.zeros_like(real)
        for row, i in enumerate(places):
            targets[row, : lengths[i]] = masks[i]
        ids = torch.randint(vocabulary, (len(places), longest))
        return Batch(ids.to(device), real.to(device), targets.to(device))

    return [batch(places) for places in _cut(order, lengths, rows)]


def _cut(order: list[int], lengths: list[int], rows: int | None) -> Iterator[list[int]]:
    places: list[int] = []
    for i in order:
        full = len(places) == rows if rows is not None else (len(places) + 1) * lengths[i] > BATCH_TOKENS
        if places and full:
            yield places
            places = []
        places.append(i)
    yield places


def train(shape: Json, batches: list[Batch], careful: bool, compiled: bool = False) -> Json:
    """A plain loop with one optimiser step: bfloat16 autocast, 32-bit weights, fused AdamW.

    Careful: no mask, logits of targets only. Otherwise as with `labels` and `attention_mask`: all
    logits, and a mask.
    """
    model = plain_model(shape, torch.float32).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)
    forward = torch.compile(model.model) if compiled else model.model

    def loss_of(batch: Batch) -> Tensor:
        if not careful:
            mask = None if bool(batch.real.all()) else batch.real.long()
            labels = batch.ids.masked_fill(~batch.real, -100)
            return model(input_ids=batch.ids, attention_mask=mask, labels=labels, use_cache=False).loss
        hidden = forward(input_ids=batch.ids, use_cache=False).last_hidden_state
        # The token after each position; for the last one any token will do, because it costs the
        # same.
        wanted = batch.ids.roll(-1, 1)[batch.targets]
        return cross_entropy(model.lm_head(hidden[batch.targets]).float(), wanted)

    def work() -> None:
        for batch in batches:
            with torch.autocast("cuda" if GPU else "cpu", torch.bfloat16, enabled=GPU):
                loss = loss_of(batch)
            loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    seconds = timed(work, warm=2 if compiled else 1)
    gib = round(peak_gib(work), 1)
    real = sum(int(batch.real.sum()) for batch in batches)
    padding = 1 - real / sum(batch.ids.numel() for batch in batches)
    del model, optimizer, forward
    free()
    return {"tokens_per_s": round(real / seconds), "gib": gib, "padding": round(padding, 4)}


def generate(shape: Json, prompts: int, count: int, prompt: int, lengths: list[int], compiled: bool = False) -> list[int]:
    """Tokens per second of `transformers.generate` for each number of new tokens; samples of a
    prompt share its prefill.

    Compiled: a static cache, which transformers decodes with a compiled step on a GPU.
    """
    model = plain_model(shape, torch.bfloat16 if GPU else torch.float32).eval()
    ids = torch.randint(shape["vocab_size"], (prompts, prompt), device=model.device)
    rows = ids.repeat_interleave(count, 0)

    @torch.no_grad()
    def sample(new: int) -> None:
        more: Json = {"cache_implementation": "static"} if compiled else {}
        if count > 1:
            cache = model.model(ids[:, :-1], use_cache=True).past_key_values
            cache.batch_repeat_interleave(count)
            more = {"past_key_values": cache}
        model.generate(
            rows, attention_mask=torch.ones_like(rows), do_sample=True, max_new_tokens=new, min_new_tokens=new, pad_token_id=0, **more
        )

    rates = []
    for new in lengths:
        # A compiled step is compiled again for every length of its cache; otherwise a few tokens
        # warm it up.
        sample(new if compiled else 4)
        rates.append(round(len(rows) * new / timed(lambda: sample(new), repeat=1, warm=0)))
    del model
    free()
    return rates
