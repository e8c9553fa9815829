"""Hybrids, through transformers' own forward pass and cache, with random weights: what is scored, learned
and sampled is what transformers computes for each sequence alone.
"""
import importlib.util
import json
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from unittest import mock

import torch

from .engine import Engine
from .losses import standard_objective
from .recurrent_model import RecurrentModel
from .sampler import Job, SampleRequest
from .testing import ALONE, random_sequences, tiny_engine
from .test_self_check import LINEAR, write
from .weights import AdamParams

CROSS_ENTROPY = standard_objective("cross_entropy", {})
# With sequences longer than the chunks in which a state is computed.
LENGTHS = (130, 64, 30, 7)
QWEN = {**LINEAR, "head_dim": 16}
LFM2 = {"layer_types": ["conv", "full_attention"] * 2}
HYBRIDS = {"qwen3.5": ("Qwen3_5TextConfig", QWEN), "lfm2": ("Lfm2Config", LFM2), "lfm2 with biases": ("Lfm2Config", {**LFM2, "conv_bias": True})}


def score(engine: Engine, sequences, reference=False):
    return engine.score(sequences, reference=reference, entropies=False, values=False).logprobs


def shake(engine: Engine, size=0.05) -> None:
    """Moves all weights, so that no bias or adapter is 0."""
    generator = torch.Generator().manual_seed(1)
    for name, p in engine.weights.parameters.items():
        engine.weights.assign(name, p.detach() + size * torch.randn(p.shape, generator=generator))


