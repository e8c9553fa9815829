"""The engine against plain PyTorch, and that sampling, saving and adapters agree with it."""
import gc
import importlib.util
import os
import tempfile
import unittest
import weakref
from dataclasses import replace
from pathlib import Path

import torch

from . import output_head
from .engine import Engine
from .engine_types import EngineOptions
from .errors import RequestError
from .expression import parse_objective
from .losses import standard_objective
from .sampler import SampleRequest, Sampler
from .sequences import Sequences, divide
from .testing import ALONE, CONFIG, model_folder, random_sequences, tiny_engine
from .weights import AdamParams

CROSS_ENTROPY = standard_objective("cross_entropy", {})
X = {"op": "logprob"}
# Every quantity in one loss: the log-probability, the value, and the entropy.
EVERYTHING = parse_objective(
    {
        "loss": {
            "op": "add",
            "x": {"op": "mul", "x": {"op": "input", "name": "weights"}, "y": {"op": "exp", "x": X}},
            "y": {"op": "add", "x": {"op": "mul", "x": {"op": "value"}, "y": {"op": "value"}}, "y": {"op": "neg", "x": {"op": "entropy"}}},
        },
        "metrics": {"entropy": {"op": "entropy"}},
    }
)


def plain_loss(engine, sequences):
    """EVERYTHING, written out over full logits, one sequence at a time."""
    total, starts = 0.0, sequences.starts
    for begin, end in zip(starts, starts[1:]):
        tokens = slice(begin, end)
        one = Sequences((end - begin,), sequences.tokens[tokens], sequences.targets[tokens], sequences.mask[tokens], {})
        from .attention import PackedAttention

        hidden, weight, head = engine.model(
            one.tokens, torch.arange(end - begin), PackedAttention(one.lengths, torch.device("cpu")), lambda *x: x
        )
        logits = hidden @ weight.t()
        if sequences.temperatures is not None:
            logits = logits / sequences.temperatures[tokens, None]
        logp = logits.log_softmax(-1)
        chosen = logp.gather(1, one.targets[:, None])[:, 0]
        values, entropy = hidden @ head[0], -(logp.exp() * logp).sum(-1)
        losses = sequences.inputs["weights"][tokens] * chosen.exp() + values**2 - entropy
        total = total + losses[one.mask].sum()
    return total


