"""Requests that clients may make, checked field by field before anything is computed.

Every error says where it is, what was expected and what came.
"""
from __future__ import annotations

import base64
import binascii
import hashlib
import math
import secrets
import zlib
from dataclasses import dataclass
from typing import Any, Callable, Mapping, Optional, Sequence, Union

import torch
from torch import Tensor

from .errors import RequestError
from .constraints import Automaton, Vocabulary
from .expression import Objective, parse_objective
from .losses import standard_objective
from .sampler import SampleRequest
from .sequences import Sequences
from .weights import AdamParams

Json = dict[str, Any]
# What loss_fn_inputs contain besides the inputs of an objective.
RESERVED = {"target_tokens", "mask", "temperatures"}
# New tokens of one call, which are all kept until they are fetched.
MAX_NEW_TOKENS = 2**25
# States of an automaton, and bytes of all tokens.
MAX_STATES = 2**16
MAX_TOKEN_BYTES = 2**26
DTYPES = {"float32": torch.float32, "int64": torch.int64, "int32": torch.int32}


@dataclass(frozen=True)
class Limits:
    """What token ids and lengths are checked against."""

    vocabulary_size: int
    max_context: int


@dataclass(frozen=True)
class CreateModel:
    base_model: str
    lora_rank: int
    value_head: bool
    seed: int


@dataclass(frozen=True)
class Forward:
    sequences: Sequences
    reference: bool
    entropies: bool
    values: bool


@dataclass(frozen=True)
class ForwardBackward:
    sequences: Sequences
    objective: Objective


@dataclass(frozen=True)
class SampleBatch:
    requests: tuple[SampleRequest, ...]
    prompt_logprobs: bool = False


@dataclass(frozen=True)
class Checkpoint:
    path: str
    optimizer: bool
    merged: bool


Work = Union[CreateModel, Forward, ForwardBackward, AdamParams, SampleBatch, Checkpoint, Vocabulary, None]


def parse(operation: str, body: Json, limits: Limits) -> Work:
    """The work described by a request's body."""
    return PARSERS[operation](body, limits)


def _create_model(body: Json, limits: Limits) -> CreateModel:
    lora = _optional(body, "lora_config", dict) or {}
    rank = _number(lora.get("rank", 0), "lora_config.rank", 0, 4096, whole=True)
    seed = lora.get("seed", body.get("seed", 0))
    whole_seed = int(_number(seed or 0, "seed", -(2**53), 2**53, whole=True))
    return CreateModel(_required(body, "base_model", str), int(rank), bool(body.get("value_head")), whole_seed)


def _forward(body: Json, limits: Limits) -> Forward:
    given = _required(body, "forward_input", dict)
    config = _optional(given, "loss_fn_config", dict) or {}
    weights = config.get("weights", "policy")
    if weights not in ("policy", "reference"):
        raise RequestError(f'loss_fn_config.weights: expected "policy" or "reference", found {str(weights)[:60]!r}')
    return Forward(
        _sequences(given, (), limits), weights == "reference", bool(config.get("entropies")), bool(config.get("values"))
    )


def _forward_backward(body: Json, limits: Limits) -> ForwardBackward:
    given = _required(body, "forward_backward_input", dict)
    loss = _required(given, "loss_fn", str)
    config = _optional(given, "loss_fn_config", dict) or {}
    objective = parse_objective(config.get("objective")) if loss == "objective" else standard_objective(loss, config)
    return ForwardBackward(_sequences(given, objective.inputs, limits), objective)


def _adam(body: Json, limits: Limits) -> AdamParams:
    given = _required(body, "adam_params", dict)
    defaults = AdamParams(0.0)
    number = lambda name, label, low, high, fallback: _number(given.get(name, fallback), label, low, high)
    clip = given.get("grad_clip_norm")
    return AdamParams(
        learning_rate=number("learning_rate", "learningRate", 0, 100, None),
        beta1=number("beta1", "beta1", 0, 0.999999, defaults.beta1),
        beta2=number("beta2", "beta2", 0, 0.9999999, defaults.beta2),
        eps=number("eps", "eps", 1e-16, 1, defaults.eps),
        weight_decay=number("weight_decay", "weightDecay", 0, 1e3, defaults.weight_decay),
        # Tinker's clients send 0 for no clipping.
        grad_clip_norm=None if clip in (None, 0) else _number(clip, "gradClipNorm", 1e-12, 1e300),
    )


