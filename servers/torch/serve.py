"""Serves a model for training and sampling.

    python serve.py [--model FOLDER] [--checkpoints FOLDER] [--host ADDRESS] [--port N] [--dtype float32|bfloat16]
    torchrun --nproc_per_node N serve.py [--model FOLDER] …

Prints one line of JSON, {"listening": "http://…"}, when it is ready. PAWL_API_KEY holds the key that clients must send.
"""
from __future__ import annotations

import argparse
import gc
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

# Blocks that can grow leave less memory unused between them; PyTorch reads this when it is imported.
os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")

import torch

from pawl_server.access import is_loopback
from pawl_server.api import Api
from pawl_server.config_file import read_config
from pawl_server.engine_types import EngineOptions
from pawl_server.folders import Folders
from pawl_server.futures import Futures
from pawl_server.http_server import HttpOptions, create_http_server
from pawl_server.ranks import join_ranks
from pawl_server.say import computes_on, say
from pawl_server.service import Service


def main() -> None:
    # Ctrl-C in a terminal reaches this process too, and is no error.
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, lambda *_: os._exit(0))
    # What is imported stays; otherwise every release of memory walks through all of PyTorch's objects.
    gc.freeze()
    arguments = read_arguments()
    key = os.environ.get("PAWL_API_KEY") or None
    if not is_loopback(arguments.host) and key is None:
        sys.exit(f"--host {arguments.host} is reachable from other machines: set PAWL_API_KEY to a secret first")
    if not is_loopback(arguments.host) and len(key.strip()) < 16:
        sys.exit(f"--host {arguments.host} is reachable from other machines: PAWL_API_KEY has {len(key.strip())} characters, and needs 16 or more")
    if arguments.until_stdin_closes:
        threading.Thread(target=end_with_stdin, daemon=True).start()
    ranks = join_ranks()
    cuda = ranks.device.type == "cuda"
    if arguments.threads or cuda:
        # Beside a GPU the host has little to compute, and more threads get in the way of other servers.
        torch.set_num_threads(arguments.threads or 4)
    if cuda and arguments.dtype == "float32":
        sys.exit("--dtype float32 is only for CPUs: on a GPU, attention runs in 16 bits (weights and sums have 32); leave it out")
    if arguments.memory is not None and not cuda:
        sys.exit("--memory is for GPUs, and there is none here; leave it out")
    if arguments.memory is not None and not 1 <= arguments.memory < float("inf"):
        sys.exit(f"--memory {arguments.memory:g}: expected at least 1 GiB, of which CUDA itself takes 0.8")
    try:
        config = None if arguments.model is None else read_config(arguments.model)
    except ValueError as error:
        sys.exit(str(error))
    options = EngineOptions(
        dtype=getattr(torch, arguments.dtype or ("bfloat16" if cuda else "float32")),
        batch_tokens=arguments.batch_tokens,
        checkpointing=arguments.activation_checkpointing,
        compiled=cuda and not arguments.eager,
        sample_rows=arguments.sample_rows,
        memory=None if arguments.memory is None else int(arguments.memory * 2**30),
    )
    futures = Futures()
    name = None if arguments.model is None else arguments.name or arguments.model.resolve().name
    folders = Folders(arguments.model, name, arguments.checkpoints)
    service = Service(folders, ranks, options, futures)
    if not ranks.first:
        service.follow()
    capabilities = {
        "supported_models": [] if name is None else [{"model_name": name}],
        "pawl": {
            "version": 1,
            **({} if config is None else {"vocabulary_size": config.vocabulary_size, "max_context": config.max_context}),
            "objective": True,
            "entropies": True,
            "values": True,
            "lora": True,
            "reference": True,
            "discard": True,
            "files": True,
            "temperatures": True,
            "sampled_logprobs": True,
            "sample_batch": True,
            "constraints": True,
            "base64": True,
            "dtype": str(options.dtype).removeprefix("torch."),
            "device": torch.cuda.get_device_name() if cuda else "cpu",
            "ranks": ranks.size,
        },
    }
    api = Api(futures, folders, capabilities, ranks=ranks.size)
    http = HttpOptions(arguments.host, arguments.port, key, arguments.max_request_mib * 2**20, arguments.max_file_gib * 2**30)
    try:
        server = create_http_server(api, http)
    except OSError as error:
        sys.exit(f"cannot listen at {arguments.host}, port {arguments.port}: {error.strerror or error}; choose another --host or --port")
    say(computes_on(ranks.device, options.dtype, ranks.size))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    threading.Thread(target=watch_sessions, args=(api,), daemon=True).start()
    shown = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
    print(json.dumps({"listening": f"http://{shown}:{server.server_address[1]}"}), flush=True)
    service.lead()


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Serves a model for training and sampling.")
    parser.add_argument("--model", type=Path, help="checkpoint folder in Hugging Face layout; weights are initialised from a seed if it has none (default: clients upload their models)")
    parser.add_argument("--name", help="model name for clients (default: the folder's name)")
    parser.add_argument("--checkpoints", type=Path, default=Path("checkpoints"), help="folder that saving and loading are restricted to")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="port (default: any free one)")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), help="precision (default: bfloat16 on a GPU, the only choice there; float32 on a CPU)")
    parser.add_argument("--batch-tokens", type=int, help="maximum number of tokens in one forward pass (default: by the model's size, at most 16384 on a GPU, 4096 on a CPU)")
    parser.add_argument("--memory", type=float, help="maximum GPU memory of each process in GiB (default: as much as runs need, up to the whole GPU)")
    parser.add_argument("--sample-rows", type=int, help="maximum number of sequences sampled at once; fewer need less memory")
    parser.add_argument("--activation-checkpointing", action="store_true", help="recompute activations: less memory, a third more computation")
    parser.add_argument("--eager", action="store_true", help="do not compile the model on a GPU")
    parser.add_argument("--threads", type=int, help="CPU threads (default: 4 beside a GPU, otherwise all)")
    parser.add_argument("--until-stdin-closes", action="store_true", help="exit when standard input closes, for example because the parent process was killed")
    parser.add_argument("--max-request-mib", type=int, default=512, help="maximum size of a request")
    parser.add_argument("--max-file-gib", type=int, default=64, help="maximum size of a file in an uploaded checkpoint")
    return parser.parse_args()


def end_with_stdin() -> None:
    """Waits for the end of standard input, which closes when the parent process is killed in any
    way.
    """
    while os.read(0, 4096):
        pass
    os._exit(0)


def watch_sessions(api: Api) -> None:
    while True:
        time.sleep(10)
        api.free_silent_sessions()


if __name__ == "__main__":
    main()
