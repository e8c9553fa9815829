"""Clients that lie, hang and never come back: each is answered or cut off, and memory stays bounded."""
import contextlib
import io
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
from pathlib import Path
from unittest import mock

import torch

from . import api as api_module
from . import futures as futures_module
from . import http_server as http_module
from .access import check_access
from .checkpoint import open_tensors
from .config_file import parse_config
from .errors import RequestError
from .folders import Folders
from .futures import Future, Futures, size_of
from .say import say_fault
from .test_server import KEY, SERVE, ServerTest
from .testing import CONFIG

HUGE = 10**400


ODD = ["null", "[]", "{}", "-1", "1e308", "0.5", "NaN", '"x"', "true", "[[1]]", str(HUGE), '"\\ud800"']


def damaged(rng, text):
    """A request with a value replaced, or bytes changed, removed or repeated."""
    values = [match.span() for match in re.finditer(r'"[^"]*"|[\d.e-]+|\[[^\[\]]*\]', text)]
    for _ in range(rng.randint(1, 3)):
        if rng.random() < 0.6:
            start, end = rng.choice(values)
            text = text[:start] + rng.choice(ODD) + text[end:]
        else:
            at = rng.randrange(len(text) + 1)
            text = rng.choice([text[:at], text[:at] + chr(rng.randrange(256)) + text[at + 1 :], text[:at] + text[at // 2 :]])
    return text.encode("utf-8", "replace")


class RequestsTest(ServerTest):
    def test_odd_numbers_and_ids_are_answered(self):
        good = {"model_id": self.model_id}
        datum = {"model_input": [1, 2], "loss_fn_inputs": {"target_tokens": [2, 3], "weights": [1, 1]}}
        learn = lambda **changes: {**good, "forward_backward_input": {"data": [{**datum, **changes}], "loss_fn": "cross_entropy"}}
        cases = [
            ("optim_step", {**good, "adam_params": {"learning_rate": HUGE}}, 400),
            ("optim_step", {**good, "adam_params": {"learning_rate": 1, "grad_clip_norm": HUGE}}, 400),
            ("create_model", {"base_model": "tiny", "seed": HUGE}, 400),
            ("create_model", {"base_model": "tiny", "lora_config": {"rank": -HUGE}}, 400),
            ("create_model", {"base_model": "tiny", "session_id": ["a"]}, 404),
            ("create_model", {"base_model": "tiny", "session_id": {"a": 1}}, 404),
            ("create_model", {"base_model": ["tiny"]}, 400),
            ("session_heartbeat", {"session_id": [1]}, 404),
            ("unload_model", {"model_id": {}}, 404),
            ("forward", {"model_id": [self.model_id]}, 404),
            ("retrieve_future", {"request_id": [1]}, 404),
            ("asample", {**good, "prompt": [HUGE], "sampling_params": {"max_tokens": 1}}, 400),
            ("asample", {**good, "prompt": [1], "sampling_params": {"max_tokens": 1, "seed": HUGE}}, 400),
            ("asample", {**good, "prompt": [1], "sampling_params": {"max_tokens": 1, "stop": [[HUGE]]}}, 400),
            ("sample_batch", {**good, "requests": [{"prompt": [1], "num_samples": 65536, "sampling_params": {"max_tokens": 200}}] * 3}, 400),
            ("forward_backward", learn(model_input=[1, HUGE]), 400),
            ("forward_backward", learn(loss_fn_inputs={"target_tokens": [2, 3], "weights": [1, HUGE]}), 400),
        ]
        for call, body, expected in cases:
            status, answer = self.result(call, body)
            self.assertEqual(status, expected, (call, str(body)[:80], answer))
            self.assertIn("error", answer)
        # JSON has no infinity, but some numbers are read as it.
        infinite = json.dumps(learn()).replace("[1, 1]", "[1, 1e999]")
        self.assertEqual(self.send("POST", "/api/v1/forward_backward", infinite)[0], 400)
        self.assertEqual(self.result("discard_gradients", good)[0], 400)

    def test_damaged_requests_are_answered(self):
        """PAWL_FUZZ_REQUESTS sets how many of each are tried; a failure names its number, which is its seed."""
        good = {"model_id": self.model_id}
        datum = {"model_input": [1, 2], "loss_fn_inputs": {"target_tokens": [2, 3], "weights": [1, 1]}}
        calls = {
            "session_heartbeat": {"session_id": "s"},
            "retrieve_future": {"request_id": "r"},
            "forward_backward": {**good, "forward_backward_input": {"data": [datum], "loss_fn": "cross_entropy"}},
            "forward": {**good, "forward_input": {"data": [datum], "loss_fn": "cross_entropy"}},
            "asample": {**good, "prompt": [1, 2], "sampling_params": {"max_tokens": 2, "seed": 1, "stop": [[3]]}},
            "optim_step": {**good, "adam_params": {"learning_rate": 1e-4}},
        }
        for call, body in calls.items():
            for number in range(int(os.environ.get("PAWL_FUZZ_REQUESTS", "8"))):
                status, data = self.send("POST", f"/api/v1/{call}", damaged(random.Random(number), json.dumps(body)))
                answer = json.loads(data)
                if status == 200 and isinstance(answer.get("request_id"), str):
                    status, answer = self.post("retrieve_future", {"request_id": answer["request_id"]})
                self.assertTrue(status == 200 or 400 <= status < 500, (call, number, status, answer))
        self.assertEqual(self.forward_backward()[0], 200)
        self.result("discard_gradients", good)

    def test_a_fault_of_ours_is_answered_too(self):
        with mock.patch.object(self.api, "post", side_effect=ZeroDivisionError("oops")), mock.patch("sys.stderr"):
            self.assertEqual(self.post("create_session", {}), (500, {"error": "the server failed: ZeroDivisionError"}))

    def test_a_fault_of_ours_is_said_in_one_line(self):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            say_fault("a request", ValueError("two\nlines"))
        self.assertRegex(errors.getvalue(), r"^\S+  a request failed: ValueError: two lines \(PAWL_DEBUG=1 shows where\)\n$")

    def test_odd_configurations_and_weights_are_named(self):
        for i, fields in enumerate(
            [[], 7, {}, {**CONFIG, "num_attention_heads": 0}, {**CONFIG, "hidden_size": "16"}, {**CONFIG, "vocab_size": 10**12},
             {**CONFIG, "num_hidden_layers": 10**9}, {**CONFIG, "architectures": 3}, {**CONFIG, "rope_scaling": 5}, {**CONFIG, "num_key_value_heads": 0.5}]
        ):  # fmt: skip
            path = f"odd-{i}"
            self.assertEqual(self.send("PUT", f"/api/v1/files/{path}/config.json", json.dumps(fields))[0], 200)
            status, answer = self.result("create_model", {"base_model": f"checkpoint:{path}"})
            self.assertEqual(status, 400, (fields, answer))
        headers = [b"{}", b"[]", b"7", b'{"a": 1}', b'{"a": {"dtype": "F32", "shape": [1e9], "data_offsets": [0, 4]}}',
                   b'{"a": {"dtype": [], "shape": [1], "data_offsets": [0, 4]}}', b'{"a": {"dtype": "F32", "shape": [-1, -1], "data_offsets": [0, 4]}}']  # fmt: skip
        self.send("PUT", "/api/v1/files/header/config.json", json.dumps(CONFIG))
        for header in headers:
            data = len(header).to_bytes(8, "little") + header + b"\0" * 4
            self.assertEqual(self.send("PUT", "/api/v1/files/header/model.safetensors", data)[0], 200)
            status, answer = self.result("create_model", {"base_model": "checkpoint:header"})
            self.assertEqual(status, 400, (header, answer))
            self.assertIn("damaged", answer["error"], header)

    def test_sessions_and_models_are_limited(self):
        with mock.patch.object(api_module, "MAX_SESSIONS", len(self.api.sessions)):
            self.assertEqual(self.post("create_session", {})[0], 503)
        with mock.patch.object(api_module, "MAX_MODELS", len(self.api.models)):
            self.assertEqual(self.post("create_model", {"base_model": "tiny"})[0], 503)

    def test_slow_and_too_many_clients_are_cut_off(self):
        connect = lambda: socket.create_connection(self.server.server_address, timeout=30)
        with mock.patch.multiple(http_module, IDLE_S=0.5, HEADER_S=0.5):
            with connect() as slow:
                # One byte at a time would never time out by itself.
                for _ in range(200):
                    try:
                        slow.send(b"G")
                    except OSError:
                        break
                    time.sleep(0.05)
                else:
                    self.fail("a client that never finishes its headers was not cut off")
            with connect() as slow:
                slow.sendall(f"POST /api/v1/create_session HTTP/1.1\r\nX-API-Key: {KEY}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{".encode())
                self.assertNotIn(b" 200 ", slow.recv(1000))
        with mock.patch.object(http_module, "MAX_CONNECTIONS", 0), connect() as refused:
            self.assertEqual(refused.recv(1), b"")
        self.assertEqual(self.post("create_session", {})[0], 200)
        deadline = time.monotonic() + 30
        while self.server.deadlines and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(self.server.deadlines, {})
        self.assertEqual(self.server.reading, 0)


class AccessTest(unittest.TestCase):
    """The same cases as in packages/core/src/http/http-access.test.ts."""

    def test_without_a_key_only_programs_of_this_machine_are_answered(self):
        for host in ("localhost", "localhost:8000", "127.0.0.1:80", "127.1.2.3", "[::1]:8000", "LOCALHOST:1"):
            for headers in ({}, {"Origin": f"http://{host}"}, {"Origin": f"https://{host}"}):
                check_access({"Host": host, **headers}, None)
            for origin in ("null", "", "https://evil.example", "http://localhost:3000", f"http://evil.{host}", f"http://{host}.evil.example"):
                with self.assertRaisesRegex(RequestError, "web pages"):
                    check_access({"Host": host, "Origin": origin}, None, keyless=True)
        for host in ("", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8000", "evil.example:127.0.0.1", "192.168.0.1:8000", "localhost@evil.example", "localhost:8000/", "0.0.0.0"):
            for headers in ({}, {"Origin": f"http://{host}"}):
                with self.assertRaisesRegex(RequestError, "only requests to localhost"):
                    check_access({"Host": host, **headers}, None, keyless=True)

    def test_with_a_key_the_server_may_have_any_name(self):
        for headers in ({"X-API-Key": "k"}, {"Authorization": "Bearer k"}):
            check_access({"Host": "gpu.example", "Origin": "https://gpu.example", **headers}, "k")
        check_access({"Host": "gpu.example"}, "k", keyless=True)
        with self.assertRaisesRegex(RequestError, "key is missing"):
            check_access({"Host": "localhost"}, "k")


class MemoryTest(unittest.TestCase):
    def done(self, futures, size, once=None):
        future = futures.add(Future("forward", {"model_id": "m", "data": [0] * 1000}, object(), 8000), once)
        futures.next(0).succeed({"logprobs": torch.zeros(size)})
        return future

    def test_a_request_is_not_kept_after_its_work(self):
        future = self.done(Futures(), 3)
        self.assertIsNone(future.work)
        self.assertEqual(future.body, {"model_id": "m"})

    def test_results_are_kept_within_a_size_those_not_yet_sent_the_longest(self):
        futures = Futures()
        with mock.patch.object(futures_module, "MAX_KEPT_BYTES", 3 * (4000 + futures_module.FUTURE_BYTES) + 1000):
            first, second, third, fourth = (self.done(futures, 1000, f"key {i}") for i in range(4))
            third.sent_at = time.monotonic()
            futures.forget_old()
            self.assertEqual([id in futures._known for id in (first.id, second.id, third.id, fourth.id)], [True, True, False, True])
            # What was dropped would be run again.
            self.assertIsNot(futures.add(Future("forward", {}, None), "key 2"), third)
            self.assertIs(futures.add(Future("forward", {}, None), "key 3"), fourth)

    def test_results_expire_sooner_once_they_were_sent(self):
        futures = Futures()
        sent, waiting = self.done(futures, 1), self.done(futures, 1)
        sent.sent_at = time.monotonic() - futures_module.SENT_S - 1
        waiting.done_at -= futures_module.SENT_S + 1
        futures.forget_old()
        self.assertEqual(list(futures._known), [waiting.id])
        waiting.done_at -= futures_module.KEPT_S
        futures.forget_old()
        self.assertEqual((len(futures._known), len(futures._repeatable)), (0, 0))

    def test_failures_take_room_too(self):
        futures = Futures()
        with mock.patch.object(futures_module, "MAX_KEPT_BYTES", 10 * futures_module.FUTURE_BYTES):
            for _ in range(30):
                future = futures.add(Future("forward", {}, None), None)
                futures.next(0)
                future.fail(RequestError("refused"))
            futures.forget_old()
            self.assertEqual(len(futures._known), 10)

    def test_requests_that_wait_are_limited_by_their_size(self):
        futures = Futures()
        with mock.patch.object(futures_module, "MAX_WAITING_BYTES", 100):
            futures.add(Future("forward", {}, None, 200), None)
            with self.assertRaisesRegex(RequestError, "already waiting"):
                futures.add(Future("forward", {}, None, 1), None)

    def test_sizes_are_about_right(self):
        self.assertEqual(size_of({"a": torch.zeros(1000)}), 100 + 100 + 4000)
        self.assertGreater(size_of({"tokens": [1] * 1000}), 8000)


class FilesTest(unittest.TestCase):
    def test_uploads_that_nobody_needs_are_removed(self):
        with tempfile.TemporaryDirectory() as root:
            names = ("uploads/old", "uploads/used", "uploads/new", "run/old")
            for name in names:
                folder = Path(root, name)
                folder.mkdir(parents=True)
                (folder / "config.json").write_text("{}")
                if "new" not in name:
                    for path in (folder / "config.json", folder):
                        os.utime(path, (1, 1))
            folders = Folders(None, None, Path(root))
            folders.forget_uploads({Path(root, "uploads/used").resolve()})
            self.assertEqual([Path(root, name).exists() for name in names], [False, True, True, True])

    def test_an_index_must_fit_its_files(self):
        with tempfile.TemporaryDirectory() as root:
            for index in ("[]", "{}", '{"weight_map": []}', '{"weight_map": {}}', '{"weight_map": {"a": 3}}', '{"weight_map": {"a": "../x.safetensors"}}'):
                Path(root, "model.safetensors.index.json").write_text(index)
                with self.assertRaisesRegex(ValueError, "damaged|not the name"):
                    open_tensors(Path(root))

    def test_sizes_are_limited(self):
        with self.assertRaisesRegex(ValueError, "vocab_size: expected a whole number from 1 to"):
            parse_config({**CONFIG, "vocab_size": True}, "here")


@unittest.skipUnless(socket.has_ipv6 and Path("/proc/net/if_inet6").exists(), "no IPv6 here")
class AddressTest(unittest.TestCase):
    def test_listens_on_ipv6_and_names_an_address_that_is_taken(self):
        with tempfile.TemporaryDirectory() as root:
            command = [sys.executable, SERVE, "--checkpoints", root, "--host", "::1"]
            process = subprocess.Popen([*command, "--until-stdin-closes"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            try:
                url = json.loads(process.stdout.readline())["listening"]
                self.assertIn("http://[::1]:", url)
                with urllib.request.urlopen(f"{url}/healthz") as answer:
                    self.assertEqual(json.load(answer), {"status": "ok"})
                port = url.rsplit(":", 1)[1]
                second = subprocess.run([*command, "--port", port], capture_output=True, text=True, timeout=120)
                self.assertRegex(second.stderr, r"^cannot listen at ::1, port \d+: ")
            finally:
                process.stdin.close()
                process.wait()
                process.stdout.close()


# The base's own tests are run where it is defined.
for name in [name for name in dir(ServerTest) if name.startswith("test_")]:
    setattr(RequestsTest, name, None)
del ServerTest


if __name__ == "__main__":
    unittest.main()