class EngineTest(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)
        self.folder = model_folder()
        self.addCleanup(self.folder.cleanup)

    def test_an_engine_that_is_gone_leaves_no_weights(self):
        # In 16 bits gradients are collected by hooks, which PyTorch before 2.1 does not have.
        hooks = hasattr(torch.Tensor, "register_post_accumulate_grad_hook")
        for dtype in (torch.float32, *([torch.bfloat16] if hooks else [])):
            with self.subTest(dtype=dtype):
                options = EngineOptions(dtype=dtype, batch_tokens=4096, checkpointing=False, compiled=False)
                engine = Engine(Path(self.folder.name), ALONE, options, lora_rank=0, value_head=False, seed=3)
                engine.snapshot_reference()
                engine.sample([SampleRequest((1, 2, 3), 1, 4, 0, continued=True)])
                engine.learn(random_sequences((20, 10)), CROSS_ENTROPY)
                engine.step(AdamParams(1e-3))
                weights = engine.weights
                held = [weights, engine.sampler.pool.pages, *weights.parameters.values(), *weights.masters.values()]
                held = [weakref.ref(one) for one in [*held, *engine.reference.values()]]
                del engine, weights
                gc.collect()
                self.assertEqual([one() for one in held if one() is not None], [])

    def test_loss_and_gradient_are_those_of_plain_autograd(self):
        plain = random_sequences((30, 5, 47, 1))
        tempered = replace(plain, temperatures=0.3 + torch.arange(83) / 50)
        for checkpointing, sequences in ((False, plain), (True, plain), (False, tempered)):
            engine = tiny_engine(self.folder.name, value_head=True, checkpointing=checkpointing)
            loss = plain_loss(engine, sequences)
            loss.backward()
            expected = {name: p.grad.clone() for name, p in engine.weights.trained.items()}
            engine.weights.clear()
            learned = engine.learn(sequences, EVERYTHING)
            self.assertAlmostEqual(learned.loss, float(loss.detach()), places=3)
            for name, gradient in engine.weights.gradients.items():
                torch.testing.assert_close(gradient, expected[name], rtol=1e-3, atol=1e-5, msg=name)

    def test_chunks_and_batches_change_nothing(self):
        sequences = random_sequences((60, 50, 40, 30, 20))
        whole = tiny_engine(self.folder.name)
        first = whole.learn(sequences, CROSS_ENTROPY)
        chunks, output_head._chunks = output_head._chunks, lambda hidden, weight: (slice(i, i + 16) for i in range(0, len(hidden), 16))
        try:
            parts = tiny_engine(self.folder.name, batch_tokens=64)
            second = parts.learn(sequences, CROSS_ENTROPY)
        finally:
            output_head._chunks = chunks
        torch.testing.assert_close(second.logprobs, first.logprobs, rtol=1e-5, atol=1e-5)
        for name, gradient in whole.weights.gradients.items():
            torch.testing.assert_close(parts.weights.gradients[name], gradient, rtol=1e-4, atol=1e-5, msg=name)

    def test_sampling_agrees_with_scoring_and_ignores_the_batch(self):
        engine = tiny_engine(self.folder.name)
        requests = [
            SampleRequest(tuple((i * 5 + j) % 40 for j in range(1 + 30 * i)), 1 + i, 20 + i, i, 1.0 if i else 0.7, 4 * (i % 2))
            for i in range(4)
        ]
        groups = engine.sample(requests)
        for request, group in zip(requests, groups):
            self.assertEqual([row.tokens for row in engine.sample([request])[0]], [row.tokens for row in group])
            for row in group:
                ids = torch.tensor([*request.prompt, *row.tokens])
                mask = torch.arange(len(ids) - 1) >= len(request.prompt) - 1
                scored = engine.score(Sequences((len(ids) - 1,), ids[:-1], ids[1:], mask, {}), reference=False, entropies=False, values=False)
                torch.testing.assert_close(scored.logprobs[mask], torch.tensor(row.logprobs), rtol=0, atol=1e-5)
        pool = engine.sampler.pool
        self.assertEqual((len(pool.free), pool.used), (pool.pages.count, 0))

    def test_scoring_at_a_temperature_gives_the_distribution_sampled_from(self):
        engine = tiny_engine(self.folder.name)
        row = engine.sample([SampleRequest((1, 2, 3), 1, 20, 0, temperature=0.7)])[0][0]
        ids = torch.tensor([1, 2, 3, *row.tokens])
        mask = torch.arange(22) >= 2
        score = lambda temperatures: engine.score(
            Sequences((22,), ids[:-1], ids[1:], mask, {}, temperatures), reference=False, entropies=True, values=False
        )
        cool = score(torch.full((22,), 0.7))
        torch.testing.assert_close(cool.logprobs[mask], torch.tensor(row.sampled_logprobs), rtol=0, atol=1e-5)
        self.assertGreater(float((cool.logprobs[mask] - torch.tensor(row.logprobs)).abs().max()), 0.02)
        self.assertLess(float(cool.entropies[mask].mean()), float(score(None).entropies[mask].mean()))

    def test_fewer_rows_at_a_time_give_the_same_samples(self):
        engine = tiny_engine(self.folder.name)
        requests = [SampleRequest((1, 2, i), 3, 5, i) for i in range(3)]
        few = Sampler(engine.model, engine.memory, torch.float32, cuda_graphs=False, rows=2)
        with torch.no_grad():
            found = [[row.tokens for row in group] for group in few.sample(requests)]
        self.assertEqual(found, [[row.tokens for row in group] for group in engine.sample(requests)])
        self.assertLess(few.pool.pages.count, engine.sampler.pool.pages.count)

    def test_sampling_follows_the_distribution(self):
        engine = tiny_engine(self.folder.name)
        rows = engine.sample([SampleRequest((1, 2, 3), 4000, 1, 5)])[0]
        found = torch.bincount(torch.tensor([row.tokens[0] for row in rows]), minlength=40) / 4000
        probabilities = torch.zeros(40)
        for row in rows:
            probabilities[row.tokens[0]] = torch.tensor(row.logprobs[0]).exp()
        self.assertLess(float((found - probabilities).abs().max()), 0.02)

    def test_stops(self):
        engine = tiny_engine(self.folder.name)
        free = engine.sample([SampleRequest((3,), 1, 30, 3)])[0][0]
        stop = tuple(free.tokens[4:6])
        ended = engine.sample([SampleRequest((3,), 1, 30, 3, stop=(stop,))])[0][0]
        self.assertEqual(ended.stop_reason, "stop")
        self.assertEqual(tuple(ended.tokens[-2:]), stop)
        self.assertEqual(ended.tokens, free.tokens[: len(ended.tokens)])

    def test_saved_and_loaded_continues_as_before(self):
        sequences = random_sequences((20, 30))
        for lora_rank in (0, 2):
            engine = tiny_engine(self.folder.name, lora_rank=lora_rank, value_head=True)
            learn = lambda e: (e.learn(sequences, EVERYTHING).loss, e.step(AdamParams(1e-2)))
            learn(engine), learn(engine)
            with tempfile.TemporaryDirectory() as root:
                folder = Path(root) / "a"
                engine.save(folder, optimizer=True)
                engine.save(folder, optimizer=True)
                self.assertEqual(os.listdir(root), ["a"])
                other = tiny_engine(self.folder.name, lora_rank=lora_rank, value_head=True)
                other.load(folder, optimizer=True)
                again = tiny_engine(str(folder), lora_rank=lora_rank, value_head=True)
                again.load(folder, optimizer=True)
            self.assertEqual([learn(engine), learn(engine)], [learn(other), learn(other)])
            self.assertEqual(learn(engine), (learn(again), learn(again), learn(again))[2])

    def test_an_adapter_starts_as_the_model_and_trains_alone(self):
        sequences = random_sequences((40,))
        engine, plain = tiny_engine(self.folder.name, lora_rank=4), tiny_engine(self.folder.name)
        score = lambda e, reference=False: e.score(sequences, reference=reference, entropies=False, values=False).logprobs
        torch.testing.assert_close(score(engine), score(plain))
        engine.snapshot_reference()
        base = engine.weights.parameters["blocks.0.qkv_weight"].clone()
        engine.learn(sequences, CROSS_ENTROPY)
        engine.step(AdamParams(1e-2))
        self.assertTrue(all("lora" in name for name in engine.weights.trained))
        torch.testing.assert_close(engine.weights.parameters["blocks.0.qkv_weight"], base, rtol=0, atol=0)
        self.assertGreater(float((score(engine) - score(plain)).abs().max()), 1e-3)
        torch.testing.assert_close(score(engine, reference=True), score(plain))

    def test_what_is_not_finite_changes_nothing(self):
        engine = tiny_engine(self.folder.name)
        before = {name: p.clone() for name, p in engine.weights.parameters.items()}
        huge = {"op": "mul", "x": {"op": "mul", "x": X, "y": {"op": "input", "name": "huge"}}, "y": {"op": "input", "name": "huge"}}
        ids = torch.tensor([1, 2])
        sequence = Sequences((2,), ids, ids, torch.ones(2, dtype=torch.bool), {"huge": torch.tensor([1e18, 3e18])})
        engine.learn(sequence, parse_objective({"loss": huge, "metrics": {}}))
        with self.assertRaisesRegex(RequestError, r"gradient of \S+ is not finite"):
            engine.step(AdamParams(1.0))
        overflow = {"op": "exp", "x": {"op": "input", "name": "huge"}}
        with self.assertRaisesRegex(RequestError, "token 1 of sequence 0 is inf"):
            engine.learn(sequence, parse_objective({"loss": overflow, "metrics": {}}))
        with self.assertRaisesRegex(RequestError, "no gradient"):
            engine.step(AdamParams(1.0))
        for name, p in engine.weights.parameters.items():
            self.assertTrue(torch.equal(p, before[name]), name)

    def test_batches_hold_every_sequence_once(self):
        for ranks in (1, 2, 3):
            batches = divide((5, 0, 100, 7, 7, 64), 110, ranks)
            self.assertEqual(sorted(i for batch in batches for i in batch), [0, 2, 3, 4, 5])
            self.assertEqual(len(batches) % ranks, 0)

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "transformers is not installed")
    def test_transformers_computes_the_same(self):
        from transformers import AutoModelForCausalLM

        engine = tiny_engine(self.folder.name)
        for name in ("blocks.0.qkv_bias", "blocks.1.attention_norm", "norm"):
            value = engine.weights.parameters[name]
            engine.weights.assign(name, value + torch.linspace(-0.5, 0.5, len(value)))
        sequences = random_sequences((50,))
        with tempfile.TemporaryDirectory() as root:
            engine.save(Path(root) / "a", optimizer=False)
            theirs = AutoModelForCausalLM.from_pretrained(Path(root) / "a", dtype=torch.float32)
        with torch.no_grad():
            logp = theirs(sequences.tokens[None]).logits[0].log_softmax(-1).gather(1, sequences.targets[:, None])[:, 0]
        scored = engine.score(sequences, reference=False, entropies=False, values=False).logprobs
        torch.testing.assert_close(scored[sequences.mask], logp[sequences.mask], rtol=0, atol=1e-4)
        self.assertEqual(theirs.config.vocab_size, CONFIG["vocab_size"])

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "transformers is not installed")
    def test_other_architectures_run_through_transformers(self):
        from transformers import Olmo2Config, Olmo2ForCausalLM

        sizes = {k: v for k, v in CONFIG.items() if k not in ("architectures", "model_type")}
        torch.manual_seed(0)
        theirs = Olmo2ForCausalLM(Olmo2Config(**sizes, pad_token_id=2)).eval()
        sequences = random_sequences((50, 20))
        with tempfile.TemporaryDirectory() as root:
            theirs.save_pretrained(root)
            engine = tiny_engine(root, value_head=True)
            scored = engine.score(sequences, reference=False, entropies=False, values=False).logprobs
            with torch.no_grad():
                logp = theirs(sequences.tokens[None, :50]).logits[0].log_softmax(-1).gather(1, sequences.targets[:50, None])[:, 0]
            mask = sequences.mask[:50]
            torch.testing.assert_close(scored[:50][mask], logp[mask], rtol=0, atol=1e-4)
            row = engine.sample([SampleRequest((1, 2, 3), 2, 10, 0)])[0][1]
            ids = torch.tensor([1, 2, 3, *row.tokens])
            wanted = torch.arange(12) >= 2
            again = engine.score(Sequences((12,), ids[:-1], ids[1:], wanted, {}), reference=False, entropies=False, values=False)
            torch.testing.assert_close(again.logprobs[wanted], torch.tensor(row.logprobs), rtol=0, atol=1e-5)
            first = engine.learn(sequences, EVERYTHING).loss
            engine.step(AdamParams(1e-4))
            self.assertLess(engine.learn(sequences, EVERYTHING).loss, first)
            engine.save(Path(root) / "saved", optimizer=True)
            other = tiny_engine(str(Path(root) / "saved"), value_head=False)
            self.assertEqual(other.parameters, engine.parameters - 16)
            with self.assertRaisesRegex(ValueError, "--activation-checkpointing is for"):
                tiny_engine(root, checkpointing=True)


if __name__ == "__main__":
    unittest.main()
