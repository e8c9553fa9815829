"""The models of a server and the work done with them, the same on every rank."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable, Optional, Sequence

from .backlog import Backlog
from .constraints import Vocabulary
from .engine import Engine
from .engine_types import EngineOptions, Scored
from .errors import RequestError, unwritable
from .folders import Folders
from .futures import Future, Futures
from .messages import (
    Checkpoint,
    CreateModel,
    Forward,
    ForwardBackward,
    Limits,
    SampleBatch,
    Work,
    parse,
)
from .model_config import ModelConfig
from .ranks import Ranks
from .sampler import Job, Row
from .say import say_fault
from .sequences import Sequences
from .weights import AdamParams

Json = dict[str, Any]
# Idle ranks get a message this often, so that a dead one is noticed.
HEARTBEAT_S = 5.0
# How often the GPU is asked whether it has scored, while other work is waited for.
POLL_S = 0.002
SAMPLING = ("asample", "sample_batch")


@dataclass
class Service:
    """Executes the work in `futures`."""

    folders: Folders
    ranks: Ranks
    options: EngineOptions
    futures: Futures

    def __post_init__(self) -> None:
        self.models: dict[str, Engine] = {}
        self.backlog = Backlog(_forwarded)

    def lead(self) -> None:
        """The first rank's loop: takes work, sends it to the other ranks, and answers."""
        while True:
            self._score_if_idle()
            future = self.futures.next(HEARTBEAT_S if self.backlog.is_empty else POLL_S)
            if self.ranks.size > 1:
                self.ranks.broadcast(None if future is None else [future.operation, future.body])
            if future is None:
                continue
            if self._can_wait(future):
                self.backlog.add(future, self._engine_of(future))
                continue
            if future.operation not in SAMPLING or self.backlog.is_overdue:
                self.backlog.finish()
            self._answer(future)

    def _score_if_idle(self) -> None:
        """Works on the backlog as long as nothing else is to be done and there is something to begin."""
        while not self.futures.is_waiting and self.backlog.advance():
            pass

    def _can_wait(self, future: Future) -> bool:
        """Whether it belongs into the backlog. What is wrong with a request is answered in order."""
        work, engine = future.work, self._engine_of(future)
        if not isinstance(work, Forward) or not work.reference or engine is None:
            return False
        return engine.scores_beside_sampling and (not work.values or engine.model.value_head is not None)

    def _engine_of(self, future: Future) -> Optional[Engine]:
        return self.models.get(future.body.get("model_id") or future.body.get("sampling_session_id"))

    def follow(self) -> None:
        """The other ranks' loop."""
        while True:
            message = self.ranks.broadcast()
            if message is None:
                continue
            operation, body = message
            try:
                self.run(operation, body, parse(operation, body, self._limits(body)))
            except RequestError:
                # The first rank fails in the same way, and reports the error.
                continue

    def _limits(self, body: Json) -> Limits:
        engine = self.models.get(body.get("model_id") or body.get("sampling_session_id"))
        return Limits(0, 0) if engine is None else limits_of(engine.config)

    def _answer(self, future: Future) -> None:
        try:
            if future.operation in SAMPLING and self.ranks.size == 1:
                self._sample_on(future)
            else:
                future.succeed(self.run(future.operation, future.body, future.work))
        except RequestError as error:
            future.fail(error)
        except Exception as error:
            say_fault("a request", error)
            future.fail(RequestError(f"{type(error).__name__}: {error}"))
            if self.ranks.size > 1:
                # The other ranks may be waiting in the middle of the same work.
                raise

    def run(self, operation: str, body: Json, work: Work) -> Json:
        """Executes one piece of work and returns its result."""
        model_id = body.get("model_id") or body.get("sampling_session_id")
        if isinstance(work, CreateModel):
            return self._create(body["assigned_id"], work)
        engine = self.models.get(model_id)
        if engine is None:
            raise RequestError(f"no model has the id {str(model_id)[:80]!r}; call create_model first", 404)
        if operation == "unload_model":
            del self.models[model_id]
            memory = engine.memory
            del engine
            memory.release()
            return {"model_id": model_id, "type": "unload_model"}
        if isinstance(work, Forward):
            return self._forward(engine, work)
        if isinstance(work, ForwardBackward):
            return self._forward_backward(engine, work)
        if isinstance(work, AdamParams):
            return {"metrics": {"grad_norm": engine.step(work)}}
        if operation == "discard_gradients":
            return {"metrics": {"grad_norm": engine.discard()}}
        if isinstance(work, Vocabulary):
            engine.constrainer.use(work)
            return {}
        if operation == "snapshot_reference":
            engine.snapshot_reference()
            return {}
        if isinstance(work, SampleBatch):
            return self._samples(engine, operation, work, engine.sample(work.requests))
        if isinstance(work, Checkpoint):
            return self._checkpoint(engine, operation, work)
        raise RequestError(f"unknown operation {operation}", 404)

    def _create(self, model_id: str, work: CreateModel) -> Json:
        with self.ranks.together():
            folder = self.folders.base(work.base_model)
        try:
            self.models[model_id] = engine = Engine(
                folder,
                self.ranks,
                self.options,
                lora_rank=work.lora_rank,
                value_head=work.value_head,
                seed=work.seed,
            )
        except (ValueError, KeyError, OSError) as error:
            raise RequestError(f"cannot create the model: {error}") from error
        if folder != self.folders.model:
            engine.earlier = folder
        return {"model_id": model_id, "type": "create_model", "pawl": _describe(engine)}

    def _forward(self, engine: Engine, work: Forward) -> Json:
        self._check_values(engine, work.values)
        scored = engine.score(work.sequences, reference=work.reference, entropies=work.entropies, values=work.values)
        return _forwarded(work, scored)

    def _forward_backward(self, engine: Engine, work: ForwardBackward) -> Json:
        self._check_values(engine, work.objective.uses("value"))
        learned = engine.learn(work.sequences, work.objective)
        outputs = [{"logprobs": learned.logprobs[begin:end]} for begin, end in _spans(work.sequences)]
        metrics = {"loss:sum": learned.loss, **{f"{name}:sum": value for name, value in learned.metrics.items()}}
        return {"loss_fn_output_type": "logprobs", "loss_fn_outputs": outputs, "metrics": metrics}

    def _check_values(self, engine: Engine, wanted: bool) -> None:
        if wanted and engine.model.value_head is None:
            raise RequestError("values were requested, but the model has no value head; create it with value_head: true")

    def _samples(self, engine: Engine, operation: str, work: SampleBatch, rows: list[list[Row]]) -> Json:
        results = [{"sequences": [_sequence(row) for row in group]} for group in rows]
        if operation == "sample_batch":
            return {"results": results}
        if work.prompt_logprobs:
            results[0]["prompt_logprobs"] = self._prompt_logprobs(engine, work.requests[0].prompt)
        return {**results[0], "type": "sample"}

    def _prompt_logprobs(self, engine: Engine, prompt: Sequence[int]) -> list[Any]:
        ids = [int(token) for token in prompt]
        body = {"model_input": ids[:-1], "loss_fn_inputs": {"target_tokens": ids[1:]}}
        work = parse("forward", {"forward_input": {"data": [body]}}, limits_of(engine.config))
        assert isinstance(work, Forward)
        scored = engine.score(work.sequences, reference=False, entropies=False, values=False)
        return [None, *scored.logprobs.tolist()]

    def _sample_on(self, first: Future) -> None:
        """Samples, and lets sampling requests for the same model join meanwhile."""
        engine = self._engine_of(first)
        if engine is None:
            model_id = first.body.get("model_id") or first.body.get("sampling_session_id")
            first.fail(RequestError(f"no model has the id {str(model_id)[:80]!r}; call create_model first", 404))
            return
        for request in first.work.requests:
            engine.held(request)
        taken = [first]

        def joins(future: Future) -> bool:
            return future.operation in SAMPLING and self._engine_of(future) is engine and can_hold(future)

        def can_hold(future: Future) -> bool:
            try:
                for request in future.work.requests:
                    engine.held(request)
                return True
            except RequestError:
                return False

        def jobs_of(future: Future) -> Iterable[Job]:
            work = future.work
            results: list[list[Row]] = [[] for _ in work.requests]
            left = [len(work.requests)]

            def finished(i: int, rows: list[Row]) -> None:
                results[i] = rows
                left[0] -= 1
                if left[0] == 0:
                    future.succeed(self._samples(engine, future.operation, work, results))

            if not work.requests:
                future.succeed(self._samples(engine, future.operation, work, results))
            return [Job(engine.held(request), lambda rows, i=i: finished(i, rows)) for i, request in enumerate(work.requests)]

        pending = [first]

        def arrivals() -> Iterable[Job]:
            # Nobody joins while scoring has waited for too long.
            come = [] if self.backlog.is_overdue else self.futures.take_while(lambda future: joins(future) or self._can_wait(future))
            for future in come:
                if future.operation not in SAMPLING:
                    self.backlog.add(future, self._engine_of(future))
            arrived = [*pending, *(future for future in come if future.operation in SAMPLING)]
            pending.clear()
            taken.extend(arrived)
            return [job for future in arrived for job in jobs_of(future)]

        try:
            engine.sample((), arrivals)
        except Exception as error:
            if not isinstance(error, RequestError):
                say_fault("a request", error)
            failure = error if isinstance(error, RequestError) else RequestError(f"{type(error).__name__}: {error}")
            engine.sampler.reset()
            for future in taken:
                if not future.done.is_set():
                    future.fail(failure)

    def _checkpoint(self, engine: Engine, operation: str, work: Checkpoint) -> Json:
        if operation == "save_weights":
            folder = self.folders.confined(work.path)
            try:
                engine.save(folder, optimizer=work.optimizer, merged=work.merged)
            except OSError as error:
                raise RequestError(unwritable(folder, error), 507) from error
            return {"path": work.path, "type": operation}
        with self.ranks.together():
            folder = self.folders.existing(work.path)
        engine.load(folder, optimizer=work.optimizer)
        return {"path": work.path, "type": operation, "pawl": _describe(engine)}


