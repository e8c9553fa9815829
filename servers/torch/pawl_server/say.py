"""What the person who started the server should know: lines on standard error."""
from __future__ import annotations

import os
import sys
import time
import traceback

import torch


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {text}", file=sys.stderr, flush=True)


def say_fault(what: str, error: Exception) -> None:
    """Says that something failed through a mistake of ours, in one line; PAWL_DEBUG=1 shows where."""
    if os.environ.get("PAWL_DEBUG") == "1":
        traceback.print_exception(error, file=sys.stderr)
    text = " ".join(str(error).split())
    say(f"{what} failed: {type(error).__name__}: {text[:500]} (PAWL_DEBUG=1 shows where)")


def computes_on(device: torch.device, dtype: torch.dtype, ranks: int) -> str:
    """On what a server computes: `CPU, 2 threads, float32`, or the GPU with its memory."""
    precision = str(dtype).replace("torch.", "")
    if device.type != "cuda":
        threads = torch.get_num_threads()
        return f"computes on the CPU, {threads} {'thread' if threads == 1 else 'threads'}, {precision}"
    free, total = torch.cuda.mem_get_info(device)
    each = "" if ranks == 1 else f", {ranks} processes"
    return f"computes on {torch.cuda.get_device_name(device)}, {free / 2**30:.0f} of {total / 2**30:.0f} GiB free, {precision}{each}"