def _sample_batch(body: Json, limits: Limits) -> SampleBatch:
    requests = _required(body, "requests", list)
    automata = _automata(body)
    return _bounded(SampleBatch(tuple(_sample(request, f"request {i}", limits, automata) for i, request in enumerate(requests))))


def _asample(body: Json, limits: Limits) -> SampleBatch:
    return _bounded(SampleBatch((_sample(body, "request 0", limits),), bool(body.get("prompt_logprobs"))))


def _bounded(work: SampleBatch) -> SampleBatch:
    tokens = sum(request.count * request.max_tokens for request in work.requests)
    if tokens > MAX_NEW_TOKENS:
        raise RequestError(f"up to {tokens} new tokens were requested at once; at most {MAX_NEW_TOKENS}: send fewer requests, or lower num_samples or maxTokens")
    return work


def _sample(request: object, where: str, limits: Limits, automata: Sequence[Automaton] = ()) -> SampleRequest:
    if not isinstance(request, dict):
        raise RequestError(f"{where}: expected an object, found {type(request).__name__}")
    params = _optional(request, "sampling_params", dict) or {}
    prompt = _tokens(request.get("prompt"), f"{where}'s prompt")
    _check_ids(prompt, f"{where}'s prompt", limits)

    def number(name: str, label: str, low: float, high: float, fallback: Optional[float], whole: bool) -> Any:
        value = params.get(name)
        return fallback if value is None else _number(value, (where, label), low, high, whole=whole)

    max_tokens = int(number("max_tokens", "maxTokens", 1, 2**31, limits.max_context - len(prompt), True))
    if len(prompt) + max_tokens > limits.max_context:
        raise RequestError(
            f"{where}: a prompt of {len(prompt)} tokens and {max_tokens} new ones exceed the model's context of {limits.max_context}; shorten the prompt or lower maxTokens"
        )
    top_k = number("top_k", "topK", -1, 2**31, 0, True)
    seed = number("seed", "seed", -(2**53), 2**53, None, True)
    return SampleRequest(
        prompt=prompt,
        count=int(_number(request.get("num_samples", 1), (where, "num_samples"), 1, 65_536, whole=True)),
        max_tokens=max_tokens,
        seed=secrets.randbelow(2**53) if seed is None else int(seed),
        temperature=number("temperature", "temperature", 0, 1e6, 1.0, False),
        # Tinker's clients send -1 for all tokens.
        top_k=max(0, int(top_k)),
        top_p=number("top_p", "topP", 0, 1, 1.0, False),
        stop=_stops(params.get("stop"), where, limits),
        continued=bool(request.get("continued")),
        constraint=_automaton_at(request.get("constraint"), where, automata),
        begun=int(_number(request.get("begun") or 0, (where, "begun"), 0, len(prompt), whole=True)),
    )


def _automata(body: Json) -> tuple[Automaton, ...]:
    """What answers are held to: automata over bytes."""
    return tuple(_automaton(one, f"constraint {i}") for i, one in enumerate(_optional(body, "constraints", list) or []))


def _automaton(value: object, where: str) -> Automaton:
    if not isinstance(value, dict):
        raise RequestError(f"{where}: expected an object, found {type(value).__name__}")
    classes, accepting = (_packed(value, name, where, MAX_STATES) for name in ("classes", "accepting"))
    following = _packed(value, "next", where, 4 * 256 * MAX_STATES)
    states, width = len(accepting), 1 + max(classes, default=0)
    if len(classes) != 256 or states == 0 or len(following) != 4 * states * width:
        raise RequestError(f"{where}: expected 256 classes, one state or more, and a next state for each state and class")
    table = torch.frombuffer(bytearray(following), dtype=torch.int32).view(states, width)
    if table.min() < -1 or table.max() >= states:
        raise RequestError(f"{where}: a next state is not one of its {states} states")
    digest = hashlib.sha256(b"".join((classes, accepting, following))).hexdigest()
    return Automaton(
        digest,
        torch.frombuffer(bytearray(classes), dtype=torch.uint8).to(torch.int64),
        table,
        torch.frombuffer(bytearray(accepting), dtype=torch.uint8) != 0,
    )


