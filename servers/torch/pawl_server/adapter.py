"""Low-rank adapters on disk, in PEFT's layout: adapter_config.json and adapter_model.safetensors.

Our projections that read the same input are one matrix with one pair (down, up). PEFT has a pair
for each tensor of a checkpoint, so `down` is written once for each of them, and `up` in parts.
"""
from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Iterator, NamedTuple, Optional, Sequence

import torch
from torch import Tensor

from .model import LORA_ALPHA, Piece, adapter_names
from .safetensors_file import SafetensorsFile
from .weights import Weights, whole

ADAPTER_CONFIG, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
# The old location of adapters, under our own names and next to weights that they were merged into.
OLD_ADAPTER = "adapter.safetensors"
PREFIX = "base_model.model."
Items = Iterator[tuple[str, tuple[int, ...], Callable[[], Tensor]]]


class Pair(NamedTuple):
    """The change to a tensor: up @ down, times the adapter's scale."""

    down: Tensor
    up: Tensor


@dataclass(frozen=True)
class Adapter:
    """A saved adapter, and whether the weights next to it already include it."""

    path: Path
    rank: int
    scale: float
    merged: bool
    pair: Callable[[Piece], Optional[Pair]]

    def addition(self, parts: Sequence[Piece], like: Tensor) -> Tensor:
        """Its total change to one of our parameters of this shape."""
        total = torch.zeros(like.shape)
        for piece in parts:
            pair = self.pair(piece)
            if pair is not None:
                total[piece.begin : piece.end] = pair.up @ pair.down * self.scale
        return total

    def parameter(self, name: str, weights: Weights) -> Optional[Tensor]:
        """Our adapter's parameter with this name, or None if this adapter does not change it."""
        stem, _, which = name.rpartition("lora_")
        pairs = [(piece, self.pair(piece)) for piece in weights.pieces[f"{stem}weight"]]
        there = [pair for _, pair in pairs if pair is not None]
        if not there:
            return None
        if which == "down":
            if any(not torch.equal(pair.down, there[0].down) for pair in there):
                raise ValueError(
                    f"{self.path}: {' and '.join(piece.name for piece, pair in pairs if pair)} each have their own lora_A, but must share one here; "
                    "merge it (pawl export), and train a new adapter on the result"
                )
            return there[0].down
        up = torch.zeros(weights.parameters[name].shape)
        for piece, pair in pairs:
            if pair is not None:
                up[piece.begin : piece.end] = pair.up
        return up * (self.scale * self.rank / LORA_ALPHA)


def has_adapter(folder: Path) -> bool:
    """Whether a checkpoint folder has one."""
    return any((folder / name).is_file() for name in (ADAPTER_CONFIG, OLD_ADAPTER))


def open_adapter(folder: Path, weights: Weights) -> Optional[Adapter]:
    """The adapter of a checkpoint folder, if it has one."""
    if (folder / ADAPTER_CONFIG).is_file():
        return _open_peft(folder, weights)
    if (folder / OLD_ADAPTER).is_file():
        return _open_old(folder / OLD_ADAPTER)
    return None


def _open_peft(folder: Path, weights: Weights) -> Adapter:
    path = folder / ADAPTER_CONFIG
    fields = json.loads(path.read_text())
    known = {"peft_type": ("LORA",), "bias": ("none",)}
    for name, expected in known.items():
        if fields.get(name, expected[0]) not in expected:
            raise ValueError(f"{path}: {name} is {fields[name]!r}; expected {expected[0]!r}")
    for name in ("use_dora", "fan_in_fan_out", "lora_bias", "modules_to_save", "rank_pattern", "alpha_pattern"):
        if fields.get(name):
            raise ValueError(f"{path}: not supported: {name}; merge the adapter with PEFT, and open the merged model")
    rank, alpha = int(fields["r"]), float(fields["lora_alpha"])
    file = SafetensorsFile(folder / ADAPTER_WEIGHTS)
    pieces = {piece.name: piece for parts in weights.pieces.values() for piece in parts}
    for name, shape in file.shapes.items():
        target, _, which = name.removeprefix(PREFIX).rpartition(".lora_")
        piece = pieces.get(f"{target}.weight")
        if piece is None or which not in ("A.weight", "B.weight"):
            raise ValueError(f"{file.path}: {name} belongs to no tensor of this model")
        inputs = weights.parameters[piece.parameter].shape[-1]
        expected = (rank, inputs) if which == "A.weight" else (piece.end - piece.begin, rank)
        if tuple(shape) != expected:
            raise ValueError(f"{file.path}: {name} has shape {list(shape)}; expected {list(expected)}")

    def pair(piece: Piece) -> Optional[Pair]:
        down, up = _names(piece)
        return Pair(file.read(down), file.read(up)) if down in file.shapes else None

    return Adapter(path, rank, alpha / (math.sqrt(rank) if fields.get("use_rslora") else rank), False, pair)


def _open_old(path: Path) -> Adapter:
    file = SafetensorsFile(path)
    rank = next(shape[0] for name, shape in file.shapes.items() if name.endswith("_lora_down"))

    def pair(piece: Piece) -> Optional[Pair]:
        ours = piece.parameter.removesuffix("_weight")
        if not piece.parameter.endswith("_weight") or f"{ours}_lora_down" not in file.shapes:
            return None
        return Pair(file.read(f"{ours}_lora_down"), file.read(f"{ours}_lora_up")[piece.begin : piece.end])

    return Adapter(path, rank, LORA_ALPHA / rank, True, pair)


def adapter_config(weights: Weights, rank: int, base: Path) -> dict[str, object]:
    """The configuration of our adapter for PEFT."""
    modules = {piece.name.split(".")[-2] for piece, *_ in _adapted(weights)}
    return {
        "peft_type": "LORA", "task_type": "CAUSAL_LM", "base_model_name_or_path": str(base.resolve()),
        "r": rank, "lora_alpha": int(LORA_ALPHA), "lora_dropout": 0.0, "target_modules": sorted(modules),
        "bias": "none", "fan_in_fan_out": False, "modules_to_save": None, "inference_mode": True,
        "use_dora": False, "use_rslora": False,
    }  # fmt: skip


def adapter_items(weights: Weights) -> Items:
    """The adapter's tensors under PEFT's names."""
    for piece, *ours in _adapted(weights):
        down, up = (weights.masters[name] for name in ours)
        for name, shape, read in zip(
            _names(piece),
            (down.shape, (piece.end - piece.begin, up.shape[1])),
            (lambda down=down: whole(down), lambda up=up, piece=piece: whole(up)[piece.begin : piece.end]),
        ):
            yield name, tuple(shape), read


def _adapted(weights: Weights) -> Iterator[tuple[Piece, str, str]]:
    """The tensors of a checkpoint that have an adapter, with our names for it."""
    for name, parts in weights.pieces.items():
        down, up = adapter_names(name)
        if down in weights.masters:
            for piece in parts:
                yield piece, down, up


def _names(piece: Piece) -> tuple[str, str]:
    stem = f"{PREFIX}{piece.name.removesuffix('.weight')}"
    return f"{stem}.lora_A.weight", f"{stem}.lora_B.weight"
