"""Every architecture that is defined here against transformers: scores, gradients and samples; and
adapters and ranks with each.
"""
import importlib.util
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

import torch

from .config_file import read_config
from .losses import standard_objective
from .sampler import SampleRequest
from .sequences import Sequences
from .testing import ARCHITECTURES, GEMMA3, model_folder, random_sequences, tiny_engine
from .weights import AdamParams

CROSS_ENTROPY = standard_objective("cross_entropy", {})
LENGTHS = (120, 30, 7)


def shaken(folder: str, **options):
    """An engine whose norms are not all one and whose biases are not all zero."""
    engine = tiny_engine(folder, **options)
    generator = torch.Generator().manual_seed(1)
    for name, parameter in engine.weights.parameters.items():
        wide = parameter.dim() > 1
        engine.weights.assign(name, parameter.detach() + (0.15 if wide else 0.3) * torch.randn(parameter.shape, generator=generator))
    return engine


def score(engine, sequences):
    return engine.score(sequences, reference=False, entropies=False, values=False).logprobs


class ArchitectureTest(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)
        self.root = tempfile.TemporaryDirectory()
        self.addCleanup(self.root.cleanup)

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "transformers is not installed")
    def test_transformers_computes_the_same(self):
        sequences = random_sequences(LENGTHS)
        for name, changes in ARCHITECTURES.items():
            with self.subTest(name), model_folder(**changes) as folder:
                self.compare(name, folder, sequences)

    def compare(self, name, folder, sequences):
        from transformers import AutoModelForCausalLM

        engine = shaken(folder)
        path = Path(self.root.name) / name
        engine.save(path, optimizer=False)
        theirs = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager")
        self.assertEqual([type(theirs).__name__], ARCHITECTURES[name].get("architectures", ["Qwen2ForCausalLM"]))
        # Reading back what it writes, whatever its spelling.
        theirs.config.save_pretrained(path / "theirs")
        self.assertEqual(read_config(path / "theirs"), engine.config)
        self.assertTrue(engine.config.built_in)

        loss, chosen = 0.0, []
        for begin, end in zip(sequences.starts, sequences.starts[1:]):
            part = slice(begin, end)
            logp = theirs(sequences.tokens[None, part]).logits[0].log_softmax(-1)
            chosen.append(logp.gather(1, sequences.targets[part, None])[:, 0])
            loss = loss - (chosen[-1] * sequences.inputs["weights"][part])[sequences.mask[part]].sum()
        loss.backward()
        learned = engine.learn(sequences, CROSS_ENTROPY)
        expected = torch.cat(chosen).detach()
        torch.testing.assert_close(score(engine, sequences)[sequences.mask], expected[sequences.mask], rtol=0, atol=1e-4)
        self.assertAlmostEqual(learned.loss, float(loss.detach()), places=2)
        gradients = {n: p.grad for n, p in theirs.named_parameters()}
        for parameter, gradient in engine.weights.gradients.items():
            for piece in engine.weights.pieces[parameter]:
                there = gradients.pop(piece.name)
                gap = (gradient[piece.begin : piece.end] - there).norm() / there.norm()
                self.assertLess(float(gap), 1e-3, piece.name)
        self.assertEqual(list(gradients), [])

        text = sequences.tokens[:50].tolist()
        row = engine.sample([SampleRequest(tuple(text), 1, 20, 0, temperature=0.0)])[0][0]
        with torch.no_grad():
            for _ in range(20):
                text.append(int(theirs(torch.tensor([text])).logits[0, -1].argmax()))
        self.assertEqual(row.tokens, text[50:])

    def test_sampling_agrees_with_scoring_with_and_without_an_adapter(self):
        sequences = random_sequences(LENGTHS)
        for name, changes in ARCHITECTURES.items():
            for options in ({}, {"lora_rank": 2}, {"checkpointing": True}):
                with self.subTest(name, **options), model_folder(**changes) as folder:
                    self.act(f"{name}-{len(options)}", shaken(folder, **options), sequences)

    def act(self, name, engine, sequences):
        first = engine.learn(sequences, CROSS_ENTROPY).loss
        engine.step(AdamParams(1e-3))
        self.assertLess(engine.learn(sequences, CROSS_ENTROPY).loss, first)
        # Prompts around the borders of pages, longer than windows.
        requests = [SampleRequest(tuple(range(n % 7, 40)) * 4, 2, 20, n, continued=True) for n in range(3)]
        # The second time, from the pages of the first.
        for _ in range(2):
            groups = engine.sample(requests)
            rows = [(request.prompt, row) for request, group in zip(requests, groups) for row in group]
            texts = [torch.tensor([*prompt, *row.tokens]) for prompt, row in rows]
            mask = torch.cat([torch.arange(len(ids) - 1) >= len(prompt) - 1 for ids, (prompt, _) in zip(texts, rows)])
            inputs, targets = torch.cat([ids[:-1] for ids in texts]), torch.cat([ids[1:] for ids in texts])
            scored = score(engine, Sequences(tuple(len(ids) - 1 for ids in texts), inputs, targets, mask, {}))[mask]
            drawn = torch.tensor([logprob for _, row in rows for logprob in row.logprobs])
            torch.testing.assert_close(scored, drawn, rtol=0, atol=1e-4)
            requests = [replace(request, prompt=(*request.prompt, *group[1].tokens, 3, 4)) for request, group in zip(requests, groups)]
        saved = Path(self.root.name) / name
        engine.save(saved, optimizer=False)
        torch.testing.assert_close(score(tiny_engine(str(saved)), sequences), score(engine, sequences), rtol=0, atol=1e-4)

    def test_what_is_not_supported_is_refused_by_name(self):
        refused = (
            ({"rope_scaling": {"rope_type": "longrope", "factor": 2.0}}, "rope_scaling of type 'longrope'; only linear, dynamic, llama3, yarn and default are"),
            ({"rope_scaling": {"rope_type": "linear"}}, "rope_scaling.factor is None; expected a positive number"),
            ({"partial_rotary_factor": 0.5}, "partial_rotary_factor 0.5"),
            ({"layer_types": ["full_attention", "chunked_attention"]}, "layer_types with 'chunked_attention'"),
            ({"layer_types": ["full_attention"]}, "which do not fit this architecture's layers"),
            ({"architectures": ["LlamaForCausalLM"], "use_sliding_window": True}, "use_sliding_window in this architecture"),
            ({"architectures": ["SmolLM3ForCausalLM"], "no_rope_layers": [1]}, "no_rope_layers has 1 entries"),
            ({"architectures": ["Qwen3ForCausalLM"], "attention_bias": True}, "attention_bias"),
            ({**GEMMA3, "final_logit_softcapping": 30.0}, "final_logit_softcapping"),
            ({**GEMMA3, "rope_parameters": {"rope_type": "linear", "factor": 2.0}}, "rope_parameters not by type of layer"),
            ({"rope_parameters": {"full_attention": {"rope_type": "default"}}}, "rope_parameters by type of layer"),
        )
        for changes, message in refused:
            with model_folder(**changes) as folder, self.assertRaisesRegex(ValueError, f"config.json: .*{message}"):
                read_config(Path(folder))


if __name__ == "__main__":
    unittest.main()
