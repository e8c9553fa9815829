"""Speed of the server's engine compared with plain transformers on the same GPU, in the same run.

    python3 bench/gpu/gpu_bench.py --objectives FILE [--shape qwen2.5-1.5b] [SECTION …]

Each section runs in its own process and prints one line of JSON when it is done; the last line has
all fields, ratios first. FILE holds the objectives {"grpo", "paw"} as written by bench/gpu.ts from their
definition. Both sides get the same prompts and the same sequences, and transformers is used well (gpu_peer.py).
"""
from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable

import torch

from gpu_small import small_section
from gpu_peer import GPU, Json, free, generate, make_batches, peak_gib, timed, train
# The server is measured where it lies.
sys.path.insert(0, str(Path(__file__).parents[2] / "servers" / "torch"))

from pawl_server.engine import Engine
from pawl_server.engine_types import EngineOptions
from pawl_server.expression import Objective, parse_objective
from pawl_server.losses import standard_objective
from pawl_server.ranks import join_ranks
from pawl_server.sampler import SampleRequest
from pawl_server.sequences import Sequences
from pawl_server.weights import AdamParams

SHAPES: dict[str, Json] = {
    "qwen2.5-1.5b": {
        "vocab_size": 151_936, "hidden_size": 1536, "num_hidden_layers": 28, "num_attention_heads": 12,
        "num_key_value_heads": 2, "intermediate_size": 8960, "max_position_embeddings": 4096,
    },
    "tiny": {
        "vocab_size": 512, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "intermediate_size": 128, "max_position_embeddings": 4096,
    },
}  # fmt: skip
COMMON = {
    "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "rope_theta": 1_000_000.0, "rms_norm_eps": 1e-6,
    "hidden_act": "silu", "tie_word_embeddings": True,
}  # fmt: skip
# Tokens of ALFWorld's prompts and next observations: deciles of 6,385 steps recorded from the original
# (valid_seen; characters / 4). Responses: a short thought and an action.
PROMPTS = (392, 408, 424, 442, 467, 491, 515, 544, 603)
OBSERVATIONS = (6, 9, 10, 11, 12, 13, 15, 18, 23, 60)
RESPONSES = (40, 160)
# The share of transitions whose observation PaW learns from.
SELECTED = 0.75
# The GPU's memory bandwidth from its datasheet, for the bound on sampling.
BANDWIDTH = 4.8e12
# Our rate and the other side's. The last two favour us: a peer that pads behind a mask and computes
# all logits, and one that prefills a prompt again for each of its samples.
RATIOS = {
    "train_full_ratio": ("train_full_tokens_per_s", "plain_full_tokens_per_s"),
    "train_full_compiled_ratio": ("train_full_tokens_per_s", "plain_full_compiled_tokens_per_s"),
    "train_ratio": ("train_tokens_per_s", "plain_tokens_per_s"),
    "sample_ratio": ("sample_tokens_per_s", "generate_tokens_per_s"),
    "sample_long_ratio": ("sample_long_tokens_per_s", "generate_long_tokens_per_s"),
    "continued_ratio": ("continued_tokens_per_s", "whole_tokens_per_s"),
    "continued_short_ratio": ("continued_short_tokens_per_s", "whole_short_tokens_per_s"),
    "sample_compiled_ratio": ("sample_tokens_per_s", "generate_compiled_tokens_per_s"),
    "sample_grouped_ratio": ("sample_grouped_tokens_per_s", "generate_grouped_tokens_per_s"),
    "sample_grouped_long_ratio": ("sample_grouped_long_tokens_per_s", "generate_grouped_long_tokens_per_s"),
    "train_padded_ratio": ("train_tokens_per_s", "plain_padded_tokens_per_s"),
    "sample_grouped_unshared_ratio": ("sample_grouped_tokens_per_s", "generate_tokens_per_s"),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("sections", nargs="*", help=f"some of: {', '.join(SECTIONS)} (default: all)")
    parser.add_argument("--objectives", type=Path, required=True)
    parser.add_argument("--shape", choices=SHAPES, default="qwen2.5-1.5b")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for each section")
    parser.add_argument("--here", action="store_true", help="run one section in this process")
    arguments = parser.parse_args()
    if arguments.here:
        objectives = {name: parse_objective(value) for name, value in json.loads(arguments.objectives.read_text()).items()}
        with tempfile.TemporaryDirectory() as folder:
            shape = {**COMMON, **SHAPES[arguments.shape]}
            (Path(folder) / "config.json").write_text(json.dumps(shape))
            print(json.dumps(SECTIONS[arguments.sections[0]](Bench(Path(folder), shape, objectives))), flush=True)
        return
    fields: Json = {"device": torch.cuda.get_device_name() if GPU else "cpu", "torch": torch.__version__}
    for section in arguments.sections or SECTIONS:
        found = run_section(section, arguments)
        fields.update(found)
        print(json.dumps(found), flush=True)
    ratios = {name: round(fields[ours] / fields[theirs], 3) for name, (ours, theirs) in RATIOS.items() if {ours, theirs} <= fields.keys()}
    print(json.dumps({**ratios, **fields}), flush=True)


def run_section(section: str, arguments: argparse.Namespace) -> Json:
    """Runs a section in its own process, so that leftover memory or failures do not affect the next
    one.
    """
    command = [sys.executable, __file__, "--here", "--shape", arguments.shape, "--objectives", str(arguments.objectives), section]
    begin = time.monotonic()
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=arguments.timeout)
    except subprocess.TimeoutExpired:
        return {f"{section}_status": f"not done in {arguments.timeout} s"}
    seconds = round(time.monotonic() - begin, 1)
    if done.returncode != 0:
        return {f"{section}_status": f"failed with {done.returncode} after {seconds} s"}
    return {**json.loads(done.stdout.splitlines()[-1]), f"{section}_status": f"done in {seconds} s"}


