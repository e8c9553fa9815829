"""What the server says about itself and its runs."""
from __future__ import annotations

import contextlib
import io
import unittest
from pathlib import Path

import torch

from . import api as api_module
from .api import Api
from .folders import Folders
from .futures import Futures
from .say import computes_on


class SayTest(unittest.TestCase):
    def test_device(self) -> None:
        said = computes_on(torch.device("cpu"), torch.float32, 1)
        self.assertRegex(said, r"^computes on the CPU, \d+ threads?, float32$")

    def test_runs_come_and_go(self) -> None:
        api = Api(Futures(), Folders(None, None, Path("checkpoints")), {})
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            session = api.create_session({})["session_id"]
            api.create_session({})
            api.sessions[session] -= api_module.SILENT_S + 1
            api.free_silent_sessions()
        lines = errors.getvalue().splitlines()
        self.assertEqual(len(lines), 3)
        self.assertRegex(lines[0], rf"a run came \({session}\); 1 here$")
        self.assertRegex(lines[2], rf"a run went \({session}\): .*; 1 here$")


if __name__ == "__main__":
    unittest.main()
