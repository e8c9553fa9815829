"""Reads and writes .safetensors files: a JSON header and raw numbers, so that nothing in them can
be executed.
"""
from __future__ import annotations

import json
import mmap
import os
from pathlib import Path
from typing import Callable, Iterable, Mapping

import torch
from torch import Tensor

DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
MAX_HEADER = 100 * 2**20


class SafetensorsFile:
    """An open file; tensors are read on demand."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > min(MAX_HEADER, size - 8):
                raise ValueError(f"{path}: damaged: its header of {length} bytes does not fit a file of {size}")
            try:
                header = json.loads(file.read(length))
                self.metadata: Mapping[str, str] = header.pop("__metadata__", {})
                self.shapes = {name: tuple(_whole(n) for n in entry["shape"]) for name, entry in header.items()}
                self._entries = header
                self._start = 8 + length
                for name in header:
                    self._check(name, size)
            except (KeyError, TypeError, AttributeError, RecursionError) as error:
                raise ValueError(f"{path}: damaged: its header is not one of safetensors ({type(error).__name__}: {error})") from error
            self.dtypes = {entry["dtype"] for entry in header.values()}
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def read(self, name: str) -> Tensor:
        """One tensor as 32-bit floats; NaN or infinity is an error."""
        entry = self._entries[name]
        begin, end = entry["data_offsets"]
        # A copy, because frombuffer would share read-only memory.
        data = bytearray(memoryview(self._bytes)[self._start + begin : self._start + end])
        if not data:
            return torch.zeros(entry["shape"])
        tensor = torch.frombuffer(data, dtype=DTYPES[entry["dtype"]]).reshape(entry["shape"]).float()
        # A sum is finite unless one of them is not, or it is too large itself.
        if not torch.isfinite(tensor.sum()) and not torch.isfinite(tensor).all():
            raise ValueError(f"{self.path}: tensor {name} contains NaN or infinity; the checkpoint is damaged")
        return tensor

    def _check(self, name: str, size: int) -> None:
        entry = self._entries[name]
        dtype = DTYPES.get(entry["dtype"])
        if dtype is None:
            raise ValueError(f"{self.path}: {name} has dtype {entry['dtype']}; expected F32, F16 or BF16")
        begin, end = (_whole(n) for n in entry["data_offsets"])
        numbers = 1
        for length in entry["shape"]:
            numbers *= length
        width = torch.empty(0, dtype=dtype).element_size()
        if not 0 <= begin <= end <= size - self._start or end - begin != numbers * width:
            raise ValueError(f"{self.path}: damaged: {name} is not inside the file")


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**60:
        raise TypeError(f"expected a size, found {str(value)[:40]}")
    return value


def write_safetensors(
    path: Path,
    tensors: Iterable[tuple[str, tuple[int, ...], Callable[[], Tensor]]],
    metadata: Mapping[str, str] = {},
) -> None:
    """Writes named 32-bit float tensors, each created only when it is written."""
    items = list(tensors)
    header: dict[str, object] = {"__metadata__": {"format": "pt", **metadata}}
    offset = 0
    for name, shape, _ in items:
        size = 4
        for length in shape:
            size *= length
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, shape, read in items:
            tensor = read().detach().to("cpu", torch.float32).contiguous()
            assert tuple(tensor.shape) == tuple(shape)
            file.write(memoryview(tensor.numpy()).cast("B") if tensor.numel() else b"")
        file.flush()
        os.fsync(file.fileno())
