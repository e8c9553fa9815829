"""One rank of the job started by test_ranks.py: files that cannot be written or read by one rank alone."""
import json
import os
import resource
import sys
from contextlib import contextmanager
from pathlib import Path

import torch

from pawl_server.engine_types import EngineOptions
from pawl_server.errors import RequestError
from pawl_server.folders import Folders
from pawl_server.futures import Futures
from pawl_server.messages import Limits, parse
from pawl_server.ranks import join_ranks
from pawl_server.service import Service, limits_of


@contextmanager
def files_of_at_most(size):
    """No file of this process grows beyond a size, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


if __name__ == "__main__":
    torch.set_num_threads(1)
    model, root, lora = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    ranks = join_ranks()
    # As on two machines with file systems of their own.
    apart = root / f"of-{ranks.rank}"
    options = EngineOptions(dtype=torch.float32, batch_tokens=None, checkpointing=False, compiled=False, sample_rows=None, memory=None)
    service = Service(Folders(model, "tiny", root), ranks, options, Futures())
    found = {}

    def run(name, operation, body, where=None):
        # As in the server, the others begin when the first rank says so.
        ranks.broadcast(name)
        body = {"model_id": "m", "assigned_id": "m", **body}
        service.folders = Folders(model, "tiny", where or root)
        engine = service.models.get("m")
        try:
            work = parse(operation, body, Limits(0, 0) if engine is None else limits_of(engine.config))
            service.run(operation, body, work)
            found[name] = "done"
        except RequestError as error:
            found[name] = str(error)

    # Only the first rank has a model there.
    run("create apart", "create_model", {"base_model": "checkpoint:apart"}, apart)
    run("create", "create_model", {"base_model": "tiny", "lora_config": {"rank": lora} if lora else None, "seed": 1})
    run("reference", "snapshot_reference", {"seq_id": 1})
    run("save under a file", "save_weights", {"seq_id": 2, "path": "file/below", "optimizer": True})
    for size in (0, 4096, 20_000):
        with files_of_at_most(size):
            run(f"save {size}", "save_weights", {"seq_id": 3, "path": "two", "optimizer": True})
    run("save", "save_weights", {"seq_id": 4, "path": "two", "optimizer": True})
    run("load", "load_weights", {"seq_id": 5, "path": "two", "optimizer": True})
    run("load apart", "load_weights", {"seq_id": 6, "path": "apart", "optimizer": True}, apart)
    run("load damaged apart", "load_weights", {"seq_id": 7, "path": "damaged", "optimizer": True}, apart)
    run("load again", "load_weights", {"seq_id": 8, "path": "two", "optimizer": True})
    forward = {"data": [{"model_input": [1, 2], "loss_fn_inputs": {"target_tokens": [2, 3]}}], "loss_fn": "cross_entropy"}
    run("forward", "forward", {"forward_input": forward})
    everywhere = ranks.gather(found)
    if ranks.first:
        print(json.dumps(everywhere), flush=True)
    ranks.gather("finished")
    os._exit(0)