class Bench:
    """A model's shape, the objectives, and functions to create an engine and sequences for it."""

    def __init__(self, folder: Path, shape: Json, objectives: dict[str, Objective]) -> None:
        self.folder, self.shape, self.objectives = folder, shape, objectives
        self.device = torch.device("cuda", 0) if GPU else torch.device("cpu")
        self.random = random.Random(0)
        self.small = shape["vocab_size"] < 10_000

    def engine(self, **changes: Any) -> Engine:
        options: Json = {"dtype": torch.bfloat16 if GPU else torch.float32, "batch_tokens": 16_384, "checkpointing": False, "compiled": GPU}
        return Engine(self.folder, join_ranks(), EngineOptions(**{**options, **changes}), lora_rank=0, value_head=False, seed=0)

    def tokens(self, count: int) -> list[int]:
        return [self.random.randrange(self.shape["vocab_size"]) for _ in range(count)]

    def steps(self, count: int) -> list[tuple[int, int, int]]:
        """Lengths of prompt, response and next observation for some steps of an agent."""
        return [
            (
                self.random.choice(PROMPTS) + self.random.randrange(-8, 9),
                self.random.randint(*RESPONSES),
                self.random.choice(OBSERVATIONS) if self.random.random() < SELECTED else 0,
            )
            for _ in range(count)
        ]

    def flops(self, lengths: list[int], targets: int) -> float:
        """Floating-point operations of a forward and backward pass: matrices and causal attention,
        nothing twice.
        """
        s = self.shape
        size = s["hidden_size"] // s["num_attention_heads"]
        kv = s["num_key_value_heads"] * size
        layer = s["hidden_size"] * (2 * s["hidden_size"] + 2 * kv + 3 * s["intermediate_size"])
        matrices = 6 * s["num_hidden_layers"] * layer * sum(lengths)
        attention = 6 * s["num_hidden_layers"] * s["hidden_size"] * sum(length * length for length in lengths)
        return matrices + attention + 6 * s["vocab_size"] * s["hidden_size"] * targets


