"""The folder that saving, loading and uploading are restricted to."""
from __future__ import annotations

import os
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Container, Optional

from .errors import RequestError

PATH = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")
# A file system allows names of 255 bytes, and ours get a few more while they are written.
MOST_NAME = 200
# Where clients put the weights that they start from, each under a name made from its content.
UPLOADS, UPLOAD_KEPT_S = "uploads", 24 * 3600.0
# Weights in several files: any plain name, as the index beside them lists it.
SHARD = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*\.safetensors")
# The other files of a checkpoint; no others are accepted or served.
FILES = (
    "config.json",
    "model.safetensors",
    "model.safetensors.index.json",
    "optimizer.safetensors",
    "adapter_config.json",
    "adapter_model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "generation_config.json",
)


@dataclass(frozen=True)
class Folders:
    """The served model's folder, if there is one, and the folder of clients' checkpoints."""

    model: Optional[Path]
    name: Optional[str]
    checkpoints: Path

    def base(self, base_model: str) -> Path:
        """The folder a new model starts from: the served one, or `checkpoint:PATH`."""
        if base_model.startswith("checkpoint:"):
            return self.existing(base_model.removeprefix("checkpoint:"))
        if self.model is None:
            raise RequestError(
                f'base_model: this server was started without a model, so it has no {base_model[:80]!r}; upload one and use "checkpoint:PATH"'
            )
        if base_model != self.name:
            raise RequestError(
                f'base_model: this server has "{self.name}", not {base_model[:80]!r}; use that, or "checkpoint:PATH" after an upload'
            )
        return self.model

    def confined(self, path: str) -> Path:
        """A checkpoint's folder; links cannot lead outside either."""
        if len(path) > 512 or not PATH.fullmatch(path):
            raise RequestError(
                f"path: expected a relative path of letters, digits, . _ - and /, no part beginning with a dot, found {path[:80]!r}"
            )
        _check_length(max(path.split("/"), key=len))
        root = self.checkpoints.resolve()
        folder = (root / path).resolve()
        if root not in folder.parents:
            raise RequestError(f"path: {path!r} leads outside the checkpoint folder")
        return folder

    def existing(self, path: str) -> Path:
        """The folder of an existing checkpoint."""
        folder = self.confined(path)
        if not folder.is_dir():
            raise RequestError(f"path: there is no checkpoint {path!r} on this server")
        os.utime(folder)
        return folder

    def file(self, path: str) -> Path:
        """One file of a checkpoint, from PATH/NAME."""
        folder, _, name = path.rpartition("/")
        _check_length(name)
        if name not in FILES and not SHARD.fullmatch(name):
            raise RequestError(f"expected one of {', '.join(FILES)} or another .safetensors file after the checkpoint's path, found {name[:80]!r}")
        return self.confined(folder) / name

    def forget_uploads(self, used: Container[Path]) -> None:
        """Removes uploads that no model uses and nobody asked for in a day; clients upload them again
        when they need them.
        """
        uploads = self.checkpoints.resolve() / UPLOADS
        for folder in uploads.iterdir() if uploads.is_dir() else ():
            if folder not in used and time.time() - _last_change(folder) > UPLOAD_KEPT_S:
                shutil.rmtree(folder, ignore_errors=True)

    def delete(self, path: str) -> bool:
        """Removes a checkpoint; returns whether there was one."""
        folder = self.confined(path)
        if not folder.is_dir():
            return False
        shutil.rmtree(folder)
        return True


def _check_length(name: str) -> None:
    if len(name) > MOST_NAME:
        raise RequestError(f"path: expected names of at most {MOST_NAME} characters, found one of {len(name)}: {name[:80]!r}")


def _last_change(folder: Path) -> float:
    try:
        return max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
    except OSError:
        # It is being written or removed at this moment.
        return time.time()
