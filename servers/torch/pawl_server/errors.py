"""A problem that is reported to the client as it is."""
from __future__ import annotations

from pathlib import Path


class RequestError(Exception):
    """A request that cannot be executed: says what was expected, what came, and the HTTP status."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


def unwritable(path: Path, error: OSError) -> str:
    """Why the server could not write, where, and what helps."""
    return (
        f"the server could not write {path}: {error.strerror or error}. Earlier checkpoints are kept. "
        "Free some space there, or start the server with another --checkpoints"
    )
