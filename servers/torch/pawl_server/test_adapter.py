"""Adapters on disk: merged exactly once, with an adapter and without, by us and by PEFT."""
import importlib.util
import json
import shutil
import tempfile
import unittest
from pathlib import Path

import torch

from .checkpoint import _merged
from .engine import Engine
from .errors import RequestError
from .losses import standard_objective
from .safetensors_file import SafetensorsFile, write_safetensors
from .testing import CONFIG, model_folder, random_sequences, tiny_engine
from .weights import AdamParams

SEQUENCES = random_sequences((40, 25), mask=1.1)


def score(engine: Engine, reference: bool = False) -> torch.Tensor:
    return engine.score(SEQUENCES, reference=reference, entropies=False, values=False).logprobs


def learn(engine: Engine, times: int = 3) -> None:
    for _ in range(times):
        engine.learn(SEQUENCES, standard_objective("cross_entropy", {}))
        engine.step(AdamParams(1e-2))


class AdapterTest(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)
        base, root = model_folder(), tempfile.TemporaryDirectory()
        self.addCleanup(base.cleanup)
        self.addCleanup(root.cleanup)
        self.root = Path(root.name)
        # Weights on disk, because PEFT and transformers read them.
        tiny_engine(base.name).save(self.root / "base", optimizer=False)
        self.plain = score(tiny_engine(str(self.root / "base")))
        self.engine = tiny_engine(str(self.root / "base"), lora_rank=4)
        learn(self.engine)
        self.learnt = score(self.engine)
        self.assertGreater(float((self.learnt - self.plain).abs().max()), 0.05)
        self.folder = self.root / "saved"
        self.engine.save(self.folder, optimizer=True)

    def close(self, a, b):
        torch.testing.assert_close(a, b, rtol=0, atol=2e-5)

    def test_is_applied_once_however_it_is_opened(self):
        for rank in (4, 0):
            engine = tiny_engine(str(self.folder), lora_rank=rank)
            self.close(score(engine), self.learnt)
            engine.load(self.folder, optimizer=True)
            self.close(score(engine), self.learnt)
            # Saving repeatedly does not change it.
            engine.save(self.root / "again", optimizer=False)
            self.close(score(tiny_engine(str(self.root / "again"))), self.learnt)
        base, saved = (SafetensorsFile(folder / "model.safetensors") for folder in (self.root / "base", self.folder))
        for name in base.shapes:
            self.assertTrue(torch.equal(base.read(name), saved.read(name)), name)

    def test_weights_below_it_are_written_once(self):
        inode = lambda folder: (folder / "model.safetensors").stat().st_ino
        folders = [self.root / name for name in ("second", "third")]
        learn(self.engine)
        learnt = score(self.engine)
        for folder in folders:
            self.engine.save(folder, optimizer=True)
            self.assertEqual(inode(folder), inode(self.folder))
        for folder in (self.folder, folders[0]):
            shutil.rmtree(folder)
        self.close(score(tiny_engine(str(folders[1]), lora_rank=4)), learnt)
        # Where none is left to share, and merged, they are written.
        shutil.rmtree(folders[1])
        for name, merged in (("anew", False), ("merged", True)):
            self.engine.save(self.root / name, optimizer=False, merged=merged)
            self.assertEqual((self.root / name / "model.safetensors").stat().st_nlink, 1)
            self.close(score(tiny_engine(str(self.root / name))), learnt)
        # Loaded weights are shared with what they were loaded from.
        other = tiny_engine(str(self.root / "base"), lora_rank=4)
        other.load(self.root / "anew", optimizer=False)
        other.save(folders[0], optimizer=False)
        self.assertEqual(inode(folders[0]), inode(self.root / "anew"))

    def test_resumes_from_a_checkpoint_as_if_nothing_had_happened(self):
        other = tiny_engine(str(self.folder), lora_rank=4)
        other.load(self.folder, optimizer=True)
        learn(self.engine), learn(other)
        self.close(score(other), score(self.engine))

    def test_merged_is_a_plain_model(self):
        self.engine.save(self.root / "merged", optimizer=False, merged=True)
        self.assertEqual(sorted(p.name for p in (self.root / "merged").iterdir()), ["config.json", "model.safetensors"])
        self.close(score(tiny_engine(str(self.root / "merged"))), self.learnt)
        # A new adapter on it starts without a change.
        self.close(score(tiny_engine(str(self.root / "merged"), lora_rank=2)), self.learnt)
        with self.assertRaisesRegex(RequestError, "save them with optimizer: false"):
            self.engine.save(self.root / "no", optimizer=True, merged=True)

    def test_plain_weights_load_below_a_fresh_adapter(self):
        self.engine.load(self.root / "base", optimizer=True)
        self.close(score(self.engine), self.plain)

    def test_a_reference_keeps_its_base_weights(self):
        start = tiny_engine(str(self.root / "base"), lora_rank=4)
        start.snapshot_reference()
        start.load(self.folder, optimizer=False)
        self.close(score(start), self.learnt)
        self.close(score(start, reference=True), self.plain)
        self.engine.save(self.root / "merged", optimizer=False, merged=True)
        with self.assertRaisesRegex(RequestError, "differ from those of the reference"):
            start.load(self.root / "merged", optimizer=False)

    def test_old_checkpoints_are_read_correctly(self):
        old = self.root / "old"
        self.engine.save(old, optimizer=True)
        for name in ("adapter_config.json", "adapter_model.safetensors"):
            (old / name).unlink()
        weights = self.engine.weights
        pieces = [piece for parts in weights.pieces.values() for piece in parts]
        merged = [(p.name, _merged(weights, p.parameter, 4)[p.begin : p.end].clone()) for p in pieces]
        write_safetensors(old / "model.safetensors", [(n, tuple(v.shape), lambda v=v: v) for n, v in merged])
        with self.assertRaisesRegex(RequestError, "its weights include the adapter, so start a new run"):
            tiny_engine(str(old), lora_rank=4).load(old, optimizer=True)
        ours = [(name, tuple(p.shape), lambda p=p: p) for name, p in weights.masters.items()]
        write_safetensors(old / "adapter.safetensors", ours)
        for rank in (4, 0):
            self.close(score(tiny_engine(str(old), lora_rank=rank)), self.learnt)
        other = tiny_engine(str(self.root / "base"), lora_rank=4)
        other.load(old, optimizer=True)
        learn(self.engine), learn(other)
        self.close(score(other), score(self.engine))

    def test_what_does_not_fit_is_rejected(self):
        with self.assertRaisesRegex(ValueError, "has rank 4, but rank 2 was requested"):
            tiny_engine(str(self.folder), lora_rank=2)
        file = self.folder / "adapter_config.json"
        fields = json.loads(file.read_text())
        for change, reason in (({"use_dora": True}, "not supported: use_dora"), ({"peft_type": "IA3"}, "expected 'LORA'"), ({"r": 3}, "expected \\[3, ")):
            file.write_text(json.dumps({**fields, **change}))
            with self.assertRaisesRegex(ValueError, reason):
                tiny_engine(str(self.folder))

    @unittest.skipUnless(importlib.util.find_spec("peft"), "peft is not installed")
    def test_peft_reads_it(self):
        from peft import PeftModel
        from transformers import AutoModelForCausalLM

        base = AutoModelForCausalLM.from_pretrained(self.root / "base", dtype=torch.float32)
        # By itself, transformers follows the adapter's configuration to the weights next to it.
        for theirs in (PeftModel.from_pretrained(base, self.folder), AutoModelForCausalLM.from_pretrained(self.folder, dtype=torch.float32)):
            self.assertTrue(any("lora_A" in name for name, _ in theirs.named_parameters()))
            self.close(self.theirs(theirs), self.learnt)

    @unittest.skipUnless(importlib.util.find_spec("peft"), "peft is not installed")
    def test_peft_wrote_it(self):
        from peft import LoraConfig, get_peft_model
        from transformers import AutoModelForCausalLM

        base = AutoModelForCausalLM.from_pretrained(self.root / "base", dtype=torch.float32)
        torch.manual_seed(0)
        for modules, shared in ((["o_proj", "down_proj"], True), (["q_proj", "v_proj"], False)):
            theirs = get_peft_model(base, LoraConfig(r=2, lora_alpha=5, target_modules=modules, init_lora_weights=False, task_type="CAUSAL_LM"))
            expected = self.theirs(theirs)
            self.assertGreater(float((expected - self.plain).abs().max()), 0.01)
            folder = self.root / "-".join(modules)
            tiny_engine(str(self.root / "base")).save(folder, optimizer=False)
            theirs.save_pretrained(folder)
            base = theirs.unload()
            self.close(score(tiny_engine(str(folder))), expected)
            if shared:
                self.close(score(tiny_engine(str(folder), lora_rank=2)), expected)
            else:
                with self.assertRaisesRegex(ValueError, "each have their own lora_A"):
                    tiny_engine(str(folder), lora_rank=2)

    def theirs(self, model) -> torch.Tensor:
        found = []
        for begin, end in zip(SEQUENCES.starts, SEQUENCES.starts[1:]):
            with torch.no_grad():
                logp = model(input_ids=SEQUENCES.tokens[None, begin:end]).logits[0].log_softmax(-1)
            found.append(logp.gather(1, SEQUENCES.targets[begin:end, None])[:, 0])
        self.assertEqual(logp.shape[1], CONFIG["vocab_size"])
        return torch.cat(found)


if __name__ == "__main__":
    unittest.main()
