"""The protocol's own losses, written as objectives; each is summed over target tokens."""
from __future__ import annotations

from .errors import RequestError
from .expression import Objective, parse_objective

Json = dict[str, object]


def standard_objective(loss: str, config: Json) -> Objective:
    """The objective of a named loss."""
    ratio = _op("exp", _op("sub", LOGPROB, _input("logprobs")))
    advantage = _input("advantages")
    if loss == "cross_entropy":
        return _objective(_op("mul", _input("weights"), _op("neg", LOGPROB)))
    if loss == "importance_sampling":
        return _objective(_op("neg", _op("mul", ratio, advantage)))
    if loss == "ppo":
        plain, clipped = _op("mul", ratio, advantage), _op("mul", _clipped(ratio, config), advantage)
        return _objective(_op("neg", _op("min", plain, clipped)))
    if loss == "cispo":
        weight = _op("stopGradient", _clipped(ratio, config))
        return _objective(_op("neg", _op("mul", _op("mul", weight, advantage), LOGPROB)))
    raise RequestError(
        f'loss_fn: unknown loss "{loss}"; known: cross_entropy, importance_sampling, ppo, cispo, objective'
    )


LOGPROB: Json = {"op": "logprob"}


def _clipped(ratio: Json, config: Json) -> Json:
    low, high = config.get("clip_low_threshold", 0.8), config.get("clip_high_threshold", 1.2)
    return {"op": "clamp", "x": ratio, "low": _const(low), "high": _const(high)}


def _const(value: object) -> Json:
    return {"op": "const", "value": value}


def _input(name: str) -> Json:
    return {"op": "input", "name": name}


def _op(op: str, x: Json, y: Json | None = None) -> Json:
    return {"op": op, "x": x} if y is None else {"op": op, "x": x, "y": y}


def _objective(loss: Json) -> Objective:
    return parse_objective({"loss": loss, "metrics": {}})
