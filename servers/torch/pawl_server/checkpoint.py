"""Checkpoint folders in Hugging Face's layout: config.json, model.safetensors, and our optimiser's
state.

The embedded engine uses the same files, so a run can move between the two. An adapter is saved next
to the weights it was trained on, which stay unchanged, or merged into them as a plain model for
programs without adapters.
"""
from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import zlib
from pathlib import Path
from typing import Callable, Iterator, NamedTuple, Optional

import torch
from torch import Tensor

from .adapter import ADAPTER_CONFIG, ADAPTER_WEIGHTS, OLD_ADAPTER, Items, adapter_config, adapter_items, has_adapter, open_adapter
from .config_file import text_fields
from .model import LORA_ALPHA, adapter_names, initial_value
from .model_config import ModelConfig
from .ranks import Ranks
from .safetensors_file import SafetensorsFile, write_safetensors
from .weights import Weights, whole

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
OPTIMIZER = "optimizer.safetensors"
COMPANIONS = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja", "generation_config.json")


class Stored(NamedTuple):
    """A tensor in a file."""

    file: SafetensorsFile
    name: str

    @property
    def shape(self) -> tuple[int, ...]:
        return self.file.shapes[self.name]

    def read(self) -> Tensor:
        return self.file.read(self.name)


def open_tensors(folder: Path) -> dict[str, Stored]:
    """Each tensor of a folder; empty if there is no weights file. A model of text and images calls those
    for text by longer names, which are shortened.
    """
    found = {name: Stored(file, name) for name, file in _open_files(folder).items()}
    return {re.sub(r"^model\.language_model\.", "model.", name): tensor for name, tensor in found.items()}


def _open_files(folder: Path) -> dict[str, SafetensorsFile]:
    if (folder / WEIGHTS).is_file():
        file = SafetensorsFile(folder / WEIGHTS)
        if not file.shapes:
            raise ValueError(f"{folder / WEIGHTS}: damaged: it holds no tensors")
        return dict.fromkeys(file.shapes, file)
    if not (folder / INDEX).is_file():
        return {}
    try:
        names = dict(json.loads((folder / INDEX).read_text())["weight_map"])
        plain = bool(names) and all(isinstance(name, str) for name in names.values())
    except (ValueError, KeyError, TypeError):
        plain = False
    if not plain:
        raise ValueError(f"{folder / INDEX}: damaged: expected a weight_map from tensors to files")
    for name in set(names.values()):
        # Plain names only, so that an index cannot point outside its folder.
        if not re.fullmatch(r"[\w.-]+\.safetensors", name):
            raise ValueError(f"{folder / INDEX}: {name!r} is not the name of a .safetensors file in the same folder")
    files = {name: SafetensorsFile(folder / name) for name in set(names.values())}
    for tensor, name in names.items():
        if tensor not in files[name].shapes:
            raise ValueError(f"{folder / INDEX}: tensor {tensor} should be in {name}, but is not")
    return {tensor: files[file] for tensor, file in names.items()}


def load_weights(weights: Weights, config: ModelConfig, folder: Path, seed: int, lora_rank: int) -> None:
    """Fills all parameters from a folder; without weights there, they are initialised from a seed."""
    for name, value in _values(weights, config, folder, seed, lora_rank):
        weights.assign(name, value)


def has_same_base(weights: Weights, config: ModelConfig, folder: Path, lora_rank: int) -> bool:
    """Whether the base weights below an adapter are those of this folder, up to rounding."""
    theirs = (value for name, value in _values(weights, config, folder, 0, lora_rank) if name not in weights.trained)
    same, problem = True, None
    for name in (name for name in weights.parameters if name not in weights.trained):
        # All are gathered, because all ranks gather sharded ones together, also if one cannot read its file.
        mine = whole(weights.parameters[name]).detach()
        if problem is not None:
            continue
        try:
            value = next(theirs)
        except (ValueError, KeyError, OSError) as error:
            problem = error
            continue
        same = torch.allclose(mine.float().cpu(), value.cpu().to(mine.dtype).float(), rtol=1e-4, atol=1e-4) and same
    if problem is not None:
        raise problem
    return same


