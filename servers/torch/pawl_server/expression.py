"""Objectives sent as JSON: parsed, bounded in size, and evaluated on tensors. Nothing in them is
ever executed.

The language, its limits and its derivatives at kinks are those of packages/core/src/objectives/expression*.ts.
"""
from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Callable, Mapping

import torch
from torch import Tensor

from .errors import RequestError

MAX_NODES, MAX_DEPTH, MAX_METRICS = 4096, 128, 128
QUANTITIES = ("logprob", "value", "entropy")
OPERANDS: Mapping[str, tuple[str, ...]] = {
    **{op: ("x",) for op in ("neg", "exp", "log", "abs", "stopGradient")},
    **{op: ("x", "y") for op in ("add", "sub", "mul", "div", "min", "max", "less", "lessEqual")},
    "clamp": ("x", "low", "high"),
    "select": ("condition", "x", "y"),
}
LEAVES = ("const", "input", *QUANTITIES)
INPUT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
METRIC_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_./-]{0,127}")


@dataclass(frozen=True)
class Node:
    """One operation; its operands are indices in the objective's list of nodes, all before its own."""

    op: str
    operands: tuple[int, ...] = ()
    value: float = 0.0
    name: str = ""


@dataclass(frozen=True)
class Objective:
    """A loss and metrics over one shared list of nodes, in which equal subexpressions occur once."""

    nodes: tuple[Node, ...]
    loss: int
    metrics: Mapping[str, int]

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(node.name for node in self.nodes if node.op == "input")

    def uses(self, quantity: str) -> bool:
        return any(node.op == quantity for node in self.nodes)


def parse_objective(value: object) -> Objective:
    """The objective described by a JSON value, or an error that names the place and what was
    expected.
    """
    fields = _fields(value, "objective", ("loss", "metrics"))
    builder = _Builder()
    loss = builder.add(fields["loss"], "loss", 1)
    metrics = _record(fields["metrics"], "metrics")
    if len(metrics) > MAX_METRICS:
        raise RequestError(f"metrics: expected at most {MAX_METRICS}, found {len(metrics)}")
    for name in metrics:
        if not METRIC_NAME.fullmatch(name):
            raise RequestError(f"metrics: {_show(name)} is not a valid metric name")
    roots = {name: builder.add(metric, f"metrics.{name}", 1) for name, metric in metrics.items()}
    return Objective(tuple(builder.nodes), loss, roots)


class _Builder:
    """Collects nodes, each distinct one once."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.places: dict[Node, int] = {}
        self.budget = MAX_NODES

    def add(self, value: object, path: str, depth: int) -> int:
        if depth > MAX_DEPTH:
            raise RequestError(f"{path}: nested deeper than {MAX_DEPTH} operations; reduce the nesting")
        self.budget -= 1
        if self.budget < 0:
            raise RequestError(f"{path}: the objective has more than {MAX_NODES} nodes; make it smaller")
        node = self._node(value, path, depth)
        if node not in self.places:
            self.places[node] = len(self.nodes)
            self.nodes.append(node)
        return self.places[node]

    def _node(self, value: object, path: str, depth: int) -> Node:
        op = _record(value, path).get("op")
        if not isinstance(op, str) or (op not in LEAVES and op not in OPERANDS):
            raise RequestError(f"{path}: unknown op {_show(op)}; known: {', '.join((*LEAVES, *OPERANDS))}")
        if op == "const":
            number = _fields(value, path, ("op", "value"))["value"]
            if isinstance(number, bool) or not isinstance(number, (int, float)) or not _finite(number):
                raise RequestError(f"{path}.value: expected a finite number, found {_show(number)}")
            return Node(op, value=float(number))
        if op == "input":
            name = _fields(value, path, ("op", "name"))["name"]
            if not isinstance(name, str) or not INPUT_NAME.fullmatch(name):
                raise RequestError(
                    f"{path}.name: expected a letter followed by at most 63 letters, digits or _, found {_show(name)}"
                )
            return Node(op, name=name)
        operands = OPERANDS.get(op, ())
        fields = _fields(value, path, ("op", *operands))
        return Node(op, tuple(self.add(fields[field], f"{path}.{field}", depth + 1) for field in operands))


def _finite(number: int | float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def evaluate(objective: Objective, leaves: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
    """Loss and metrics of each token; `leaves` holds quantities and inputs by name, one number per
    token.
    """
    like = next(iter(leaves.values()))
    values: list[Tensor] = []
    for node in objective.nodes:
        if node.op == "const":
            values.append(torch.full_like(like, node.value))
        elif node.op == "input" or node.op in QUANTITIES:
            values.append(leaves[node.name or node.op])
        else:
            values.append(_OPERATIONS[node.op](*(values[i] for i in node.operands)))
    return values[objective.loss], {name: values[i].detach() for name, i in objective.metrics.items()}


def _clamp(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    # Written out, because versions of torch.clamp disagree about the derivative at a bound.
    return torch.where(high < torch.maximum(x, low), high, torch.where(x < low, low, x))


_OPERATIONS: Mapping[str, Callable[..., Tensor]] = {
    "neg": torch.neg,
    "exp": torch.exp,
    "log": torch.log,
    "abs": torch.abs,
    "stopGradient": Tensor.detach,
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "min": torch.minimum,
    "max": torch.maximum,
    "less": lambda x, y: (x < y).to(x.dtype),
    "lessEqual": lambda x, y: (x <= y).to(x.dtype),
    "clamp": _clamp,
    "select": lambda condition, x, y: torch.where(condition != 0, x, y),
}


def _record(value: object, path: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise RequestError(f"{path}: expected an object, found {_show(value)}")
    return value


def _fields(value: object, path: str, names: tuple[str, ...]) -> dict[str, object]:
    record = _record(value, path)
    for name in names:
        if name not in record:
            raise RequestError(f"{path}: field {_show(name)} is missing; expected {', '.join(names)}")
    for name in record:
        if name not in names:
            raise RequestError(f"{path}: unexpected field {_show(name)}; expected only {', '.join(names)}")
    return record


def _show(value: object) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    return json.dumps(value)[:60]
