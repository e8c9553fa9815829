"""Models that cannot be computed correctly are rejected when they are opened, by name or by their
numbers.
"""
import importlib.util
import os
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import torch

from . import other_config, self_check
from .attention import PackedAttention
from .config_file import read_config
from .paged_attention import PagedAttention
from .testing import CONFIG, model_folder, tiny_engine

SIZES = {k: v for k, v in CONFIG.items() if k not in ("architectures", "model_type", "num_hidden_layers")}
LINEAR = {"linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 4, "linear_value_head_dim": 4}
FULL = {"layer_types": ["full_attention"] * 4}
# Configuration, its special options, the name it is rejected by, and what its numbers show without
# that name.
HYBRIDS = (
    ("MambaConfig", {"state_size": 4}, "linear_attention", "packed into one batch and each alone"),
    ("Gemma2Config", {"attn_logit_softcapping": None, "final_logit_softcapping": None}, r"sliding_attention \(layers 0, 2\)", "not supported: attention with sliding_window"),
    ("Starcoder2Config", {"sliding_window": 8}, "a sliding window of 8 tokens", "not supported: attention with sliding_window"),
    ("Gemma2Config", {**FULL, "attn_logit_softcapping": None, "final_logit_softcapping": 2.0}, "final_logit_softcapping", "from transformers itself and here"),
)
# None of their layers has a name that says so.
ODD = (
    ("GraniteConfig", {"logits_scaling": 8.0}, "from transformers itself and here"),
    ("GPT2Config", {}, "does not run here: IndexError|when they are sampled and when they are scored"),
    ("StableLmConfig", {}, "does not run here: TypeError"),
)
FINE = (("Olmo2Config", {}), ("Starcoder2Config", {"sliding_window": None}), ("Phi3Config", {}))


def write(folder: Path, name: str, changes: dict) -> bool:
    """A tiny model with random weights, if transformers knows it."""
    import transformers

    kind = getattr(transformers, name, None)
    if kind is None:
        return False
    torch.manual_seed(0)
    tokens = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
    model = transformers.AutoModelForCausalLM.from_config(kind(**{**SIZES, **tokens, "num_hidden_layers": 4, **changes}))
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.data.normal_(0, 0.3)
    model.save_pretrained(folder)
    return True


class SelfCheckTest(unittest.TestCase):
    def setUp(self):
        torch.set_num_threads(1)

    def test_our_own_model_that_leaks_is_rejected_with_the_difference(self):
        folder = model_folder()
        self.addCleanup(folder.cleanup)
        with mock.patch.object(PackedAttention, "__init__", lambda self, lengths, device: leak(self, lengths)):
            with self.assertRaisesRegex(ValueError, r"packed into one batch and each alone, are [\d.]+ apart in the mean, and float32 explains at most 0.001"):
                tiny_engine(folder.name)
        right = PagedAttention.__call__
        with mock.patch.object(PagedAttention, "__call__", lambda *given: 1.5 * right(*given)):
            with self.assertRaisesRegex(ValueError, "when they are sampled and when they are scored"):
                tiny_engine(folder.name)

    def test_what_is_not_finite_is_blamed_on_the_machine(self):
        # Weights that are not finite are refused when they are read.
        folder = model_folder()
        self.addCleanup(folder.cleanup)
        right = PagedAttention.__call__
        with mock.patch.object(PagedAttention, "__call__", lambda *given: float("nan") * right(*given)):
            with self.assertRaisesRegex(ValueError, "are not finite, although its weights are: this machine computes them wrongly; another version"):
                tiny_engine(folder.name)
            with mock.patch.dict(os.environ, {self_check.MPS_SHARE: "40"}):
                with self.assertRaisesRegex(ValueError, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE is 40, with which that was seen before: unset it"):
                    tiny_engine(folder.name)

    def test_small_contexts_work(self):
        for context in (1, 2, 3, 9):
            folder = model_folder(max_position_embeddings=context)
            self.addCleanup(folder.cleanup)
            self.assertEqual(tiny_engine(folder.name).config.max_context, context)

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "transformers is not installed")
    def test_layers_that_mix_tokens_differently_are_rejected_by_name_and_by_their_numbers(self):
        for name, changes, named, shown in HYBRIDS:
            with self.subTest(name), tempfile.TemporaryDirectory() as root:
                if not write(Path(root), name, changes):
                    self.skipTest(f"transformers has no {name}")
                # The configuration alone shows it, so a server does not even start.
                with self.assertRaisesRegex(ValueError, f"config.json: not supported: .*{named}"):
                    read_config(Path(root))
                with mock.patch.object(other_config, "_refuse_unknown", lambda *_: None):
                    with self.assertRaisesRegex(ValueError, shown):
                        tiny_engine(root)

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "transformers is not installed")
    def test_unnamed_differences_show_in_the_numbers(self):
        for name, changes, shown in ODD:
            with self.subTest(name), tempfile.TemporaryDirectory() as root:
                if not write(Path(root), name, changes):
                    self.skipTest(f"transformers has no {name}")
                with self.assertRaisesRegex(ValueError, shown):
                    tiny_engine(root)

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "transformers is not installed")
    def test_plain_decoders_pass_easily(self):
        for name, changes in FINE:
            with self.subTest(name), tempfile.TemporaryDirectory() as root:
                if not write(Path(root), name, changes):
                    self.skipTest(f"transformers has no {name}")
                with mock.patch.dict(self_check.BOUNDS, {torch.float32: 1e-5}):
                    self.assertEqual(tiny_engine(root).config.layers, 4)


def leak(attention: PackedAttention, lengths) -> None:
    """All sequences as one: what attention without sequence borders would see."""
    width = -(-sum(lengths) // 64) * 64
    attention.shape, attention.places = (1, width), torch.arange(sum(lengths))


if __name__ == "__main__":
    unittest.main()