def _values(
    weights: Weights, config: ModelConfig, folder: Path, seed: int, lora_rank: int
) -> Iterator[tuple[str, Tensor]]:
    """Every parameter's numbers. An adapter is kept if the model has one of its rank, and merged if
    it has none.
    """
    tensors = open_tensors(folder)
    generator = torch.Generator(device=weights.ranks.device)
    if tensors:
        _check(tensors, weights, folder)
    elif not config.built_in:
        raise ValueError(f"{folder}: no weights; expected {WEIGHTS} or {INDEX}")
    adapter = open_adapter(folder, weights) if tensors else None
    if adapter is not None and lora_rank not in (0, adapter.rank):
        raise ValueError(
            f"{adapter.path}: the adapter has rank {adapter.rank}, but rank {lora_rank} was requested; "
            f"set engine.loraRank to {adapter.rank}, or merge it first (pawl export)"
        )
    # How often to add the adapter to the weights on disk.
    missing = 0 if adapter is None else (0 if lora_rank else 1) - (1 if adapter.merged else 0)
    for name, parameter in weights.parameters.items():
        parts = weights.pieces.get(name, [])
        saved = adapter.parameter(name, weights) if adapter is not None and "lora_" in name else None
        if saved is not None:
            yield name, saved
        elif parts and all(piece.name in tensors for piece in parts):
            read = [tensors[piece.name].read() for piece in parts]
            value = torch.cat(read) if len(read) > 1 else read[0]
            yield name, value + missing * adapter.addition(parts, value) if missing else value
        else:
            # Seeded by name, so that an adapter or a value head does not change the other weights.
            generator.manual_seed((seed << 32) ^ zlib.crc32(name.encode()))
            yield name, initial_value(name, parameter.shape, config, generator)


def load_moments(weights: Weights, folder: Path) -> None:
    """Reads the optimiser's state, or resets it if the folder has none."""
    path = folder / OPTIMIZER
    if not path.is_file():
        weights.assign_moments({}, 0)
        return
    file = SafetensorsFile(path)
    trained, saved = (any("lora_" in name for name in names) for names in (weights.masters, file.shapes))
    if trained and saved and not has_adapter(folder):
        raise ValueError(
            f"{path} belongs to an adapter that is not next to it: this checkpoint was copied without its adapter; "
            "its weights include the adapter, so start a new run from it"
        )
    moments = {}
    for name in weights.masters:
        names = [piece.name for piece in weights.pieces_of(name)]
        if all(f"{which}.{part}" in file.shapes for which in ("first", "second") for part in names):
            read = lambda which: torch.cat([file.read(f"{which}.{part}") for part in names])
            moments[name] = (read("first"), read("second"))
    weights.assign_moments(moments, int(file.metadata.get("steps", "0")))


def save_folder(
    weights: Weights,
    ranks: Ranks,
    base: Path,
    folder: Path,
    *,
    optimizer: bool,
    lora_rank: int,
    merged: bool,
    earlier: Optional[Path] = None,
) -> None:
    """Writes a checkpoint completely or not at all, even if the process is stopped. Weights below an
    adapter never change: those of an earlier checkpoint get a second name instead of being written again.
    """
    items = {WEIGHTS: list(_model_items(weights, lora_rank if merged else 0))}
    adapted = lora_rank > 0 and not merged
    linked = earlier if adapted and earlier is not None and _holds(earlier, items[WEIGHTS]) else None
    if linked is not None:
        del items[WEIGHTS]
    if adapted:
        items[ADAPTER_WEIGHTS] = list(adapter_items(weights))
    if optimizer:
        items[OPTIMIZER] = list(_moment_items(weights))
    # Sharded tensors are gathered by all ranks, in the order in which the first rank writes them.
    reads = iter([read for part in items.values() for _, _, read in part])
    try:
        if ranks.first:
            turns = {name: [(tensor, shape, lambda: next(reads)()) for tensor, shape, _ in part] for name, part in items.items()}
            _write_folder(weights, turns, base, folder, lora_rank=lora_rank if adapted else 0, linked=linked)
    except OSError:
        # The others wait for the rest of them, even if it cannot be written here.
        for read in reads:
            read()
        raise
    for read in reads:
        read()