def rollout(bench: Bench, steps: list[tuple[int, int, int]], paw: bool) -> Sequences:
    """The sequences of an update: prompt and response, followed by the next observation with PaW."""
    lengths = [p + r + (o if paw else 0) - 1 for p, r, o in steps]
    total = sum(lengths)
    mask = torch.cat([torch.arange(n) >= p - 1 for n, (p, _, _) in zip(lengths, steps)])
    world = torch.cat([torch.arange(n) >= p + r - 1 for n, (p, r, _) in zip(lengths, steps)])
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(bench.shape["vocab_size"], (total,), generator=generator)
    level = -torch.log(torch.tensor(float(bench.shape["vocab_size"])))
    inputs = {
        "advantage": torch.randn(total, generator=generator),
        "oldLogprob": level.expand(total),
        "referenceLogprob": level.expand(total),
        "policyWeight": (mask & ~world) / total,
        "worldWeight": (mask & world) / total,
    }
    return Sequences(tuple(lengths), ids, ids.roll(-1), mask, inputs)


def measured_peak(bench: Bench) -> float:
    """The matrix peak, in FLOP/s: a large bfloat16 product of random numbers."""
    n = 8192 if GPU else 256
    dtype = torch.bfloat16 if GPU else torch.float32
    a, b = (torch.randn(n, n, device=bench.device, dtype=dtype) for _ in range(2))
    return 2 * n**3 * 10 / timed(lambda: [a @ b for _ in range(10)], warm=2)


def peak_section(bench: Bench) -> Json:
    peak = measured_peak(bench)
    x = torch.randn(2**30 if GPU else 2**20, device=bench.device)
    y = torch.empty_like(x)
    bandwidth = 2 * x.numel() * 4 / timed(lambda: y.copy_(x), repeat=5)
    return {"matmul_tflops": round(peak / 1e12, 1), "copy_gb_per_s": round(bandwidth / 1e9)}


def check_section(_: Bench) -> Json:
    """Checks that the GPU computes what the CPU does: attention, gradients, sampling against
    training, several processes.
    """
    from gpu_check import check

    return check()


def train_section(bench: Bench) -> Json:
    """One optimiser step over 8 × 1,024 tokens, all of them targets; and over sequences like ALFWorld's."""
    peak = measured_peak(bench)
    rows, length = (8, 1024) if not bench.small else (4, 64)
    full = _plain_sequences(bench, rows, length)
    steps = bench.steps(256 if not bench.small else 8)
    agent = rollout(bench, steps, paw=True)
    adam = AdamParams(1e-6)
    results: Json = {}
    engine = bench.engine()
    for name, sequences, objective in (
        ("train_full", full, standard_objective("cross_entropy", {})),
        ("train", agent, bench.objectives["paw"]),
    ):
        work = lambda: (engine.learn(sequences, objective), engine.step(adam))
        seconds = timed(work, warm=2)
        flops = bench.flops(list(sequences.lengths), int(sequences.mask.sum()))
        results[f"{name}_tokens_per_s"] = round(len(sequences.tokens) / seconds)
        results[f"{name}_peak_share"] = round(flops / seconds / peak, 4)
        results[f"{name}_gib"] = round(peak_gib(work), 1)
    del engine, work
    free()
    print(json.dumps(results), file=sys.stderr, flush=True)
    masks = list(agent.mask.split(agent.lengths))
    same = lambda rows=None: make_batches(list(agent.lengths), masks, bench.shape["vocab_size"], rows)
    for name, batches, careful in (("plain_full", _full(bench, rows, length), True), ("plain", same(), True), ("plain_padded", same(16), False)):
        results.update({f"{name}_{key}": value for key, value in train(bench.shape, batches, careful).items()})
    results["matmul_tflops_beside"] = round(peak / 1e12, 1)
    return results


def _full(bench: Bench, rows: int, length: int) -> list[Any]:
    return make_batches([length] * rows, [torch.ones(length, dtype=torch.bool)] * rows, bench.shape["vocab_size"])