def limits_of(config: ModelConfig) -> Limits:
    """Limits for requests to a model of this shape."""
    return Limits(config.vocabulary_size, config.max_context)


def _describe(engine: Engine) -> Json:
    return {
        "vocabulary_size": engine.config.vocabulary_size,
        "max_context": engine.config.max_context,
        "parameters": engine.parameters,
        "entropies": True,
        "values": engine.model.value_head is not None,
        "lora": engine.lora_rank > 0,
        "reference": True,
        "scores_beside_sampling": engine.scores_beside_sampling,
    }


def _forwarded(work: Forward, scored: Scored) -> Json:
    found = {"logprobs": scored.logprobs, "entropies": scored.entropies, "values": scored.values}
    outputs = [
        {name: flat[begin:end] for name, flat in found.items() if flat is not None}
        for begin, end in _spans(work.sequences)
    ]
    return {"loss_fn_output_type": "logprobs", "loss_fn_outputs": outputs, "metrics": {}}


def _spans(sequences: Sequences) -> list[tuple[int, int]]:
    starts = sequences.starts
    return list(zip(starts, starts[1:]))


def _sequence(row: Row) -> Json:
    return {
        "stop_reason": row.stop_reason,
        "tokens": row.tokens,
        "logprobs": row.logprobs,
        "sampled_logprobs": row.sampled_logprobs,
    }
