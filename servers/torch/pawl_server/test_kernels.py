"""The GPU's kernels, run by Triton's interpreter on the CPU, against the plain forms."""
import importlib.util
import subprocess
import sys
import unittest
from pathlib import Path

import torch

ATTENTION = """
import torch
from pawl_server import paged_attention_kernel as kernel
from pawl_server.paged_attention import PagedAttention
from pawl_server.pages import Pages
from pawl_server.model import rotate

torch.manual_seed(0)
for rows, heads, kv_heads, size in ((3, 12, 2, 128), (2, 4, 4, 24)):
    # Pages of which no two rows have the same: each row writes into its last one.
    keys, values = torch.randn(2, 4 * rows, 64, kv_heads, size)
    tables = torch.randperm(4 * rows, dtype=torch.int32).view(rows, 4)
    lengths = torch.randint(1, 257, (rows,))
    lengths[:2] = torch.tensor([1, 65])
    projected, cos, sin = torch.randn(rows, heads + 2 * kv_heads, size), *torch.randn(2, rows, size // 2)
    q, k, v = projected.split((heads, kv_heads, kv_heads), 1)
    # One program for all keys of a row, or several; windows of one token, within a page, and across pages.
    for kernel.PROGRAMS, rotation, window in (
        (1, None, None), (1, (cos, sin), None), (256, None, None), (256, (cos, sin), None),
        (1, None, 1), (256, (cos, sin), 20), (256, None, 70),
    ):
        turned = [rotate(x, cos, sin) for x in (q, k)] if rotation else [q, k]
        plain = Pages(keys.clone()[None], values.clone()[None])
        expected = PagedAttention(plain, tables, lengths)(0, *turned, v, window)
        pages = [keys.clone(), values.clone()]
        found = kernel.paged_attention_gpu(q, k, v, rotation, *pages, tables, lengths, window)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(pages, [plain.keys[0], plain.values[0]])
keys, values = torch.zeros(2, 5, 64, 2, 24)
slots, k, v = torch.tensor([70, 3, 319]), *torch.randn(2, 3, 2, 24)
kernel.store_gpu(keys, values, slots, k, v)
for pages, new in ((keys, k), (values, v)):
    torch.testing.assert_close(pages.view(-1, 2, 24)[slots], new)
    assert int((pages != 0).sum()) == new.numel()
"""
EXTENDING = """
import torch
from pawl_server.extending_attention import ExtendingAttention
from pawl_server.extending_attention_kernel import extending_attention_gpu
from pawl_server.pages import Pages

torch.manual_seed(0)
# Rows of one new token, of a few, of more than a program takes, and of nothing but new ones.
lengths, new = [200, 70, 150, 64], [1, 9, 100, 64]
for heads, kv_heads, size in ((6, 2, 24), (4, 4, 64)):
    tables = torch.randperm(16).view(4, 4)
    q, k, v = torch.randn(sum(new), heads, size), *torch.randn(2, sum(new), kv_heads, size)
    for window in (None, 1, 20, 70):
        pages = Pages(*torch.randn(2, 1, 16, 64, kv_heads, size))
        attend = ExtendingAttention(pages, tables, lengths, new)
        expected = attend(0, q, k, v, window)
        ends = torch.tensor([0, *new]).cumsum(0).int()
        found = extending_attention_gpu(q, pages.keys[0], pages.values[0], tables, torch.tensor(lengths), ends, max(new), window)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
"""
CHOICE = """
import torch
from pawl_server.choose import choose
from pawl_server.choose_kernel import choose_gpu

torch.manual_seed(0)
for rows, width in ((7, 9000), (3, 50)):
    logits = 3 * torch.randn(rows, width)
    temperatures = torch.tensor([1.0, 0.0, 0.5, 2.0, 1.0, 1.0, 1.0])[:rows]
    for uniform in (torch.rand(rows), torch.zeros(rows)):
        tokens, *logprobs = choose(logits, temperatures, uniform)
        found, *there = choose_gpu(logits, temperatures, uniform)
        assert found.tolist() == tokens.tolist(), (found, tokens)
        torch.testing.assert_close(there, logprobs, rtol=1e-5, atol=1e-5)
    # The last of all numbers may fall on either side of a border, but not outside.
    found, *there = choose_gpu(logits, temperatures, torch.full((rows,), 1 - 2.0**-24))
    assert 0 <= int(found.min()) and int(found.max()) < width and all(x.isfinite().all() for x in there)
"""
LAYER = """
import torch
from pawl_server.layer_kernel import rms_norm_gpu, swiglu_gpu
from pawl_server.model import rms_norm, swiglu

torch.manual_seed(0)
x, weight = torch.randn(5, 2200), torch.rand(2200)
torch.testing.assert_close(rms_norm_gpu(x, weight, 1e-6), rms_norm(x, weight, 1e-6))
torch.testing.assert_close(swiglu_gpu(x), swiglu(x))
"""


@unittest.skipUnless(importlib.util.find_spec("triton"), "Triton is not installed")
@unittest.skipIf(torch.cuda.is_available(), "gpu_check.py checks the kernels themselves on a GPU")
class KernelTest(unittest.TestCase):
    def test_attention(self):
        self.interpret(ATTENTION)

    def test_extending_attention(self):
        self.interpret(EXTENDING)

    def test_choice(self):
        self.interpret(CHOICE)

    def test_layer(self):
        self.interpret(LAYER)

    def interpret(self, script: str) -> None:
        folder = Path(__file__).resolve().parent.parent
        environment = {"TRITON_INTERPRET": "1", "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"}
        done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])


if __name__ == "__main__":
    unittest.main()