def _automaton_at(value: object, where: str, automata: Sequence[Automaton]) -> Optional[Automaton]:
    if value is None:
        return None
    return automata[int(_number(value, (where, "constraint"), 0, len(automata) - 1, whole=True))]


def _packed(record: Json, name: str, where: str, most: int) -> bytes:
    """Bytes in base64, compressed with zlib."""
    try:
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(base64.b64decode(_required(record, name, str), validate=True), most)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise RequestError(f"{where}: {name}: expected base64 of zlib's bytes: {error}") from error
    if not unpacking.eof:
        raise RequestError(f"{where}: {name}: expected at most {most} bytes")
    return data


def _vocabulary(body: Json, limits: Limits) -> Vocabulary:
    given = _required(body, "vocabulary", dict)
    most = 4 * (limits.vocabulary_size + 1)
    whole = lambda name: torch.frombuffer(bytearray(_packed(given, name, "vocabulary", most) or b"\0" * 4), dtype=torch.int32).to(torch.int64)
    ids, starts = whole("ids"), whole("starts")
    data = torch.frombuffer(bytearray(_packed(given, "bytes", "vocabulary", MAX_TOKEN_BYTES) or b"\0"), dtype=torch.uint8)
    ends = tuple(_required(given, "end_ids", list))
    _check_ids(ids, "vocabulary: ids", limits)
    if ends:
        _check_ids(_tokens(list(ends), "vocabulary: end_ids"), "vocabulary: end_ids", limits)
    if len(starts) != len(ids) + 1 or starts[0] != 0 or starts[-1] != len(data) or (starts.diff() < 1).any():
        raise RequestError("vocabulary: expected where each token begins in its bytes, in order, and at last their end")
    return Vocabulary(ids, starts, data, ends)


