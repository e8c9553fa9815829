"""Checkpoint folders in Hugging Face's layout: config.json, model.safetensors, and our optimiser's state.

The same files as the embedded engine's, so a run can move between the two. Adapters are saved merged, as a
plain model anybody can load, and beside it as they are, to train on.
"""
from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import zlib
from pathlib import Path
from typing import Callable, Iterator

import torch
from torch import Tensor

from .model import LORA_ALPHA, initial_value
from .model_config import ModelConfig
from .ranks import Ranks
from .safetensors_file import SafetensorsFile, write_safetensors
from .weights import Weights, whole

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
OPTIMIZER, ADAPTER = "optimizer.safetensors", "adapter.safetensors"
COMPANIONS = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "generation_config.json")
Items = Iterator[tuple[str, tuple[int, ...], Callable[[], Tensor]]]


def open_tensors(folder: Path) -> dict[str, SafetensorsFile]:
    """Each tensor of a folder with the file that holds it; none where there is no weights file."""
    if (folder / WEIGHTS).is_file():
        file = SafetensorsFile(folder / WEIGHTS)
        return dict.fromkeys(file.shapes, file)
    if not (folder / INDEX).is_file():
        return {}
    names = json.loads((folder / INDEX).read_text())["weight_map"]
    for name in set(names.values()):
        # Plain names only: an index cannot point out of its folder.
        if not re.fullmatch(r"[\w.-]+\.safetensors", name):
            raise ValueError(f"{folder / INDEX}: {name!r} is no name of a .safetensors file in the same folder")
    files = {name: SafetensorsFile(folder / name) for name in set(names.values())}
    return {tensor: files[file] for tensor, file in names.items()}


def load_weights(weights: Weights, config: ModelConfig, folder: Path, seed: int) -> None:
    """Fills all parameters from a folder; one without weights gives first weights from a seed."""
    tensors = open_tensors(folder)
    generator = torch.Generator(device=weights.ranks.device)
    if tensors:
        _check(tensors, weights, folder)
    elif not config.built_in:
        raise ValueError(f"{folder}: no weights; expected {WEIGHTS} or {INDEX}")
    adapter = SafetensorsFile(folder / ADAPTER) if (folder / ADAPTER).is_file() else None
    for name, parameter in weights.parameters.items():
        parts = weights.pieces.get(name, [])
        if adapter is not None and name in adapter.shapes:
            weights.assign(name, adapter.read(name))
        elif parts and all(piece.name in tensors for piece in parts):
            weights.assign(name, torch.cat([tensors[piece.name].read(piece.name) for piece in parts]))
        else:
            # Seeded by name, so that an adapter or a value head leaves the other weights as they are.
            generator.manual_seed((seed << 32) ^ zlib.crc32(name.encode()))
            weights.assign(name, initial_value(name, parameter.shape, config.layers, generator))


def load_trained(weights: Weights, config: ModelConfig, folder: Path) -> None:
    """Goes on from what `save_folder` wrote: the trained tensors, an adapter's base staying as it was."""
    if any("lora" in name for name in weights.trained):
        file = SafetensorsFile(folder / ADAPTER)
        for name in weights.trained:
            weights.assign(name, file.read(name))
    else:
        load_weights(weights, config, folder, 0)


def load_moments(weights: Weights, folder: Path) -> None:
    """Reads the optimiser's state, or starts it afresh where the folder has none."""
    path = folder / OPTIMIZER
    if not path.is_file():
        weights.assign_moments({}, 0)
        return
    file = SafetensorsFile(path)
    moments = {}
    for name in weights.masters:
        names = [piece.name for piece in weights.pieces_of(name)]
        if all(f"{which}.{part}" in file.shapes for which in ("first", "second") for part in names):
            read = lambda which: torch.cat([file.read(f"{which}.{part}") for part in names])
            moments[name] = (read("first"), read("second"))
    weights.assign_moments(moments, int(file.metadata.get("steps", "0")))


def save_folder(
    weights: Weights, ranks: Ranks, base: Path, folder: Path, *, optimizer: bool, lora_rank: int
) -> None:
    """Writes a checkpoint: all of it or nothing, whenever the process is stopped."""
    items = {WEIGHTS: list(_model_items(weights, lora_rank))}
    if lora_rank:
        items[ADAPTER] = [(name, tuple(p.shape), lambda p=p: whole(p)) for name, p in weights.masters.items()]
    if optimizer:
        items[OPTIMIZER] = list(_moment_items(weights))
    metadata = {"steps": str(weights.steps)}
    if not ranks.first:
        # Sharded tensors are gathered in the order in which the first rank writes them.
        for part in items.values():
            for _, _, read in part:
                read()
        return
    temporary = folder.parent / f".{folder.name}.{secrets.token_hex(4)}.partial"
    temporary.mkdir(parents=True)
    try:
        for name, part in items.items():
            write_safetensors(temporary / name, part, metadata if name == OPTIMIZER else {})
        fields = json.loads((base / "config.json").read_text())
        (temporary / "config.json").write_text(json.dumps({**fields, "torch_dtype": "float32"}, indent=2) + "\n")
        for name in COMPANIONS:
            if (base / name).is_file():
                shutil.copyfile(base / name, temporary / name)
        _replace(temporary, folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _replace(new: Path, folder: Path) -> None:
    old = folder.parent / f".{folder.name}.{secrets.token_hex(4)}.replaced"
    if folder.exists():
        os.rename(folder, old)
    os.rename(new, folder)
    shutil.rmtree(old, ignore_errors=True)


def _check(tensors: dict[str, SafetensorsFile], weights: Weights, folder: Path) -> None:
    for name, parts in weights.pieces.items():
        for piece in parts:
            if piece.name not in tensors:
                if name == "value_head":
                    continue
                raise ValueError(f"{folder}: tensor {piece.name} is missing; the weights do not fit config.json")
            expected = (piece.end - piece.begin, *weights.parameters[name].shape[1:])
            found = tensors[piece.name].shapes[piece.name]
            if tuple(found) != tuple(expected):
                raise ValueError(f"{folder}: tensor {piece.name} has shape {list(found)}; expected {list(expected)}")


def _model_items(weights: Weights, lora_rank: int) -> Items:
    for piece in (piece for pieces in weights.pieces.values() for piece in pieces):
        shape = (piece.end - piece.begin, *weights.parameters[piece.parameter].shape[1:])
        yield piece.name, shape, lambda piece=piece: _merged(weights, piece.parameter, lora_rank)[piece.begin : piece.end]


def _merged(weights: Weights, name: str, lora_rank: int) -> Tensor:
    value = whole(weights.masters.get(name, weights.parameters[name])).detach().float()
    down, up = (weights.masters.get(name.replace("_weight", f"_lora_{which}")) for which in ("down", "up"))
    if not name.endswith("_weight") or down is None or up is None:
        return value
    return value + whole(up).float() @ whole(down).float() * (LORA_ALPHA / lora_rank)


def _moment_items(weights: Weights) -> Items:
    for which, name, moment in weights.moments():
        for piece in weights.pieces_of(name):
            shape = (piece.end - piece.begin, *moment.shape[1:])
            read = lambda piece=piece, moment=moment: whole(moment)[piece.begin : piece.end]
            yield f"{which}.{piece.name}", shape, read