@unittest.skipUnless(importlib.util.find_spec("transformers"), "transformers is not installed")
class RecurrentTest(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)
        self.root = tempfile.TemporaryDirectory()
        self.addCleanup(self.root.cleanup)
        self.path = Path(self.root.name)

    def each(self):
        """A folder for each hybrid, named after it."""
        for name, (kind, changes) in HYBRIDS.items():
            if not write(self.path / name, kind, changes):
                self.skipTest(f"this transformers has no {kind}")
            yield self.path / name

    def test_scores_gradients_and_greedy_answers_are_those_of_transformers(self):
        from transformers import AutoModelForCausalLM

        sequences = random_sequences(LENGTHS)
        for folder in self.each():
            engine = tiny_engine(str(folder))
            self.assertEqual(engine.model.masks_padding, "biases" not in folder.name)
            shake(engine)
            engine.save(folder / "saved", optimizer=False)
            theirs = AutoModelForCausalLM.from_pretrained(folder / "saved", dtype=torch.float32)
            loss, chosen = 0.0, []
            for begin, end in zip(sequences.starts, sequences.starts[1:]):
                part = slice(begin, end)
                logp = theirs(sequences.tokens[None, part]).logits[0].log_softmax(-1)
                chosen.append(logp.gather(1, sequences.targets[part, None])[:, 0])
                loss = loss - (chosen[-1] * sequences.inputs["weights"][part])[sequences.mask[part]].sum()
            loss.backward()
            learned = engine.learn(sequences, CROSS_ENTROPY)
            expected = torch.cat(chosen).detach()[sequences.mask]
            torch.testing.assert_close(score(engine, sequences)[sequences.mask], expected, rtol=0, atol=1e-4)
            self.assertAlmostEqual(learned.loss, float(loss.detach()), places=2)
            gradients = {name: p.grad for name, p in theirs.named_parameters()}
            for name, gradient in engine.weights.gradients.items():
                there = gradients.pop(name.removeprefix("inner."))
                self.assertLess(float((gradient - there).norm() / there.norm()), 1e-3, name)
            self.assertEqual(list(gradients), [])

            # In one wave, where padding is masked, with rows that end at different times.
            prompts = [sequences.tokens[: 60 - 9 * n].tolist() for n in range(3)]
            rows = engine.sample([SampleRequest(tuple(prompt), 1, 12 - 3 * n, 0, temperature=0.0) for n, prompt in enumerate(prompts)])
            with torch.no_grad():
                for prompt, (row,) in zip(prompts, rows):
                    text = list(prompt)
                    for _ in row.tokens:
                        text.append(int(theirs(torch.tensor([text])).logits[0, -1].argmax()))
                    self.assertEqual(row.tokens, text[len(prompt) :])

    def test_samples_do_not_depend_on_their_wave(self):
        for folder in self.each():
            engine = tiny_engine(str(folder))
            requests = [SampleRequest(tuple(range(n, 40)), 2, 10, n, stop=((3,), (5, 6))) for n in range(0, 36, 7)]
            together = [[(row.tokens, row.stop_reason) for row in group] for group in engine.sample(requests)]
            alone = [[(row.tokens, row.stop_reason) for row in engine.sample([request])[0]] for request in requests]
            self.assertEqual(together, alone)
            few = Engine(folder, ALONE, replace(engine.options, sample_rows=3), lora_rank=0, value_head=False, seed=3)
            self.assertEqual([[(row.tokens, row.stop_reason) for row in group] for group in few.sample(requests)], alone)
            # Those that come while others are sampled, and a wave that memory does not suffice for.
            found = []
            late = iter([[Job(request, found.append) for request in requests]])
            whole, failures = engine.model.extend, iter([True])

            def short(cache, ids, *rest):
                if len(ids) > 1 and next(failures, False):
                    raise torch.cuda.OutOfMemoryError("no memory")
                return whole(cache, ids, *rest)

            with mock.patch.object(engine.model, "extend", short):
                engine.sample(requests[:1], lambda: next(late, []))
            self.assertCountEqual([[(row.tokens, row.stop_reason) for row in rows] for rows in found], alone)

    def test_adapters_references_and_optimiser_state_are_kept(self):
        sequences = random_sequences(LENGTHS)
        for folder in self.each():
            for rank in (0, 2):
                engine = tiny_engine(str(folder), lora_rank=rank, value_head=True)
                engine.snapshot_reference()
                before = score(engine, sequences)
                for _ in range(2):
                    engine.learn(sequences, CROSS_ENTROPY)
                    engine.step(AdamParams(1e-3))
                learnt = score(engine, sequences)
                self.assertGreater(float((learnt - before).abs().max()), 1e-2)
                torch.testing.assert_close(score(engine, sequences, reference=True), before)
                saved = folder / f"rank{rank}"
                engine.save(saved, optimizer=True)
                other = tiny_engine(str(saved), lora_rank=rank, value_head=True)
                other.load(saved, optimizer=True)
                torch.testing.assert_close(score(other, sequences), learnt)
                for each in (engine, other):
                    each.learn(sequences, CROSS_ENTROPY)
                    each.step(AdamParams(1e-3))
                torch.testing.assert_close(score(other, sequences), score(engine, sequences))
                # An adapter is merged when it is opened without one.
                torch.testing.assert_close(score(tiny_engine(str(saved)), sequences), learnt, rtol=0, atol=1e-3)

    @unittest.skipUnless(importlib.util.find_spec("peft"), "peft is not installed")
    def test_peft_reads_the_adapter(self):
        from peft import PeftModel
        from transformers import AutoModelForCausalLM

        sequences = random_sequences((30,))
        for folder in self.each():
            engine = tiny_engine(str(folder), lora_rank=2)
            shake(engine)
            engine.save(folder / "adapted", optimizer=False)
            base = AutoModelForCausalLM.from_pretrained(folder / "adapted", dtype=torch.float32)
            theirs = PeftModel.from_pretrained(base, folder / "adapted")
            adapted = {name.split(".lora_A")[0] for name, _ in theirs.named_parameters() if "lora_A" in name}
            self.assertEqual(2 * len(adapted), len(engine.weights.trained))
            with torch.no_grad():
                logp = theirs(sequences.tokens[None]).logits[0].log_softmax(-1).gather(1, sequences.targets[:, None])[:, 0]
            torch.testing.assert_close(score(engine, sequences)[sequences.mask], logp[sequences.mask], rtol=0, atol=1e-3)

    def test_of_a_model_of_text_and_images_the_text_part_is_trained_and_saved(self):
        import transformers

        if not hasattr(transformers, "Qwen3_5ForConditionalGeneration"):
            self.skipTest("this transformers has no Qwen3_5ForConditionalGeneration")
        write(self.path / "text", "Qwen3_5TextConfig", QWEN)
        text = transformers.AutoConfig.from_pretrained(self.path / "text")
        small = {"depth": 1, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "out_hidden_size": 16, "num_position_embeddings": 16}
        config = transformers.Qwen3_5Config(text_config=text.to_dict(), vision_config=small, tie_word_embeddings=text.tie_word_embeddings)
        both = transformers.Qwen3_5ForConditionalGeneration(config)
        both.save_pretrained(self.path / "both")
        engine, sequences = tiny_engine(str(self.path / "both")), random_sequences((30,))
        expected = both(sequences.tokens[None]).logits[0].log_softmax(-1).gather(1, sequences.targets[:, None])[:, 0].detach()
        torch.testing.assert_close(score(engine, sequences)[sequences.mask], expected[sequences.mask], rtol=0, atol=1e-4)
        engine.save(self.path / "saved", optimizer=False)
        self.assertEqual(json.loads((self.path / "saved" / "config.json").read_text())["architectures"], ["Qwen3_5ForCausalLM"])
        engine.load(self.path / "saved", optimizer=False)
        torch.testing.assert_close(score(tiny_engine(str(self.path / "saved")), sequences), score(engine, sequences))

    def test_a_model_that_disagrees_with_itself_is_rejected(self):
        write(self.path / "lfm2", "Lfm2Config", LFM2)
        # As if packed sequences were one.
        with mock.patch("pawl_server.recurrent_model._rows", lambda starts, total: iter([([(0, total)], total)])):
            with self.assertRaisesRegex(ValueError, "packed into one batch and each alone"):
                tiny_engine(str(self.path / "lfm2"))
        right = RecurrentModel.extend
        with mock.patch.object(RecurrentModel, "extend", lambda *given: 1.5 * right(*given)):
            with self.assertRaisesRegex(ValueError, "when they are sampled and when they are scored"):
                tiny_engine(str(self.path / "lfm2"))


if __name__ == "__main__":
    unittest.main()