def _stops(value: object, where: str, limits: Limits) -> tuple[tuple[int, ...], ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or any(not isinstance(stop, (int, list)) for stop in value):
        raise RequestError(f"{where}: stop: expected token ids or lists of token ids; this server does not read text")
    stops = [[stop] if isinstance(stop, int) else stop for stop in value]
    for stop in stops:
        if not stop:
            raise RequestError(f"{where}: stop: expected sequences of at least one token, got an empty one")
        _check_ids(_tokens(stop, f"{where}: a stop sequence"), f"{where}: a stop sequence", limits)
    return tuple(tuple(stop) for stop in stops)


def _checkpoint(body: Json, limits: Limits) -> Checkpoint:
    return Checkpoint(_required(body, "path", str), bool(body.get("optimizer", True)), bool(body.get("merged")))


PARSERS: Mapping[str, Callable[[Json, Limits], Work]] = {
    "create_model": _create_model,
    "unload_model": lambda body, limits: None,
    "forward": _forward,
    "forward_backward": _forward_backward,
    "optim_step": _adam,
    "discard_gradients": lambda body, limits: None,
    "snapshot_reference": lambda body, limits: None,
    "use_vocabulary": _vocabulary,
    "asample": _asample,
    "sample_batch": _sample_batch,
    "save_weights": _checkpoint,
    "load_weights": _checkpoint,
}


def _sequences(given: Json, names: tuple[str, ...], limits: Limits) -> Sequences:
    """The data of a request: each datum's model_input, target_tokens, mask and the inputs of the objective."""
    data = _required(given, "data", list)
    tokens, targets, masks = [], [], []
    temperatures: list[Tensor] = []
    for name in names:
        if name in RESERVED:
            raise RequestError(f'the objective reads an input "{name}", which has another meaning here; rename it')
    inputs: dict[str, list[Tensor]] = {name: [] for name in names}
    automata, constraints = _automata(given), []
    for i, datum in enumerate(data):
        where = f"sequence {i}"
        if not isinstance(datum, dict):
            raise RequestError(f"{where}: expected an object, found {type(datum).__name__}")
        ids = _tokens(datum.get("model_input"), where)
        values = _required(datum, "loss_fn_inputs", dict)
        target = _array(values.get("target_tokens"), f"{where}: target_tokens", torch.int64)
        if len(target) != len(ids):
            raise RequestError(f"{where} has {len(ids)} tokens but {len(target)} target_tokens; expected one each")
        if len(ids) > 0:
            _check_ids(ids, where, limits)
            # Reported as a token of the sequence, in which the first target is the second token.
            _check_ids(target, where, limits, first=1)
        constraints += [(i, *span) for span in _spans_of(datum.get("constraints"), where, len(ids) + 1, automata)]
        mask = torch.ones(len(ids)) if "mask" not in values else _array(values["mask"], f"{where}: mask", torch.float32)
        if len(mask) != len(ids):
            raise RequestError(f"{where} has {len(ids)} targets but {len(mask)} mask entries; expected one each")
        temperatures.append(_temperatures(values.get("temperatures"), mask, where))
        for name in names:
            if name not in values:
                given_names = ", ".join(sorted(set(values) - RESERVED)) or "none"
                raise RequestError(f'{where} has no input "{name}", which the objective reads; given: {given_names}')
            array = _array(values[name], f'{where}: input "{name}"', torch.float32)
            if len(array) != len(ids):
                raise RequestError(f'input "{name}" of {where} has {len(array)} numbers; expected one per token: {len(ids)}')
            bad = (~torch.isfinite(array) & (mask != 0)).nonzero()
            if len(bad):
                raise RequestError(f'input "{name}": token {int(bad[0]) + 1} of {where} is {float(array[bad[0]])}; expected a finite number')
            inputs[name].append(array)
        tokens.append(ids)
        targets.append(target)
        masks.append(mask != 0)
    join = lambda parts, dtype: torch.cat([torch.zeros(0, dtype=dtype), *parts])
    return Sequences(
        lengths=tuple(len(ids) for ids in tokens),
        tokens=join(tokens, torch.int64),
        targets=join(targets, torch.int64),
        mask=join(masks, torch.bool),
        inputs={name: join(parts, torch.float32) for name, parts in inputs.items()},
        # Most requests have none, and then nothing is scaled.
        temperatures=None if all((part == 1).all() for part in temperatures) else join(temperatures, torch.float32),
        constraints=tuple(constraints),
    )


def _spans_of(value: object, where: str, length: int, automata: Sequence[Automaton]) -> list[tuple[int, int, Automaton]]:
    """Answers `[start, end)` of a sequence of so many tokens, and what they were held to."""
    if value is None:
        return []
    if not isinstance(value, list) or any(not isinstance(one, list) or len(one) != 3 for one in value):
        raise RequestError(f"{where}: constraints: expected lists of a start, an end and the number of a constraint")
    spans = []
    for start, end, number in value:
        first = int(_number(start, (where, "a constraint's start"), 1, length, whole=True))
        last = int(_number(end, (where, "a constraint's end"), first, length, whole=True))
        spans.append((first, last, _automaton_at(number, where, automata)))
    return spans


def _temperatures(value: object, mask: Tensor, where: str) -> Tensor:
    """The temperature of each prediction: 1 if none is given or it is not a target."""
    if value is None:
        return torch.ones(len(mask))
    array = _array(value, f"{where}: temperatures", torch.float32)
    if len(array) != len(mask):
        raise RequestError(f"{where} has {len(mask)} targets but {len(array)} temperatures; expected one each")
    bad = (~(torch.isfinite(array) & (array > 0)) & (mask != 0)).nonzero()
    if len(bad):
        raise RequestError(
            f"temperatures: token {int(bad[0]) + 1} of {where} has {float(array[bad[0]])}; expected a finite number above 0"
        )
    return array.masked_fill(mask == 0, 1.0)


def _tokens(value: object, where: str) -> Tensor:
    """Token ids, as a list, as a tensor, or in the protocol's chunks."""
    if isinstance(value, dict) and "chunks" in value:
        chunks = _required(value, "chunks", list)
        for chunk in chunks:
            if not isinstance(chunk, dict) or chunk.get("type", "encoded_text") != "encoded_text":
                raise RequestError(f"{where}: expected chunks of type encoded_text; this server only reads token ids")
        parts = [_array(chunk.get("tokens"), where, torch.int64) for chunk in chunks]
        return torch.cat([torch.zeros(0, dtype=torch.int64), *parts])
    return _array(value, where, torch.int64)


def _array(value: object, where: str, dtype: torch.dtype) -> Tensor:
    """Numbers, as a list, as {data, dtype, shape}, or as {base64, dtype, shape}."""
    if isinstance(value, dict) and "base64" in value:
        return _decoded(value, where).to(dtype)
    data = value.get("data") if isinstance(value, dict) else value
    if not isinstance(data, list):
        raise RequestError(f"{where}: expected an array of numbers, found {type(value).__name__}")
    try:
        array = torch.tensor(data, dtype=torch.float64 if dtype.is_floating_point else None)
        if len(data) == 0:
            array = array.to(dtype)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise RequestError(f"{where}: expected an array of numbers: {error}") from error
    if array.dim() != 1 or array.dtype == torch.bool:
        raise RequestError(f"{where}: expected a flat array of numbers")
    if dtype == torch.int64 and array.dtype != torch.int64:
        bad = (array != array.trunc()).nonzero()
        if len(bad):
            raise RequestError(f"{where}: token {int(bad[0])} is {float(array[bad[0]])}; expected a whole number")
    return array.to(dtype)


def _decoded(value: Json, where: str) -> Tensor:
    dtype = DTYPES.get(str(value.get("dtype")))
    if dtype is None:
        raise RequestError(f"{where}: dtype: expected one of {', '.join(DTYPES)}, found {str(value.get('dtype'))[:40]!r}")
    try:
        data = bytearray(base64.b64decode(_required(value, "base64", str), validate=True))
        return torch.frombuffer(data, dtype=dtype) if data else torch.zeros(0, dtype=dtype)
    except (binascii.Error, ValueError) as error:
        raise RequestError(f"{where}: expected base64 of {value['dtype']} numbers: {error}") from error


def _check_ids(ids: Tensor, where: str, limits: Limits, first: int = 0) -> None:
    if len(ids) == 0:
        raise RequestError(f"{where} is empty; expected at least one token")
    if len(ids) > limits.max_context:
        raise RequestError(f"{where} has {len(ids)} tokens; the model's context is {limits.max_context}")
    least, most = ids.aminmax()
    if least < 0 or most >= limits.vocabulary_size:
        bad = ((ids < 0) | (ids >= limits.vocabulary_size)).nonzero()
        raise RequestError(
            f"{where}: token {int(bad[0]) + first} is {int(ids[bad[0]])}; expected an id from 0 to {limits.vocabulary_size - 1}"
        )


def _number(value: object, where: Union[str, tuple[str, str]], low: float, high: float, whole: bool = False) -> float:
    # Compared before it is converted: whole numbers may have hundreds of digits.
    ok = isinstance(value, (int, float)) and not isinstance(value, bool) and low <= value <= high and math.isfinite(value)
    if not ok or (whole and value != int(value)):
        kind = "a whole number" if whole else "a number"
        place = where if isinstance(where, str) else ": ".join(where)
        raise RequestError(f"{place} must be {kind} between {low} and {high}, but it is {str(value)[:60]}")
    return value


def _required(record: Json, name: str, kind: type) -> Any:
    value = record.get(name)
    if not isinstance(value, kind):
        raise RequestError(f"{name}: expected {kind.__name__}, found {'nothing' if value is None else type(value).__name__}")
    return value


def _optional(record: Json, name: str, kind: type) -> Any:
    return None if record.get(name) is None else _required(record, name, kind)