def _plain_sequences(bench: Bench, rows: int, length: int) -> Sequences:
    ids = torch.randint(bench.shape["vocab_size"], (rows * length,), generator=torch.Generator().manual_seed(2))
    ones = torch.ones(rows * length)
    return Sequences((length,) * rows, ids, ids.roll(-1), ones.bool(), {"weights": ones / len(ids)})


def sample_section(bench: Bench) -> Json:
    """128 sequences with prompts of 512 tokens, 128 or 512 new tokens each: 128 distinct prompts, and 16 groups of 8."""
    rows, prompt, new, group = sampling(bench)
    engine = bench.engine()
    results: Json = {}
    s = bench.shape
    size = s["hidden_size"] // s["num_attention_heads"]
    cache = rows * (prompt + new / 2) * 2 * s["num_key_value_heads"] * size * 2 * s["num_hidden_layers"]
    bound = rows / ((2 * engine.parameters + cache) / BANDWIDTH)
    results["sample_bound_tokens_per_s"] = round(bound)
    # Four times as many new tokens: the maximum length of a response.
    cases = {"": (rows, 1), "_grouped": (rows // group, group)}
    for name, (prompts, count) in cases.items():
        for kind, length in (("", new), ("_long", 4 * new)):
            requests = [SampleRequest(torch.tensor(bench.tokens(prompt)), count, length, seed) for seed in range(prompts)]
            rate = rows * length / timed(lambda: engine.sample(requests))
            results[f"sample{name}{kind}_tokens_per_s"] = round(rate)
            if not kind:
                results[f"sample{name}_bound_share"] = round(rate / bound, 4)
    decoder = engine.sampler.decoders[max(engine.sampler.decoders)]
    results["decode_step_ms"] = round(timed(lambda: decoder.run(decoder.chosen.shape[0])) / decoder.chosen.shape[0] * 1000, 3)
    results.update(agreement(bench, engine))
    del engine, decoder
    free()
    print(json.dumps(results), file=sys.stderr, flush=True)
    for name, (prompts, count) in cases.items():
        rates = generate(s, prompts, count, prompt, [new, 4 * new])
        results.update(zip((f"generate{name}_tokens_per_s", f"generate{name}_long_tokens_per_s"), rates))
    return results


def sampling(bench: Bench) -> tuple[int, int, int, int]:
    """Rows, tokens of a prompt, new tokens, and samples per prompt if it has several."""
    return (128, 512, 128, 8) if not bench.small else (8, 16, 8, 4)


def continued_section(bench: Bench) -> Json:
    """128 distinct prompts of 512 tokens, 400 of them from the turn before: continued from its kept pages, and read whole."""
    rows, prompt, new, _ = sampling(bench)
    shared = prompt * 400 // 512
    engine = bench.engine()
    results: Json = {}
    for kind, length in (("", new), ("_short", new // 4)):
        seconds: dict[bool, list[float]] = {True: [], False: []}
        for seed in range(8):
            continued = seed % 2 == 0
            requests = [SampleRequest(tuple(bench.tokens(shared - new // 4)), 1, new // 4, seed * rows + i, continued=True) for i in range(rows)]
            before = [[*row.request.prompt, *row.tokens] for (row,) in engine.sample(requests)]
            texts = [tuple(text + bench.tokens(prompt - shared)) for text in before]
            asked = [SampleRequest(text, 1, length, i, continued=continued) for i, text in enumerate(texts)]
            seconds[continued].append(timed(lambda: engine.sample(asked), repeat=1, warm=0))
        # The first of each warms up.
        for continued, name in ((True, "continued"), (False, "whole")):
            results[f"{name}{kind}_tokens_per_s"] = round(rows * length / sorted(seconds[continued][1:])[1])
    return results


def compiled_section(bench: Bench) -> Json:
    """The other side compiled: full sequences, and sampling of distinct prompts with a static cache."""
    rows, prompt, new, _ = sampling(bench)
    full = (8, 1024) if not bench.small else (4, 64)
    found = train(bench.shape, _full(bench, *full), careful=True, compiled=True)
    results = {f"plain_full_compiled_{key}": value for key, value in found.items()}
    print(json.dumps(results), file=sys.stderr, flush=True)
    (results["generate_compiled_tokens_per_s"],) = generate(bench.shape, rows, 1, prompt, [new], compiled=True)
    return results


def agreement(bench: Bench, engine: Engine) -> Json:
    """The difference between log-probabilities of sampling and of training, for the same tokens and
    weights.
    """
    groups = engine.sample([SampleRequest(tuple(bench.tokens(300)), 4, 64, seed) for seed in range(4)])
    gaps = []
    for row in (row for group in groups for row in group):
        ids = torch.tensor([*row.request.prompt, *row.tokens])
        mask = torch.arange(len(ids) - 1) >= len(row.request.prompt) - 1
        sequences = Sequences((len(ids) - 1,), ids[:-1], ids[1:], mask, {})
        scored = engine.score(sequences, reference=False, entropies=False, values=False).logprobs[mask]
        gaps.append((scored - torch.tensor(row.logprobs)).abs())
    found = torch.cat(gaps)
    return {"agreement_mean": float(f"{found.mean():.3g}"), "agreement_max": float(f"{found.max():.3g}")}


def update_section(bench: Bench) -> Json:
    """A PaW and a GRPO update of 128 episodes, extrapolated from some rounds of acting, scoring and
    learning.

    There are no environments here: a step's prompt has a recorded length and random tokens, so this
    measures the engine. An update of 128 episodes of 50 steps has 50 / ROUNDS times as much of
    everything except the optimiser step.
    """
    rounds, rows, whole = (3, 128, 50) if not bench.small else (1, 8, 50)
    engine = bench.engine()
    engine.snapshot_reference()
    steps = [step for _ in range(rounds) for step in bench.steps(rows)]
    rollouts = {name: rollout(bench, steps, name == "paw") for name in ("grpo", "paw")}

    def act() -> None:
        for i in range(rounds):
            batch = steps[i * rows : (i + 1) * rows]
            engine.sample([SampleRequest(tuple(bench.tokens(p)), 1, r, i) for p, r, _ in batch])

    def learn(name: str) -> None:
        engine.learn(rollouts[name], bench.objectives[name])
        engine.step(AdamParams(1e-6))

    def score(reference: bool) -> None:
        engine.score(rollouts["grpo"], reference=reference, entropies=False, values=False)

    learn("paw")
    memory = {name: peak_gib(lambda: learn(name)) for name in rollouts}
    learning: dict[str, list[float]] = {name: [] for name in rollouts}
    for _ in range(3):
        for name, seconds in learning.items():
            seconds.append(timed(lambda: learn(name), repeat=1, warm=0))
    times = {name: sorted(seconds)[1] for name, seconds in learning.items()}
    times["scoring"] = timed(lambda: (score(False), score(True)), repeat=1)
    times["acting"] = timed(act, repeat=1)
    common, scale = times["acting"] + times["scoring"], whole / rounds
    return {
        **{f"engine_{name}_s": round(seconds * scale, 1) for name, seconds in times.items()},
        "engine_update_s": round((common + times["paw"]) * scale, 1),
        "engine_measured_share": round(1 / scale, 3),
        "paw_time_ratio": round((common + times["paw"]) / (common + times["grpo"]), 4),
        "paw_training_time_ratio": round(times["paw"] / times["grpo"], 4),
        "paw_memory_ratio": round(memory["paw"] / max(memory["grpo"], 1e-9), 4),
        "paw_extra_tokens": round(sum(o for _, _, o in steps) / sum(p + r for p, r, _ in steps), 4),
    }


SECTIONS: dict[str, Callable[[Bench], Json]] = {
    "peak": peak_section,
    "check": check_section,
    "train": train_section,
    "sample": sample_section,
    "continued": continued_section,
    "compiled": compiled_section,
    "update": update_section,
    "small": small_section,
}

if __name__ == "__main__":
    os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    main()
