"""A small model that plays whole episodes, on servers of its own: time to act and to learn, and memory.

128 episodes of 30 turns, of which each continues the one before: a response of 8 tokens and an
observation of 32, up to 1,500 tokens. Prompts are random and no environment runs here, so this
measures the server with its HTTP. One server alone, then six and nine side by side on the same GPU.
"""
from __future__ import annotations

import base64
import http.client
import json
import multiprocessing
import random
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Optional, Sequence
from urllib.parse import urlsplit

import torch

Json = dict[str, Any]
SERVE = Path(__file__).parents[2] / "servers" / "torch" / "serve.py"
# SmolLM2-135M.
SHAPE: Json = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 49_152, "hidden_size": 576,
    "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3, "intermediate_size": 1536,
    "max_position_embeddings": 8192, "rope_theta": 100_000.0, "rms_norm_eps": 1e-5, "hidden_act": "silu",
    "tie_word_embeddings": True,
}  # fmt: skip
TINY = {**SHAPE, "vocab_size": 512, "hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2}
# Less than a run takes by itself.
LITTLE_GIB = 6
GROUPS, MEMBERS, TURNS, RESPONSE, OBSERVATION, FIRST = 16, 8, 30, 8, 32, 300


class Client:
    """One run's calls to a server."""

    def __init__(self, url: str, vocabulary: int, episodes: tuple[int, int, int]) -> None:
        self.address, self.vocabulary = urlsplit(url).netloc, vocabulary
        self.groups, self.members, self.turns = episodes
        self.connection = http.client.HTTPConnection(self.address, timeout=600)
        session = self.post("create_session", {"tags": [], "sdk_version": "bench"})["session_id"]
        self.model = self.post("create_model", {"session_id": session, "base_model": "small"})["model_id"]

    def post(self, call: str, body: Json) -> Json:
        headers = {"Content-Type": "application/json", "X-Pawl-Binary": "1"}
        while True:
            self.connection.request("POST", f"/api/v1/{call}", json.dumps(body), headers)
            response = self.connection.getresponse()
            found = json.loads(response.read())
            if response.status != 408:
                break
        if response.status != 200:
            raise RuntimeError(f"{call}: {found}")
        if "request_id" in found and call != "retrieve_future":
            return {**found, **self.post("retrieve_future", {"request_id": found["request_id"]})}
        return found

    def act(self) -> tuple[float, list[list[int]]]:
        """Plays all episodes; returns the seconds spent waiting for the server."""
        rand, seconds = random.Random(1), 0.0
        some = lambda count: [rand.randrange(self.vocabulary) for _ in range(count)]
        texts = [list(text) for text in (some(FIRST) for _ in range(self.groups)) for _ in range(self.members)]
        for turn in range(self.turns):
            requests = [
                {
                    "prompt": packed(text, "int32"), "num_samples": 1, "continued": True,
                    "sampling_params": {"max_tokens": RESPONSE, "seed": 1000 * turn + i, "temperature": 1.0},
                }
                for i, text in enumerate(texts)
            ]  # fmt: skip
            begin = time.monotonic()
            results = self.post("sample_batch", {"model_id": self.model, "requests": requests})["results"]
            seconds += time.monotonic() - begin
            for text, result in zip(texts, results):
                text += [*result["sequences"][0]["tokens"], *some(OBSERVATION)]
        return seconds, texts

    def learn(self, texts: list[list[int]]) -> float:
        """Learns all episodes as they are, and steps; returns seconds."""
        data = [
            {
                "model_input": packed(text[:-1], "int32"),
                "loss_fn_inputs": {
                    "target_tokens": packed(text[1:], "int32"),
                    "weights": packed([1e-6] * (len(text) - 1), "float32"),
                },
            }
            for text in texts
        ]
        begin = time.monotonic()
        body = {"model_id": self.model, "forward_backward_input": {"data": data, "loss_fn": "cross_entropy"}}
        self.post("forward_backward", body)
        self.post("optim_step", {"model_id": self.model, "adam_params": {"learning_rate": 1e-6}})
        return time.monotonic() - begin


def packed(numbers: list[Any], dtype: str) -> Json:
    """A list of numbers as the server takes it."""
    data = struct.pack(f"{len(numbers)}{'i' if dtype == 'int32' else 'f'}", *numbers)
    return {"base64": base64.b64encode(data).decode(), "dtype": dtype, "shape": [len(numbers)]}


def play(url: str, vocabulary: int, episodes: tuple[int, int, int], barrier: Any, found: Any) -> None:
    """A run in a process of its own: once to warm up, then together with all others."""
    try:
        client = Client(url, vocabulary, episodes)
        client.learn(client.act()[1])
        barrier.wait(600)
        begin = time.monotonic()
        acting, texts = client.act()
        wall = time.monotonic() - begin
        barrier.wait(600)
        learning = client.learn(texts)
        found.put((acting, wall, learning, ""))
    except Exception as error:
        barrier.abort()
        found.put((0.0, 0.0, 0.0, f"{type(error).__name__}: {error}"[:300]))


class Watch:
    """The most memory of the GPU that was in use at once, beyond what was in use before."""

    def __enter__(self) -> "Watch":
        self.before, self.most, self.going = used_bytes(), 0, True
        self.thread = threading.Thread(target=self._look)
        self.thread.start()
        return self

    def _look(self) -> None:
        while self.going:
            self.most = max(self.most, used_bytes() - self.before)
            time.sleep(0.02)

    def __exit__(self, *_: object) -> None:
        self.going = False
        self.thread.join()

    @property
    def gib(self) -> float:
        return round(self.most / 2**30, 2)


def used_bytes() -> int:
    if not torch.cuda.is_available():
        return 0
    free, total = torch.cuda.mem_get_info()
    return total - free


def side_by_side(count: int, folder: Path, shape: Json, episodes: tuple[int, int, int], options: Sequence[str] = ()) -> Json:
    """So many servers, each with a run."""
    servers: list[subprocess.Popen[str]] = []
    context = multiprocessing.get_context("spawn")
    barrier, found = context.Barrier(count), context.Queue()
    with Watch() as watch:
        try:
            for i in range(count):
                command = [sys.executable, str(SERVE), "--model", str(folder), "--name", "small", "--checkpoints", str(folder / f"checkpoints-{i}"), *options]
                servers.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            urls = [json.loads(server.stdout.readline())["listening"] for server in servers]
            clients = [context.Process(target=play, args=(url, shape["vocab_size"], episodes, barrier, found)) for url in urls]
            for client in clients:
                client.start()
            results = [found.get(timeout=600) for _ in clients]
            for client in clients:
                client.join()
        finally:
            for server in servers:
                server.kill()
                server.wait()
    failed = [result[3] for result in results if result[3]]
    acting, wall, learning = (max(result[i] for result in results) for i in range(3))
    return {
        "actSIDE_s": round(acting, 2), "act_wallSIDE_s": round(wall, 2), "learnSIDE_s": round(learning, 2),
        "gibSIDE": watch.gib, "failedSIDE": failed[0] if failed else None,
    }  # fmt: skip


def tight(folder: Path, shape: Json, episodes: tuple[int, int, int]) -> dict[str, Json]:
    """One run with less memory than it would take: by the server's own limit, and on a GPU that is nearly full."""
    found = {"limited": side_by_side(1, folder, shape, episodes, ["--memory", str(LITTLE_GIB)])}
    free, _ = torch.cuda.mem_get_info()
    others = torch.empty(int(free - LITTLE_GIB * 2**30), dtype=torch.uint8, device="cuda")
    found["full"] = side_by_side(1, folder, shape, episodes)
    del others
    torch.cuda.empty_cache()
    for label, fields in found.items():
        print(label, json.dumps(fields), file=sys.stderr, flush=True)
    return found


def small_section(bench: Optional[Any] = None) -> Json:
    """One run alone, six and nine side by side."""
    gpu = torch.cuda.is_available()
    shape = SHAPE if gpu else TINY
    episodes = (GROUPS, MEMBERS, TURNS) if gpu else (2, 2, 3)
    fields: Json = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "config.json").write_text(json.dumps(shape))
        for count, label in ((1, ""), (6, "_six"), (9, "_nine")) if gpu else ((1, ""), (2, "_six")):
            found = side_by_side(count, folder, shape, episodes)
            fields.update({f"small_{key}".replace("SIDE", label): value for key, value in found.items()})
            print(json.dumps(found), file=sys.stderr, flush=True)
        if gpu:
            for label, found in tight(folder, shape, episodes).items():
                fields.update({f"small_{key}".replace("SIDE", f"_{label}"): value for key, value in found.items()})
    if fields["small_act_s"]:
        fields["small_act_six_ratio"] = round(fields["small_act_six_s"] / fields["small_act_s"], 2)
    return fields


if __name__ == "__main__":
    print(json.dumps(small_section()))
