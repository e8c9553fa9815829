"""The server as clients see it: futures, repeats, limits, keys, and paths that stay inside."""
import contextlib
import http.client
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request
from pathlib import Path

import torch

from .api import Api
from .engine_types import EngineOptions
from .errors import RequestError
from .folders import Folders
from .futures import Futures
from .http_server import HttpOptions, create_http_server
from .service import Service
from .testing import ALONE, model_folder

KEY = "a secret"
SERVE = Path(__file__).parent.parent / "serve.py"


class ProcessTest(unittest.TestCase):
    def test_exits_with_its_standard_input_and_serves_without_a_model(self):
        with tempfile.TemporaryDirectory() as root:
            process = subprocess.Popen(
                [sys.executable, SERVE, "--checkpoints", root, "--until-stdin-closes"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            try:
                url = json.loads(process.stdout.readline())["listening"]
                with urllib.request.urlopen(f"{url}/api/v1/get_server_capabilities") as answer:
                    capabilities = json.load(answer)
                self.assertEqual(capabilities["supported_models"], [])
                self.assertNotIn("vocabulary_size", capabilities["pawl"])
                self.assertIsNone(process.poll())
                process.stdin.close()
                self.assertEqual(process.wait(30), 0)
            finally:
                process.kill()
                process.wait()
                process.stdout.close()

    def test_names_what_a_server_without_a_model_needs(self):
        with self.assertRaisesRegex(RequestError, 'without a model.*"checkpoint:PATH"'):
            Folders(None, None, Path("nowhere")).base("tiny")


class ServerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.set_num_threads(1)
        cls.model, cls.root = model_folder(), tempfile.TemporaryDirectory()
        folders, futures = Folders(Path(cls.model.name), "tiny", Path(cls.root.name)), Futures()
        options = EngineOptions(dtype=torch.float32, batch_tokens=4096, checkpointing=False, compiled=False)
        cls.api = Api(futures, folders, {"supported_models": []})
        cls.server = create_http_server(cls.api, HttpOptions("127.0.0.1", 0, KEY, 2**20, 2**20))
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        threading.Thread(target=Service(folders, ALONE, options, futures).lead, daemon=True).start()
        cls.model_id = cls.result("create_model", {"base_model": "tiny"})[1]["model_id"]

    @classmethod
    def tearDownClass(cls):
        cls.server.shutdown()
        cls.server.server_close()
        cls.model.cleanup()
        cls.root.cleanup()

    @classmethod
    def send(cls, method, path, body=b"", key=KEY, **headers):
        connection = http.client.HTTPConnection(*cls.server.server_address, timeout=60)
        connection.request(method, path, body, {"X-API-Key": key, "Content-Type": "application/json", **headers})
        response = connection.getresponse()
        data = response.read()
        connection.close()
        return response.status, data

    @classmethod
    def post(cls, call, body, **options):
        status, data = cls.send("POST", f"/api/v1/{call}", json.dumps(body), **options)
        return status, json.loads(data)

    @classmethod
    def result(cls, call, body):
        status, answer = cls.post(call, body)
        if status != 200:
            return status, answer
        return cls.post("retrieve_future", {"request_id": answer["request_id"]})

    def forward_backward(self, sequence_id=None, weights=(1.0, 1.0)):
        datum = {"model_input": [1, 2], "loss_fn_inputs": {"target_tokens": [2, 3], "weights": list(weights)}}
        body = {"model_id": self.model_id, "forward_backward_input": {"data": [datum], "loss_fn": "cross_entropy"}}
        return self.result("forward_backward", {**body, "seq_id": sequence_id})

    def test_a_repeated_sequence_id_is_not_run_again(self):
        first, second = self.forward_backward(70), self.forward_backward(70)
        self.assertEqual(first, second)
        norm = self.result("discard_gradients", {"model_id": self.model_id})[1]["metrics"]["grad_norm"]
        self.forward_backward()
        self.assertAlmostEqual(self.result("discard_gradients", {"model_id": self.model_id})[1]["metrics"]["grad_norm"], norm, places=5)

    def test_a_repeated_creation_gives_the_same_model(self):
        body = {"base_model": "tiny", "request_key": "once"}
        self.assertEqual(self.post("create_model", body), self.post("create_model", body))

    def test_samples_are_returned(self):
        request = {"prompt": [1, 2], "num_samples": 2, "sampling_params": {"max_tokens": 4, "seed": 1}}
        status, answer = self.result("sample_batch", {"model_id": self.model_id, "requests": [request, request]})
        self.assertEqual(status, 200)
        self.assertEqual(answer["results"][0], answer["results"][1])
        self.assertEqual([len(s["tokens"]) for s in answer["results"][0]["sequences"]], [4, 4])
        prompt = {"chunks": [{"type": "encoded_text", "tokens": [1, 2]}]}
        one = {"sampling_session_id": self.model_id, "prompt": prompt, "prompt_logprobs": True, **{k: request[k] for k in ("num_samples", "sampling_params")}}
        status, answer = self.result("asample", one)
        self.assertEqual(answer["sequences"], self.result("sample_batch", {"model_id": self.model_id, "requests": [request]})[1]["results"][0]["sequences"])
        self.assertEqual(len(answer["prompt_logprobs"]), 2)

    def test_numbers_are_sent_in_base64(self):
        datum = {
            "model_input": {"base64": "AQAAAAAAAAACAAAAAAAAAA==", "dtype": "int64", "shape": [2]},
            "loss_fn_inputs": {"target_tokens": [2, 3], "mask": [0, 1]},
        }
        body = {"model_id": self.model_id, "forward_input": {"data": [datum]}}
        status, plain = self.result("forward", body)
        self.assertEqual((status, plain["loss_fn_outputs"][0]["logprobs"]["data"][0]), (200, 0.0))
        _, future = self.post("forward", body)
        _, data = self.send("POST", "/api/v1/retrieve_future", json.dumps(future), **{"X-Pawl-Binary": "1"})
        self.assertEqual(len(json.loads(data)["loss_fn_outputs"][0]["logprobs"]["base64"]), 12)

    def test_temperatures_divide_the_logits_of_their_token(self):
        def score(**inputs):
            datum = {"model_input": [1, 2, 3], "loss_fn_inputs": {"target_tokens": [2, 3, 4], **inputs}}
            _, answer = self.result("forward", {"model_id": self.model_id, "forward_input": {"data": [datum]}})
            return answer["loss_fn_outputs"][0]["logprobs"]["data"]

        plain, cool = score(), score(temperatures=[1, 0.5, 1])
        self.assertEqual([plain[0], plain[2]], [cool[0], cool[2]])
        self.assertNotAlmostEqual(plain[1], cool[1], places=3)
        # Entries that are not targets are not scaled.
        self.assertEqual(score(temperatures=[0, 1, 1], mask=[0, 1, 1])[1:], plain[1:])

    def test_nothing_is_answered_without_the_key(self):
        for key in ("", "wrong", "a secre"):
            self.assertEqual(self.post("create_session", {}, key=key)[0], 401)
            self.assertEqual(self.send("GET", "/api/v1/get_server_capabilities", key=key)[0], 401)
            self.assertEqual(self.send("PUT", "/api/v1/files/a/config.json", b"{}", key=key)[0], 401)
        self.assertEqual(self.send("POST", "/api/v1/create_session", "{}", key="", Authorization=f"Bearer {KEY}")[0], 200)
        self.assertEqual(self.send("GET", "/healthz", key="")[0], 200)

    def test_malformed_requests_are_rejected_and_harmless(self):
        before = self.forward_backward()
        good = {"model_id": self.model_id}
        datum = lambda **changes: {"data": [{"model_input": [1, 2], "loss_fn_inputs": {"target_tokens": [2, 3], "weights": [1, 1], **changes}}], "loss_fn": "cross_entropy"}
        cases = [
            ("forward", {**good, "forward_input": {"data": [{"model_input": [1, 99], "loss_fn_inputs": {"target_tokens": [2, 3]}}]}}, "sequence 0: token 1 is 99"),
            ("forward", {**good, "forward_input": {"data": [{"model_input": [1, 1.5], "loss_fn_inputs": {"target_tokens": [2, 3]}}]}}, "token 1 is 1.5"),
            ("forward", {**good, "forward_input": {"data": "x"}}, "data: expected list, found str"),
            ("forward", {**good, "forward_input": {"data": [{"model_input": [1] * 300, "loss_fn_inputs": {"target_tokens": [1] * 300}}]}}, "context is 256"),
            ("forward_backward", {**good, "forward_backward_input": datum(target_tokens=[2])}, "expected one each"),
            ("forward_backward", {**good, "forward_backward_input": datum(weights=[1])}, "expected one per token"),
            ("forward_backward", {**good, "forward_backward_input": datum(weights=["a", "b"])}, "array of numbers"),
            ("forward_backward", {**good, "forward_backward_input": {**datum(), "loss_fn": "import os"}}, "unknown loss"),
            ("forward_backward", {**good, "forward_backward_input": datum(temperatures=[1])}, "1 temperatures; expected one each"),
            ("forward_backward", {**good, "forward_backward_input": datum(temperatures=[1, 0])}, "token 2 of sequence 0 has 0.0; expected a finite number above 0"),
            ("forward_backward", {**good, "forward_backward_input": {**datum(), "loss_fn": "objective", "loss_fn_config": {"objective": {"loss": {"op": "input", "name": "temperatures"}, "metrics": {}}}}}, "rename it"),
            ("optim_step", {**good, "adam_params": {"learning_rate": -1}}, "learningRate must be a number between 0 and 100"),
            ("optim_step", good, "adam_params: expected dict, found nothing"),
            ("asample", {**good, "prompt": [], "sampling_params": {"max_tokens": 1}}, "empty"),
            ("asample", {**good, "prompt": [1], "sampling_params": {"max_tokens": 256}}, "context"),
            ("asample", {**good, "prompt": [1], "sampling_params": {"max_tokens": 1, "stop": ["text"]}}, "token ids"),
            ("create_model", {"base_model": "another"}, "this server has"),
            ("create_model", {"base_model": "checkpoint:../x"}, "relative path"),
            ("load_weights", {**good, "path": "absent"}, "no checkpoint"),
        ]
        for call, body, reason in cases:
            status, answer = self.result(call, body)
            self.assertEqual(status, 400, (call, answer))
            self.assertIn(reason, answer["error"])
        for data in (b"{", b"[]", b'{"a": NaN}', b"[" * 100_000, b'{"a": ' + b"9" * 5000 + b"}", b"\xff"):
            self.assertEqual(self.send("POST", "/api/v1/create_session", data)[0], 400, data[:20])
        self.assertEqual(self.send("POST", "/api/v1/create_session", b"{}", **{"Content-Type": "text/plain"})[0], 415)
        # The larger one does not fit into the buffers between client and server, so the answer must
        # outlast it.
        for size in (2**20 + 1, 2**26):
            self.assertEqual(self.send("POST", "/api/v1/create_session", b" " * size)[0], 413)
        for length in ("abc", "-1"):
            self.assertEqual(self.send("POST", "/api/v1/create_session", **{"Content-Length": length})[0], 411)
        self.assertEqual(self.send("POST", "/api/v1/create_session", **{"Content-Length": "9" * 5000})[0], 413)
        for path in ("/", "//", "/api/v1/", "/api/v1/nonsense", "/api/v1/__proto__", "/api/v1/" + "x" * 60_000):
            self.assertEqual(self.send("GET", path)[0], 404, path[:40])
            self.assertEqual(self.send("POST", path, b"{}")[0], 404, path[:40])
        self.assertEqual(self.result("forward", {"model_id": "model-0"})[0], 404)
        self.assertEqual(self.post("retrieve_future", {"request_id": "0"})[0], 404)
        self.assertEqual(self.post("create_model", {"base_model": "tiny", "session_id": "gone"})[0], 404)
        self.assertEqual(self.forward_backward(), before)
        self.result("discard_gradients", good)

    def test_paths_stay_in_the_checkpoint_folder(self):
        outside = tempfile.TemporaryDirectory()
        self.addCleanup(outside.cleanup)
        os.symlink(outside.name, Path(self.root.name) / "link")
        for path in ("../a", "/etc", "a/../../b", "a//b", ".hidden", "a/.b", "", "link/a", "a\\b", "a\0b", "x" * 600, "x" * 300):
            for call in ("save_weights", "load_weights"):
                status, answer = self.result(call, {"model_id": self.model_id, "path": path})
                self.assertEqual(status, 400, path)
            self.assertEqual(self.post("delete_weights", {"path": path})[0], 400, path)
            self.assertEqual(self.result("create_model", {"base_model": f"checkpoint:{path}"})[0], 400, path)
        self.assertEqual(os.listdir(outside.name), [])
        # The longest that is allowed can be written.
        self.assertEqual(self.result("save_weights", {"model_id": self.model_id, "path": "x" * 200})[0], 200)
        self.assertEqual(self.send("PUT", f"/api/v1/files/{'x' * 200}/{'y' * 188}.safetensors", b"x")[0], 200)
        self.assertEqual(self.post("delete_weights", {"path": "x" * 200}), (200, {"deleted": True}))
        long = "x" * 300
        for path in ("a/b.py", "../config.json", "a/../../config.json", "config.json", f"{long}/config.json", f"a/{long}.safetensors"):
            self.assertEqual(self.send("PUT", f"/api/v1/files/{path}", b"x")[0], 400, path)
            self.assertEqual(self.send("GET", f"/api/v1/files/{path}")[0], 400, path)
        self.assertEqual(self.post("delete_weights", {"path": "../a"})[0], 400)

    def test_a_checkpoint_can_be_downloaded_and_uploaded(self):
        self.assertEqual(self.result("save_weights", {"model_id": self.model_id, "path": "run/one"})[0], 200)
        names = ("config.json", "model.safetensors", "optimizer.safetensors")
        files = {name: self.send("GET", f"/api/v1/files/run/one/{name}") for name in names}
        for name, (status, data) in files.items():
            self.assertEqual(status, 200)
            self.assertEqual(self.send("PUT", f"/api/v1/files/sent/{name}", data)[0], 200)
        self.assertEqual(self.send("PUT", "/api/v1/files/sent/model.safetensors", b"x" * (2**20 + 1))[0], 413)
        (Path(self.root.name) / "taken").write_text("a file where a folder should be")
        status, answer = self.send("PUT", "/api/v1/files/taken/config.json", b"{}")
        self.assertEqual(status, 507)
        self.assertIn(b"the server could not write", answer)
        self.assertIn(b"another --checkpoints", answer)
        status, answer = self.result("save_weights", {"model_id": self.model_id, "path": "taken/one"})
        self.assertEqual(status, 507)
        self.assertRegex(answer["error"], r"could not write .*taken/one: .*\. Earlier checkpoints are kept\.")
        status, model = self.result("create_model", {"base_model": "checkpoint:sent"})
        self.assertEqual((status, model["pawl"]["vocabulary_size"]), (200, 40))
        score = lambda id: self.result("forward", {"model_id": id, "forward_input": {"data": [{"model_input": [1], "loss_fn_inputs": {"target_tokens": [2]}}]}})
        self.assertEqual(score(model["model_id"]), score(self.model_id))
        self.assertEqual(self.post("delete_weights", {"path": "run/one"}), (200, {"deleted": True}))
        self.assertEqual(self.post("delete_weights", {"path": "run/one"}), (200, {"deleted": False}))

    def test_a_damaged_checkpoint_is_rejected(self):
        self.result("save_weights", {"model_id": self.model_id, "path": "good"})
        file = Path(self.root.name) / "good" / "model.safetensors"
        data = file.read_bytes()
        for damaged in (data[:100], b"\xff" * 100, data.replace(b'"F32"', b'"I32"'), b"\x80\x04" + data):
            file.write_bytes(damaged)
            status, answer = self.result("load_weights", {"model_id": self.model_id, "path": "good"})
            self.assertEqual(status, 400, answer)

    def test_models_of_silent_sessions_are_freed(self):
        session = self.post("create_session", {})[1]["session_id"]
        model_id = self.result("create_model", {"base_model": "tiny", "session_id": session})[1]["model_id"]
        self.api.free_silent_sessions()
        self.assertEqual(self.post("session_heartbeat", {"session_id": session})[0], 200)
        self.api.sessions[session] -= 1000
        self.api.free_silent_sessions()
        self.assertEqual(self.post("session_heartbeat", {"session_id": session})[0], 404)
        self.assertEqual(self.result("discard_gradients", {"model_id": model_id})[0], 404)

    def test_a_run_that_unloads_its_models_has_ended(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            session = self.post("create_session", {})[1]["session_id"]
            for _ in range(2):  # a session may go on after its last model
                models = [self.result("create_model", {"base_model": "tiny", "session_id": session})[1]["model_id"] for _ in range(2)]
                for model_id in models:
                    self.assertEqual(self.post("unload_model", {"model_id": model_id})[0], 200)
            self.api.sessions[session] -= 1000
            self.api.free_silent_sessions()
        self.assertEqual(self.post("session_heartbeat", {"session_id": session})[0], 404)
        self.assertEqual(self.api.ended, set())
        come, *ended = said.getvalue().splitlines()
        self.assertRegex(come, r"a run came .*; 1 here$")
        self.assertEqual([line.split("  ")[1] for line in ended], [f"a run ended ({session}); 0 here"] * 2)


if __name__ == "__main__":
    unittest.main()
