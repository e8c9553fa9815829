"""A model with all its operations: sample, score, learn, save and load."""
from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, Optional, Sequence, TypeVar

import torch
from torch import Tensor

from .attention import PackedAttention
from .checkpoint import has_same_base, load_moments, load_weights, save_folder
from .config_file import read_config
from .constraints import Constrainer
from .engine_types import EngineOptions, Learned, Scored
from .errors import RequestError
from .expression import Objective
from .memory import Memory, say
from .micro_batch import batch_tokens_for
from .model import Model
from .other_model import OtherModel
from .output_head import Outcome, learn
from .ranks import Ranks
from .recurrent_model import RecurrentModel
from .sampler import Job, Row, SampleRequest, Sampler
from .scoring import Scoring
from .self_check import check_model
from .sequences import Batch, Sequences, divide, pack, with_masks
from .sharding import can_shard, shard, unsharded, without_backward
from .wave_sampler import AnySampler, WaveSampler
from .weights import AdamParams, AnyModel, Weights

T = TypeVar("T")
# Batches are not made smaller than this.
LEAST_TOKENS = 1024


class Engine:
    """One model. Every rank calls the same methods with the same arguments and gets the same results."""

    def __init__(
        self, folder: Path, ranks: Ranks, options: EngineOptions, *, lora_rank: int, value_head: bool, seed: int
    ) -> None:
        self.folder, self.ranks, self.options, self.lora_rank = folder, ranks, options, lora_rank
        with ranks.together():
            self.config = read_config(folder)
        self.sharded = ranks.size > 1 and can_shard() and self.config.built_in
        self.model: AnyModel = self._model(value_head)
        if self.sharded:
            shard(self.model, ranks, options.dtype)
        # Code of transformers around attention may synchronise with the host, which a CUDA graph
        # must not do.
        self.cuda_graphs = ranks.device.type == "cuda" and self.config.built_in and not self.sharded
        if options.compiled and self.config.built_in:
            self.model.compile()
        self.weights = Weights(self.model, ranks, self.sharded)
        with ranks.together():
            load_weights(self.weights, self.config, folder, seed, lora_rank)
        # The last checkpoint that these weights were read from or written to.
        self.earlier: Optional[Path] = None
        self.memory = Memory(ranks.device, options.memory)
        self.batch_tokens = options.batch_tokens or batch_tokens_for(self.config, self.parameters, ranks.device, options.checkpointing)
        # The largest forward and backward pass so far.
        self.learned_tokens = 0
        self.sampler = self.new_sampler(options.sample_rows)
        self.reference: Optional[dict[str, Tensor]] = None
        self.constrainer = Constrainer(self.config.vocabulary_size)
        # The reference's weights do not change, so on a GPU it need not wait for what else is computed there.
        on_gpu = ranks.device.type == "cuda" and not self.sharded
        self.scoring_stream = torch.cuda.Stream(ranks.device) if on_gpu else None
        if self.config.recurrent:
            say(
                f"{folder.name}: {self.config.recurrent} run through transformers' own code, without packing, pages and CUDA graphs: "
                "slower, and prompts that continue earlier ones are read anew"
            )
        check_model(self)

    def _model(self, value_head: bool) -> AnyModel:
        ranks, options = self.ranks, self.options
        # FSDP keeps 32-bit shards and casts them when it gathers; otherwise we cast.
        place: dict[str, Any] = {
            "device": torch.device("meta") if self.sharded else ranks.device,
            "dtype": torch.float32 if self.sharded else options.dtype,
            "value_head": value_head,
        }
        if self.config.built_in:
            return Model(self.config, lora_rank=self.lora_rank, checkpointing=options.checkpointing, **place)
        if options.checkpointing:
            raise ValueError("--activation-checkpointing is for the architectures that this server computes itself, and this is none of them: leave it out")
        kind = RecurrentModel if self.config.recurrent else OtherModel
        return kind(self.config, self.folder, lora_rank=self.lora_rank, **place)

    def new_sampler(self, rows: Optional[int]) -> AnySampler:
        """A sampler for at most so many rows at once."""
        if isinstance(self.model, RecurrentModel):
            return WaveSampler(self.model, self.memory, rows)
        return Sampler(self.model, self.memory, self.options.dtype, self.cuda_graphs, rows)

    @property
    def parameters(self) -> int:
        return sum(p.numel() for p in self.weights.parameters.values())

    def score(self, sequences: Sequences, *, reference: bool, entropies: bool, values: bool) -> Scored:
        """Log-probabilities of the target tokens, under the policy or the reference."""

        def attempt() -> Scored:
            scoring = self.scoring(sequences, reference=reference, entropies=entropies, values=values)
            with self._weights_of(reference), without_backward(self.model, self.sharded):
                while scoring.left:
                    scoring.advance()
            scored = scoring.result()
            found = {"logprobs": scored.logprobs, "entropies": scored.entropies, "values": scored.values}
            return Scored(**{name: self.ranks.sum(result) for name, result in found.items() if result is not None})

        return self._with_room(sequences, attempt)

    def scoring(self, sequences: Sequences, *, reference: bool, entropies: bool, values: bool) -> Scoring:
        """The same as work to advance batch by batch: with `advance`, if it is under the reference."""
        if reference:
            self._require_reference()
        sequences = with_masks(sequences, self.constrainer)
        batches = divide(sequences.lengths, self.batch_tokens, self.ranks.size)[self.ranks.rank :: self.ranks.size]
        stream = self.scoring_stream if reference else None
        return Scoring(self.model, sequences, batches, self.ranks.device, entropies=entropies, values=values, stream=stream)

    def advance(self, scoring: Scoring) -> None:
        """Begins the next batch of a scoring under the reference."""
        with self._weights_of(True):
            scoring.advance()

    @property
    def scores_beside_sampling(self) -> bool:
        """Whether scoring under the reference can be advanced while rows are sampled: ranks work in step."""
        return self.ranks.size == 1

    def learn(self, sequences: Sequences, objective: Objective) -> Learned:
        """One forward and one backward pass; gradients accumulate."""
        self.sampler.make_room()
        sequences = with_masks(sequences, self.constrainer)
        before = self._gradients_before(sequences)

        def attempt() -> Learned:
            try:
                return self._learn(sequences, objective)
            except torch.cuda.OutOfMemoryError as error:
                self.weights.restore(before or {})
                if before is None:
                    raise RequestError(
                        "no memory for learning, although as much was learned at once before; the gradient was cleared "
                        "and the weights are unchanged: end other processes on this GPU, and repeat the update",
                        507,
                    ) from error
                raise

        return self._with_room(sequences, attempt)

    def _gradients_before(self, sequences: Sequences) -> Optional[dict[str, Tensor]]:
        """A copy of the gradient so far, to go back to if memory is short. None if there is a gradient
        and no copy of it: one costs time, and a pass no larger than one before rarely fails.
        """
        largest = min(self.batch_tokens, sum(sequences.lengths))
        if self.weights.gradients and largest <= self.learned_tokens:
            return None
        return self.weights.copied_gradients()

    def _learn(self, sequences: Sequences, objective: Objective) -> Learned:
        device = self.ranks.device
        metrics = torch.zeros(len(objective.metrics), dtype=torch.float64, device=device)
        logprobs, losses = torch.zeros(len(sequences.tokens)), torch.zeros(len(sequences.tokens))
        found: list[tuple[Tensor, Tensor, Tensor]] = []
        for batch in self._batches(sequences):
            outcome = Outcome(
                *self.model(
                    batch.ids,
                    batch.positions,
                    PackedAttention(batch.lengths, device),
                    lambda hidden, weight, head: tuple(
                        learn(
                            hidden.index_select(0, batch.rows), weight, head, batch.targets, batch.temperatures, batch.inputs, objective, batch.masks
                        )
                    ),
                )
            )
            # FSDP averages gradients over ranks; ours are sums.
            (outcome.loss * (self.ranks.size if self.sharded else 1)).backward()
            metrics += outcome.metrics
            found.append((batch.places, outcome.logprobs, outcome.losses))
            self.learned_tokens = max(self.learned_tokens, len(batch.ids))
        # Checked only now, so that the GPU never waits for the host between batches.
        for places, *values in found:
            logprobs[places], losses[places] = (x.cpu() for x in values)
        self.ranks.sum(losses)
        if not torch.isfinite(losses).all():
            self.weights.clear()
            raise RequestError(f"{_place_of(losses, sequences)}; the gradient was cleared and the weights are unchanged")
        totals = self.ranks.sum(metrics.cpu()).tolist()
        return Learned(float(losses.double().sum()), dict(zip(objective.metrics, totals)), self.ranks.sum(logprobs))

    def step(self, params: AdamParams) -> float:
        """Applies the accumulated gradient; returns its norm."""
        self.sampler.forget()
        return self.weights.step(params)

    def discard(self) -> float:
        """Discards the accumulated gradient; returns its norm."""
        norm = self.weights.gradient_norm()
        self.weights.clear()
        return norm

    def snapshot_reference(self) -> None:
        """Freezes a copy of the trained weights; with an adapter, a copy of the adapter alone."""
        self.reference = self.weights.snapshot()
        self._settle()

    def sample(self, requests: Sequence[SampleRequest], arrivals: Callable[[], Iterable[Job]] = tuple) -> list[list[Row]]:
        """Continues prompts with the current weights, split over the ranks."""
        requests = [self.held(request) for request in requests]
        mine = range(self.ranks.rank, len(requests), self.ranks.size)
        with torch.no_grad(), unsharded(self.model, self.sharded):
            rows = self.sampler.sample([requests[i] for i in mine], arrivals)
        if self.ranks.size == 1:
            return rows
        fields = [[(row.tokens, row.logprobs, row.sampled_logprobs, row.stop_reason) for row in group] for group in rows]
        results: list[list[Row]] = [[] for _ in requests]
        for rank, groups in enumerate(self.ranks.gather(fields)):
            for i, group in zip(range(rank, len(requests), self.ranks.size), groups):
                for index, (tokens, logprobs, sampled, reason) in enumerate(group):
                    row = Row(requests[i], index, tokens=tokens, logprobs=logprobs, sampled_logprobs=sampled)
                    row.stop_reason = reason
                    results[i].append(row)
        return results

    def held(self, request: SampleRequest) -> SampleRequest:
        """The request with the masks of what it is held to."""
        return request if request.constraint is None else replace(request, masks=self.constrainer.masks(request.constraint))

    def save(self, folder: Path, *, optimizer: bool, merged: bool = False) -> None:
        """Writes a checkpoint folder; if `merged`, an adapter is merged into the weights."""
        if merged and optimizer:
            raise RequestError("merged weights have no optimiser state: save them with optimizer: false")
        # A run that resumes from here keeps no text either.
        self.sampler.forget()
        save_folder(
            self.weights, self.ranks, self.folder, folder, optimizer=optimizer, lora_rank=self.lora_rank, merged=merged, earlier=self.earlier
        )
        if not merged:
            self.earlier = folder

    def load(self, folder: Path, *, optimizer: bool) -> None:
        """Loads a checkpoint folder whose model has the same shape."""
        try:
            with self.ranks.together():
                if read_config(folder) != self.config:
                    raise ValueError(f"{folder.name}: its model has a different shape than this one")
            with self.ranks.together():
                if self.lora_rank and self.reference is not None:
                    # The reference is an adapter too, and means nothing with other base weights.
                    if not has_same_base(self.weights, self.config, folder, self.lora_rank):
                        raise ValueError(f"{folder.name}: its base weights differ from those of the reference; create a new model from it")
                load_weights(self.weights, self.config, folder, 0, self.lora_rank)
                self.earlier = folder
                if optimizer:
                    load_moments(self.weights, folder)
        except (ValueError, OSError, KeyError) as error:
            raise RequestError(f"cannot load: {error}") from error
        self.weights.clear()
        self.sampler.forget()
        self._settle()

    def _settle(self) -> None:
        """Waits until weights are written that another stream will read."""
        if self.scoring_stream is not None:
            torch.cuda.synchronize(self.ranks.device)

    def _with_room(self, sequences: Sequences, attempt: Callable[[], T]) -> T:
        """Tries again if there is no memory: without the sampler's pages, then with smaller batches."""
        while True:
            try:
                return attempt()
            except torch.cuda.OutOfMemoryError as error:
                # Other ranks may be waiting in the middle of the same work.
                if self.ranks.size > 1:
                    raise
                failed = str(error).split(". ")[0]
            longest = max(sequences.lengths)
            if self.sampler.give_back():
                say("no memory for learning: giving up the text kept for sampling")
            elif self.batch_tokens > max(longest, LEAST_TOKENS):
                self.batch_tokens = max(longest, LEAST_TOKENS, self.batch_tokens // 2)
                say(f"no memory for learning: going on with batches of {self.batch_tokens} tokens")
                self.memory.release()
            else:
                self.memory.release()
                raise RequestError(
                    f"no memory for a batch of {self.batch_tokens} tokens ({failed}); start the server with --activation-checkpointing, "
                    "shorten the sequences, or end other processes on this GPU",
                    507,
                )

    def _batches(self, sequences: Sequences) -> Iterator[Batch]:
        groups = divide(sequences.lengths, self.batch_tokens, self.ranks.size)
        for chosen in groups[self.ranks.rank :: self.ranks.size]:
            yield pack(sequences, chosen, self.ranks.device, self.model.block)

    @contextmanager
    def _weights_of(self, reference: bool) -> Iterator[None]:
        if not reference:
            yield
            return
        policy = self.weights.exchange(self._require_reference())
        try:
            yield
        finally:
            self.weights.exchange(policy)

    def _require_reference(self) -> dict[str, Tensor]:
        if self.reference is None:
            raise RequestError("there is no reference yet; call snapshot_reference first")
        return self.reference


def _place_of(losses: Tensor, sequences: Sequences) -> str:
    """Names the first token whose loss is not finite; the target of entry e is token e + 1 of its sequence."""
    entry = int((~torch.isfinite(losses)).nonzero()[0])
    sequence = max(i for i, start in enumerate(sequences.starts[:-1]) if start <= entry)
    token = entry - sequences.starts[sequence] + 1
    return f"the loss at token {token} of sequence {sequence} is {float(losses[entry])}; expected a finite number"
