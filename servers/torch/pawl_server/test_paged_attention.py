"""The GPU's kernels, run by Triton's interpreter on the CPU, against the plain form."""
import importlib.util
import subprocess
import sys
import unittest
from pathlib import Path

import torch

SCRIPT = """
import torch
from pawl_server.paged_attention import paged_attention
from pawl_server.paged_attention_kernel import paged_attention_gpu, rotate_and_store_gpu, store_gpu
from pawl_server.model import rotate

torch.manual_seed(0)
for rows, heads, kv_heads, size in ((3, 12, 2, 128), (2, 4, 4, 24)):
    q = torch.randn(rows, heads, size)
    keys, values = torch.randn(2, 7, 64, kv_heads, size)
    tables = torch.randint(7, (rows, 4), dtype=torch.int32)
    lengths = torch.randint(1, 257, (rows,))
    found = paged_attention_gpu(q, keys, values, tables, lengths)
    torch.testing.assert_close(found, paged_attention(q, keys, values, tables, lengths), rtol=1e-4, atol=1e-5)
keys, values = torch.zeros(2, 5, 64, 2, 24)
slots, k, v = torch.tensor([70, 3, 319]), *torch.randn(2, 3, 2, 24)
store_gpu(keys, values, slots, k, v)
for pages, new in ((keys, k), (values, v)):
    torch.testing.assert_close(pages.view(-1, 2, 24)[slots], new)
    assert int((pages != 0).sum()) == new.numel()
keys, values = torch.zeros(2, 5, 64, 2, 24)
projected, cos, sin = torch.randn(3, 10, 24), *torch.randn(2, 3, 12)
q = rotate_and_store_gpu(projected, cos, sin, 6, keys, values, slots)
torch.testing.assert_close(q, rotate(projected[:, :6], cos, sin))
torch.testing.assert_close(keys.view(-1, 2, 24)[slots], rotate(projected[:, 6:8], cos, sin))
torch.testing.assert_close(values.view(-1, 2, 24)[slots], projected[:, 8:])
assert all(int((pages != 0).sum()) == 3 * 2 * 24 for pages in (keys, values))
"""


@unittest.skipUnless(importlib.util.find_spec("triton"), "Triton is not installed")
@unittest.skipIf(torch.cuda.is_available(), "gpu_check.py checks the kernels themselves on a GPU")
class PagedAttentionTest(unittest.TestCase):
    def test_kernels_compute_what_the_plain_form_does(self):
        folder = Path(__file__).resolve().parent.parent
        environment = {"TRITON_INTERPRET": "1", "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"}
        done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])


if __name__ == "__main__":
    unittest.main()
