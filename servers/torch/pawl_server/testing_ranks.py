"""One rank of the job started by test_ranks.py: updates, samples, a checkpoint, and more updates."""
import json
import os
import sys
from pathlib import Path

import torch

from pawl_server import engine as engine_module
from pawl_server.ranks import join_ranks
from pawl_server.test_ranks import samples, updates
from pawl_server.testing import tiny_engine

if __name__ == "__main__":
    torch.set_num_threads(1)
    ranks = join_ranks()
    if sys.argv[3] == "whole":
        # As with a PyTorch that has no FSDP2.
        engine_module.can_shard = lambda: False
    engine = tiny_engine(sys.argv[1], ranks)
    found = {"updates": updates(engine, 4), "samples": samples(engine)}
    engine.save(Path(sys.argv[2]) / "two", optimizer=True)
    found["later"] = updates(engine, 2)
    if ranks.first:
        print(json.dumps(found), flush=True)
    ranks.gather("finished")
    # As when the server exits: gloo's threads may still hold tensors, and freeing them while the
    # interpreter shuts down aborts.
    os._exit(0)
