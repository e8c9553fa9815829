"""Checks on a few tokens that a model computes correctly, when it is opened.

Three things must agree: sequences packed into one batch and each alone, sampling and scoring, and,
for a model that transformers defines, its logits and ours. This reveals layers that mix tokens in a
way that packing or pages do not support, and kernels that do not fit a machine, before a run learns
from wrong numbers.
"""
from __future__ import annotations

import os
from pathlib import Path
from typing import Optional, Protocol, Sequence

import torch
from torch import Tensor

from .engine_types import EngineOptions, Scored
from .memory import Memory, say
from .model_config import ModelConfig
from .other_model import OtherModel
from .ranks import Ranks
from .recurrent_model import RecurrentModel
from .sampler import Row, SampleRequest
from .sequences import Sequences
from .sharding import unsharded
from .wave_sampler import AnySampler
from .weights import AnyModel

# Mean difference of log-probabilities, in nats, that rounding explains: about 1e-6 in 32 bits,
# about 1e-2 in 16 bits.
BOUNDS = {torch.float32: 1e-3, torch.bfloat16: 0.2}
NEW_TOKENS = 6
# The share of a GPU that a process may use under NVIDIA's MPS. At 40, PyTorch 2.11 computed NaN on an H200.
MPS_SHARE = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"


class Checked(Protocol):
    """The part of an engine that is checked."""

    folder: Path
    config: ModelConfig
    options: EngineOptions
    ranks: Ranks
    model: AnyModel
    memory: Memory
    sharded: bool

    def new_sampler(self, rows: Optional[int]) -> AnySampler: ...

    def score(self, sequences: Sequences, *, reference: bool, entropies: bool, values: bool) -> Scored: ...


def check_model(engine: Checked) -> None:
    """Raises if the model disagrees with itself, with the difference and the limit."""
    if engine.config.built_in:
        _check(engine)
        return
    try:
        _check(engine)
    except (TypeError, AttributeError, IndexError, RuntimeError) as error:
        # The code of transformers around attention may not work with ours at all.
        raise ValueError(f"{engine.folder.name}: transformers' model does not run here: {type(error).__name__}: {error}") from error


def _check(engine: Checked) -> None:
    context = engine.config.max_context
    if context < 2:
        return
    new_tokens = min(NEW_TOKENS, context // 2)
    if isinstance(engine.model, RecurrentModel) and not _masks_padding(engine, engine.model, new_tokens):
        say(f"{engine.folder.name}: its code lets padding into its state, so that only prompts of the same length are continued together")
        engine.model.masks_padding = False
    rows = _sample(engine, new_tokens)
    packed = _score(engine, rows)
    alone = [scores for row in rows for scores in _score(engine, [row])]
    _compare(engine, "packed into one batch and each alone", packed, alone)
    _compare(engine, "when they are sampled and when they are scored", [torch.tensor(row.logprobs) for row in rows], alone)
    if isinstance(engine.model, OtherModel):
        _compare(engine, "from transformers itself and here", [_theirs(engine.model, row) for row in rows], alone)


def _masks_padding(engine: Checked, model: RecurrentModel, new_tokens: int) -> bool:
    """Whether rows of different lengths, padded on the left, are sampled as they are scored: also when
    biases, which are all that padding can pass on, are no longer 0.
    """
    before = {p: p.data for name, p in model.named_parameters() if name.endswith("bias")}
    for p in before:
        p.data = torch.ones_like(p.data)
    rows = _sample(engine, new_tokens)
    gap = _gap([torch.tensor(row.logprobs) for row in rows], _score(engine, rows))
    for p, data in before.items():
        p.data = data
    return bool(gap <= BOUNDS[engine.options.dtype])


def _sample(engine: Checked, new_tokens: int) -> list[Row]:
    """A few tokens after prompts of different lengths, two per rank, so that each rank has
    something to pack.
    """
    room, generator = engine.config.max_context - new_tokens, torch.Generator().manual_seed(0)
    # Of a hybrid, one longer than the chunks in which its state is computed.
    shorter, longer = (40, 75) if engine.config.recurrent else (5, 11)
    lengths = [min(room, longer if i % 2 else shorter) for i in range(2 * engine.ranks.size)]
    prompts = [torch.randint(engine.config.vocabulary_size, (n,), generator=generator).tolist() for n in lengths]
    requests = [SampleRequest(tuple(prompt), 1, new_tokens, seed) for seed, prompt in enumerate(prompts)]
    # A separate sampler, so that the engine's own starts without any of this.
    sampler = engine.new_sampler(len(requests))
    with torch.no_grad(), unsharded(engine.model, engine.sharded):
        drawn = [[row.tokens, row.logprobs] for group in sampler.sample(requests) for row in group]
    del sampler
    engine.memory.release()
    # All ranks drew the same, up to rounding; all continue with those of the first.
    return [
        Row(request, 0, tokens=tokens, logprobs=logprobs)
        for request, (tokens, logprobs) in zip(requests, engine.ranks.broadcast(drawn))
    ]


def _score(engine: Checked, rows: Sequence[Row]) -> list[Tensor]:
    """Log-probabilities of the new tokens, all rows in one request."""
    all_ids = [torch.tensor([*row.request.prompt, *row.tokens]) for row in rows]
    wanted = [torch.arange(1, len(ids)) >= len(row.request.prompt) for row, ids in zip(rows, all_ids)]
    sequences = Sequences(
        lengths=tuple(len(ids) - 1 for ids in all_ids),
        tokens=torch.cat([ids[:-1] for ids in all_ids]),
        targets=torch.cat([ids[1:] for ids in all_ids]),
        mask=torch.cat(wanted),
        inputs={},
    )
    scored = engine.score(sequences, reference=False, entropies=False, values=False).logprobs
    return [part[mask] for part, mask in zip(scored.split(list(sequences.lengths)), wanted)]


def _theirs(model: OtherModel, row: Row) -> Tensor:
    ids = torch.tensor([*row.request.prompt, *row.tokens])
    logits = model.own_logits(ids[:-1].to(next(model.parameters()).device))
    logprobs = logits.float().log_softmax(-1).cpu().gather(1, ids[1:, None])[:, 0]
    return logprobs[len(row.request.prompt) - 1 :]


def _compare(engine: Checked, what: str, found: Sequence[Tensor], expected: Sequence[Tensor]) -> None:
    gap = _gap(found, expected)
    bound = BOUNDS[engine.options.dtype]
    if not torch.isfinite(gap):
        raise ValueError(f"{engine.folder.name}: log-probabilities {what} are not finite, although its weights are: this machine computes them wrongly; {_advice()}")
    if not float(gap) <= bound:
        raise ValueError(
            f"{engine.folder.name}: log-probabilities of the same tokens, {what}, are {float(gap):.3g} apart in the mean, "
            f"and {str(engine.options.dtype).removeprefix('torch.')} explains at most {bound}: this model cannot be computed correctly here; "
            "train another, Llama, Qwen or Mistral for example"
        )


def _gap(found: Sequence[Tensor], expected: Sequence[Tensor]) -> Tensor:
    return torch.stack([(a - b).abs().mean() for a, b in zip(found, expected)]).max()


def _advice() -> str:
    share = os.environ.get(MPS_SHARE)
    if share is not None:
        return f"{MPS_SHARE} is {share}, with which that was seen before: unset it and start the server again"
    return "another version of PyTorch or of the GPU's driver may help"
