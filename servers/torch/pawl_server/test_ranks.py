"""Two processes give the same results as one; one can resume a checkpoint of two; a lost rank ends
them all.
"""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import torch

from .losses import standard_objective
from .sampler import SampleRequest
from .testing import ARCHITECTURES, model_folder, random_sequences, tiny_engine
from .weights import AdamParams

HERE = Path(__file__).resolve().parent
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(HERE.parent)}


HAS_TORCHRUN = int(torch.__version__.split(".")[0]) >= 2


def two_ranks(*arguments: str) -> list[subprocess.Popen[str]]:
    """Two processes as started by torchrun; Debian's torchrun of 1.13 does not run with Python
    3.11.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    return [
        subprocess.Popen(
            [sys.executable, *arguments],
            env={**ENVIRONMENT, **place, "RANK": rank, "LOCAL_RANK": rank},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in ("0", "1")
    ]


def updates(engine, count):
    """Some updates, one with fewer sequences than ranks; their results, and the scores before and
    after.
    """
    found = []
    engine.snapshot_reference()
    for step in range(count):
        sequences = random_sequences((20, 31, 7) if step % 2 == 0 else (25,), seed=step)
        score = lambda reference: float(engine.score(sequences, reference=reference, entropies=False, values=False).logprobs.sum())
        before = [score(False), score(True)]
        learned = engine.learn(sequences, standard_objective("cross_entropy", {}))
        norm = engine.step(AdamParams(1e-2, grad_clip_norm=1.0))
        found.append([*before, learned.loss, float(learned.logprobs.sum()), norm, score(False)])
    return found


def samples(engine):
    groups = engine.sample([SampleRequest((1, 2, i), 2, 6, i) for i in range(3)])
    return [[row.tokens for row in group] for group in groups]


class RanksTest(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)
        self.model, self.root = model_folder(), tempfile.TemporaryDirectory()
        self.addCleanup(self.model.cleanup)
        self.addCleanup(self.root.cleanup)

    def test_two_ranks_give_the_same_as_one(self):
        self.compare("sharded")

    def test_two_ranks_share_every_kind_of_norm(self):
        self.model = model_folder(**ARCHITECTURES["gemma3"])
        self.addCleanup(self.model.cleanup)
        self.compare("sharded")

    def test_two_ranks_with_whole_models_give_the_same_as_one(self):
        self.compare("whole")

    def compare(self, way):
        ranks = two_ranks(str(HERE / "testing_ranks.py"), self.model.name, self.root.name, way)
        outputs = [rank.communicate(timeout=600) for rank in ranks]
        for rank, (_, errors) in zip(ranks, outputs):
            self.assertEqual(rank.returncode, 0, errors[-2000:])
        there = json.loads(outputs[0][0].splitlines()[-1])
        alone = tiny_engine(self.model.name)
        for ours, theirs in zip(updates(alone, 4), there["updates"]):
            torch.testing.assert_close(torch.tensor(theirs), torch.tensor(ours), rtol=1e-4, atol=1e-4)
        self.assertEqual(there["samples"], samples(alone))
        resumed = tiny_engine(self.model.name)
        resumed.load(Path(self.root.name) / "two", optimizer=True)
        for name, p in alone.weights.parameters.items():
            torch.testing.assert_close(resumed.weights.parameters[name], p, rtol=1e-3, atol=1e-4, msg=name)
        for ours, theirs in zip(updates(resumed, 2), there["later"]):
            torch.testing.assert_close(torch.tensor(theirs), torch.tensor(ours), rtol=1e-3, atol=1e-3)

    def test_files_that_one_rank_cannot_write_or_read(self):
        for lora in ("0", "2"):
            with self.subTest(lora=lora), tempfile.TemporaryDirectory() as root:
                self.fail_on_one_rank(Path(root), lora)

    def fail_on_one_rank(self, root, lora):
        (root / "file").write_text("")
        for rank in (0, 1):
            (root / f"of-{rank}").mkdir()
            shutil.copytree(self.model.name, root / f"of-{rank}" / "damaged")
        alone = tiny_engine(self.model.name)
        alone.save(root / "of-0" / "apart", optimizer=True)
        alone.save(root / "of-0" / "damaged", optimizer=True)
        shutil.rmtree(root / "of-1" / "damaged")
        shutil.copytree(root / "of-0" / "damaged", root / "of-1" / "damaged")
        # Complete up to its last tensor, in which it breaks off.
        weights = root / "of-1" / "damaged" / "model.safetensors"
        content = bytearray(weights.read_bytes())
        content[-4:] = b"\x00\x00\xc0\x7f"
        weights.write_bytes(content)
        ranks = two_ranks(str(HERE / "testing_failures.py"), self.model.name, str(root), lora)
        for rank in ranks:
            self.addCleanup(lambda rank=rank: rank.poll() is None and rank.kill())
        outputs = [rank.communicate(timeout=300) for rank in ranks]
        for rank, (_, errors) in zip(ranks, outputs):
            self.assertEqual(rank.returncode, 0, errors[-2000:])
        first, second = json.loads(outputs[0][0].splitlines()[-1])
        good = ("create", "reference", "save", "load", "load again", "forward")
        self.assertEqual({name: first[name] for name in good}, {name: "done" for name in good})
        self.assertEqual({name: second[name] for name in good}, {name: "done" for name in good})
        for name in ("save under a file", "save 0", "save 4096", "save 20000"):
            self.assertIn("the server could not write", first[name])
            # Only the first rank writes.
            self.assertEqual(second[name], "done")
        for name in ("create apart", "load apart"):
            self.assertIn("there is no checkpoint", first[name])
            self.assertIn("there is no checkpoint", second[name])
        self.assertIn("process 2 of 2", first["load damaged apart"])
        self.assertIn("contains NaN", second["load damaged apart"])
        self.assertEqual(list(root.glob(".*")), [])

    @unittest.skipUnless(HAS_TORCHRUN, "this PyTorch has no torchrun that works")
    def test_a_lost_rank_ends_the_server(self):
        serve = [str(HERE.parent / "serve.py"), "--model", self.model.name, "--checkpoints", self.root.name]
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", *serve]
        job = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(lambda: job.poll() is None and job.kill())
        self.assertIn("listening", job.stdout.readline())
        ranks = subprocess.run(["ps", "-o", "pid=", "--ppid", str(job.pid)], capture_output=True, text=True).stdout.split()
        os.kill(int(ranks[-1]), signal.SIGKILL)
        begin = time.monotonic()
        job.communicate(timeout=300)
        self.assertNotEqual(job.returncode, 0)
        self.assertLess(time.monotonic() - begin, 300)


if __name__ == "__main__":
    unittest.main()