def _holds(folder: Path, items: list[tuple[str, tuple[int, ...], Callable[[], Tensor]]]) -> bool:
    """Whether a folder's file has these tensors as they would be written, and no adapter was merged into it."""
    if (folder / OLD_ADAPTER).is_file() or not (folder / WEIGHTS).is_file():
        return False
    file = SafetensorsFile(folder / WEIGHTS)
    return file.dtypes == {"F32"} and file.shapes == {name: tuple(shape) for name, shape, _ in items}


def _link(file: Path, to: Path) -> None:
    """The same file under a second name, or a copy where the disk has no such thing."""
    try:
        os.link(file, to)
    except OSError:
        shutil.copyfile(file, to)


def _write_folder(
    weights: Weights, items: dict[str, Items], base: Path, folder: Path, *, lora_rank: int, linked: Optional[Path]
) -> None:
    """Writes the files of a checkpoint, and puts them in the place of an earlier one."""
    temporary = folder.parent / f".{folder.name}.{secrets.token_hex(4)}.partial"
    try:
        temporary.mkdir(parents=True)
        if linked is not None:
            _link(linked / WEIGHTS, temporary / WEIGHTS)
        for name, part in items.items():
            write_safetensors(temporary / name, part, {"steps": str(weights.steps)} if name == OPTIMIZER else {})
        fields = text_fields(json.loads((base / "config.json").read_text()))
        (temporary / "config.json").write_text(json.dumps({**fields, "torch_dtype": "float32"}, indent=2) + "\n")
        if lora_rank:
            about = json.dumps(adapter_config(weights, lora_rank, folder), indent=2)
            (temporary / ADAPTER_CONFIG).write_text(about + "\n")
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
    try:
        os.rename(new, folder)
    except OSError:
        if old.exists():
            os.rename(old, folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _check(tensors: dict[str, Stored], weights: Weights, folder: Path) -> None:
    for name, parts in weights.pieces.items():
        for piece in parts:
            if piece.name not in tensors:
                if name == "value_head":
                    continue
                raise ValueError(f"{folder}: tensor {piece.name} is missing; the weights do not fit config.json")
            expected = (piece.end - piece.begin, *weights.parameters[name].shape[1:])
            found = tensors[piece.name].shape
            if tuple(found) != tuple(expected):
                raise ValueError(f"{folder}: tensor {piece.name} has shape {list(found)}; expected {list(expected)}")


def _model_items(weights: Weights, lora_rank: int) -> Items:
    for piece in (piece for pieces in weights.pieces.values() for piece in pieces):
        shape = (piece.end - piece.begin, *weights.parameters[piece.parameter].shape[1:])
        yield piece.name, shape, lambda piece=piece: _merged(weights, piece.parameter, lora_rank)[piece.begin : piece.end]


def _merged(weights: Weights, name: str, lora_rank: int) -> Tensor:
    """A parameter with its adapter merged; unchanged if the rank is 0."""
    value = whole(weights.masters.get(name, weights.parameters[name])).detach().float()
    down, up = map(weights.masters.get, adapter_names(name))
    if lora_rank == 0 or down is None or up is None:
        return value
    return value + whole(up).float() @ whole(down).float() * (LORA_ALPHA / lora_rank)


def _moment_items(weights: Weights) -> Items:
    for which, name, moment in weights.moments():
        for piece in weights.pieces_of(name):
            shape = (piece.end - piece.begin, *moment.shape[1:])
            read = lambda piece=piece, moment=moment: whole(moment)[piece.begin : piece.end]
            yield f"{which}.{piece.name}", shape, read
