"""Checks that need a GPU: GPU against CPU at all temperatures, sampling against training, and ranks against each other.

    python3 bench/gpu/gpu_check.py      all checks; the distances found, as JSON
"""
from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

# The server is measured where it lies.
sys.path.insert(0, str(Path(__file__).parents[2] / "servers" / "torch"))

from pawl_server.attention import PackedAttention
from pawl_server.choose import choose
from pawl_server.engine import Engine
from pawl_server.engine_types import EngineOptions
from pawl_server.extending_attention import ExtendingAttention
from pawl_server.expression import parse_objective
from pawl_server.losses import standard_objective
from pawl_server.pages import Pages
from pawl_server.paged_attention import PagedAttention
from pawl_server.ranks import Ranks, join_ranks
from pawl_server.sampler import SampleRequest
from pawl_server.sequences import Sequences
from pawl_server.weights import AdamParams

CONFIG = {
    "architectures": ["Qwen2ForCausalLM"], "vocab_size": 1000, "hidden_size": 256, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "intermediate_size": 512,
    "max_position_embeddings": 1024, "tie_word_embeddings": True,
}  # fmt: skip
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 128}
# What other architectures change in CONFIG.
OTHERS: dict[str, dict[str, Any]] = {
    "llama3": {"architectures": ["LlamaForCausalLM"], "rope_scaling": LLAMA3},
    "qwen3": {"architectures": ["Qwen3ForCausalLM"]},
    "mistral": {"architectures": ["MistralForCausalLM"], "sliding_window": 100},
    "smollm3": {"architectures": ["SmolLM3ForCausalLM"], "no_rope_layers": [1, 0, 1]},
    "gemma3": {
        "architectures": ["Gemma3ForCausalLM"], "query_pre_attn_scalar": 50, "sliding_window": 40,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    },
}  # fmt: skip
CPU = torch.device("cpu")


def check() -> dict[str, Any]:
    """Runs all checks; raises if one fails, and returns the differences found."""
    device = torch.device("cuda", 0) if torch.cuda.is_available() else CPU
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "config.json").write_text(json.dumps(CONFIG))
        found = {
            **check_attention(device), **check_paged(device), **check_extending(device), **check_engine(Path(name), device),
            **check_lora(Path(name), device), **check_ranks(Path(name), device), **check_architectures(device),
        }  # fmt: skip
    for what, (distance, limit) in found.items():
        assert distance <= limit, f"{what}: {distance} is more than {limit}"
    return {what: float(f"{distance:.3g}") for what, (distance, _) in found.items()}


def distance(a: torch.Tensor, b: torch.Tensor) -> float:
    """‖a − b‖ / ‖b‖, in double precision."""
    a, b = a.detach().double().cpu(), b.detach().double().cpu()
    return float((a - b).norm() / b.norm())


def check_attention(device: torch.device) -> dict[str, tuple[float, float]]:
    """Packed attention and its gradient against the CPU's, including grouped heads."""
    lengths = (37, 128, 5, 300)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    q, k, v, slope = (torch.randn(sum(lengths), heads, 64).to(dtype) for heads in (4, 2, 2, 4))
    found = {}
    for which, window in (("attention", None), ("window_attention", 50)):
        results = []
        for where, kind in ((device, dtype), (CPU, torch.float32)):
            inputs = [x.to(where, kind).requires_grad_() for x in (q, k, v)]
            out = PackedAttention(lengths, where)(0, *inputs, window)
            results.append([out, *torch.autograd.grad(out, inputs, slope.to(where, kind))])
        for name, a, b in zip(("", "_dq", "_dk", "_dv"), *results):
            found[f"{which}{name}"] = (distance(a, b), 1e-2)
    return found


def check_paged(device: torch.device) -> dict[str, tuple[float, float]]:
    """Paged attention with many rows and few, and the choice of tokens, against the CPU's."""
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    worst = 0.0
    for rows, heads, kv_heads, size, window in (
        (128, 12, 2, 128, None), (3, 4, 4, 64, None), (16, 8, 4, 256, None), (128, 12, 2, 128, 100), (3, 4, 1, 256, 300)
    ):  # fmt: skip
        new = [torch.randn(rows, count, size).to(dtype) for count in (heads, kv_heads, kv_heads)]
        keys, values = (torch.randn(10 * rows, 64, kv_heads, size).to(dtype) for _ in range(2))
        tables = torch.randperm(10 * rows, dtype=torch.int32).view(rows, 10)
        lengths = torch.randint(1, 640, (rows,))
        found = []
        for where, kind in ((device, dtype), (CPU, torch.float32)):
            pages = Pages(keys[None].to(where, kind), values[None].to(where, kind))
            attend = PagedAttention(pages, tables.to(where), lengths.to(where))
            found.append((attend(0, *(x.to(where, kind) for x in new), window), pages.keys, pages.values))
        worst = max(worst, *(distance(there, here) for there, here in zip(*found)))
    logits, temperatures, uniform = 3 * torch.randn(128, 151_936), 0.5 + torch.rand(128), torch.rand(128)
    there, here = (choose(*(x.to(where) for x in (logits, temperatures, uniform))) for where in (device, CPU))
    # Sums in a different order may put a draw on the other side of the border between two tokens.
    same = there.tokens.cpu() == here.tokens
    gap = max(float((a.cpu() - b)[same].abs().max()) for a, b in zip(there[1:], here[1:]))
    return {"paged_attention": (worst, 1e-2), "choices_changed": (1 - float(same.float().mean()), 0.05), "choice_logprobs": (gap, 1e-4)}


def check_extending(device: torch.device) -> dict[str, tuple[float, float]]:
    """Attention of new tokens to pages that other calls have filled, against the CPU's."""
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    lengths, new = (37, 128, 700, 300), (37, 1, 60, 129)
    tables = 1 + torch.randperm(44).view(4, 11)
    memory = [torch.randn(1, 45, 64, 3, 64).to(dtype) for _ in range(2)]
    q, k, v = (torch.randn(sum(new), heads, 64).to(dtype) for heads in (9, 3, 3))
    found = []
    for where, kind in ((device, dtype), (CPU, torch.float32)):
        pages = Pages(*(x.to(where, kind) for x in memory))
        attend = ExtendingAttention(pages, tables.to(where), lengths, new)
        attended = [attend(0, *(x.to(where, kind) for x in (q, k, v)), window) for window in (None, 50)]
        found.append((*attended, pages.keys, pages.values))
    return {"extending_attention": (max(distance(there, here) for there, here in zip(*found)), 1e-2)}


def check_engine(folder: Path, device: torch.device) -> dict[str, tuple[float, float]]:
    """Log-probabilities, gradients and updates in bfloat16 against 32 bits on the CPU; sampling against both."""
    gpu = device.type == "cuda"
    there = _engine(folder, Ranks(0, 1, device, None), torch.bfloat16 if gpu else torch.float32, compiled=gpu)
    here = _engine(folder, Ranks(0, 1, CPU, None), torch.float32, compiled=False)
    for name, parameter in here.weights.parameters.items():
        there.weights.assign(name, parameter.detach())
    ids = torch.randint(1000, (600,))
    lengths = (100, 250, 30, 220)
    mask = torch.rand(600) < 0.7
    sequences = Sequences(lengths, ids, ids.roll(-1), mask, {"weights": torch.randn(600) / 600})
    objective = standard_objective("cross_entropy", {})
    learned = [engine.learn(sequences, objective) for engine in (there, here)]
    gradients = [engine.weights.gradients for engine in (there, here)]
    found = {
        "logprobs": (distance(learned[0].logprobs, learned[1].logprobs), 1e-2),
        "gradient": (max(distance(gradients[0][name], gradients[1][name]) for name in gradients[1]), 5e-2),
    }
    found.update(_check_temperatures(there, here, sequences))
    there.snapshot_reference()
    before = there.score(sequences, reference=False, entropies=False, values=False).logprobs
    norms = [engine.step(AdamParams(1e-3)) for engine in (there, here)]
    found["gradient_norm"] = (abs(norms[0] / norms[1] - 1), 2e-2)
    scored = [engine.score(sequences, reference=False, entropies=True, values=False) for engine in (there, here)]
    found["logprobs_after_update"] = (distance(scored[0].logprobs, scored[1].logprobs), 1e-2)
    found["entropies"] = (distance(scored[0].entropies, scored[1].entropies), 1e-2)
    found.update(_check_sampling(there))
    found.update(_check_reference(there, sequences, before))
    return found


def _check_reference(engine: Engine, sequences: Sequences, before: torch.Tensor) -> dict[str, tuple[float, float]]:
    """Scoring with the reference, on its own stream while sampling begins: what the policy scored before its
    step, and the same samples as without.
    """
    requests = [SampleRequest(tuple(range(10 + i)), 4, 40, i) for i in range(4)]
    tokens = lambda groups: [row.tokens for group in groups for row in group]
    alone = tokens(engine.sample(requests))
    begun = [engine.scoring(sequences, reference=True, entropies=False, values=False) for _ in range(8)]
    for scoring in begun:
        engine.advance(scoring)
    together = tokens(engine.sample(requests))
    changed = sum(a != b for a, b in zip(alone, together)) / len(alone)
    worst = max(distance(scoring.result().logprobs, before) for scoring in begun)
    return {"reference_beside_sampling": (worst, 1e-3), "samples_changed_by_scoring": (changed, 0.1)}


def _check_temperatures(there: Engine, here: Engine, sequences: Sequences) -> dict[str, tuple[float, float]]:
    """The same at other temperatures, with the entropy's gradient; leaves the accumulated gradient
    unchanged.
    """
    tempered = replace(sequences, temperatures=0.4 + torch.rand(len(sequences.tokens)))
    weighted = {"op": "mul", "x": {"op": "input", "name": "weights"}, "y": {"op": "logprob"}}
    loss = {"op": "sub", "x": weighted, "y": {"op": "mul", "x": {"op": "const", "value": 1e-3}, "y": {"op": "entropy"}}}
    objective = parse_objective({"loss": loss, "metrics": {}})
    before = [{n: g.clone() for n, g in engine.weights.gradients.items()} for engine in (there, here)]
    learned = [engine.learn(tempered, objective) for engine in (there, here)]
    added = [
        {name: gradient - kept[name] for name, gradient in engine.weights.gradients.items()}
        for engine, kept in zip((there, here), before)
    ]
    for engine, kept in zip((there, here), before):
        for name, gradient in engine.weights.gradients.items():
            gradient.copy_(kept[name])
    scored = [engine.score(tempered, reference=False, entropies=True, values=False) for engine in (there, here)]
    return {
        "tempered_logprobs": (distance(learned[0].logprobs, learned[1].logprobs), 1e-2),
        "tempered_entropies": (distance(scored[0].entropies, scored[1].entropies), 1e-2),
        "tempered_gradient": (max(distance(added[0][name], added[1][name]) for name in added[1]), 5e-2),
    }


def _check_sampling(engine: Engine) -> dict[str, tuple[float, float]]:
    requests = [
        SampleRequest(tuple((7 * i + j) % 1000 for j in range(20 + 13 * i)), 4, 40, i, 0.8 if i % 2 else 1.0, continued=True)
        for i in range(6)
    ]
    groups = engine.sample(requests)
    again = engine.sample(list(reversed(requests)))[::-1]
    rows = [row for group in groups for row in group]
    changed = [a.tokens != b.tokens for a, b in zip(rows, (row for group in again for row in group))]
    longer = [replace(row.request, prompt=(*row.request.prompt, *row.tokens, 5, 6, 7), count=2) for row in rows[::4]]
    continued = engine.sample(longer)
    worst = mean = count = tempered = 0.0
    for group in (*groups, *continued):
        for row in group:
            ids = torch.tensor([*row.request.prompt, *row.tokens])
            mask = torch.arange(len(ids) - 1) >= len(row.request.prompt) - 1
            sequences = Sequences((len(ids) - 1,), ids[:-1], ids[1:], mask, {})
            scored = engine.score(sequences, reference=False, entropies=False, values=False).logprobs[mask]
            gap = (scored - torch.tensor(row.logprobs)).abs()
            cool = replace(sequences, temperatures=torch.full((len(mask),), row.request.temperature))
            drawn = engine.score(cool, reference=False, entropies=False, values=False).logprobs[mask]
            tempered = max(tempered, float((drawn - torch.tensor(row.sampled_logprobs)).abs().max()))
            worst, mean, count = max(worst, float(gap.max())), mean + float(gap.sum()), count + len(gap)
    # In 16 bits a draw may fall on the other side of a border when the order of the batch changes, or
    # when what was kept of a prompt is read from pages.
    changes = sum(changed) / len(changed)
    return {
        "samples_changed": (changes, 0.4), "sampling_gap_max": (worst, 0.05), "sampling_gap_mean": (mean / count, 0.01),
        "sampling_gap_tempered": (tempered, 0.06),
    }  # fmt: skip


def check_lora(folder: Path, device: torch.device) -> dict[str, tuple[float, float]]:
    """Sampling against training, with trained adapters."""
    gpu = device.type == "cuda"
    engine = _engine(folder, Ranks(0, 1, device, None), torch.bfloat16 if gpu else torch.float32, compiled=gpu, lora_rank=8)
    _learn(engine)
    return {f"lora_{name}": value for name, value in _check_sampling(engine).items()}


def check_architectures(device: torch.device) -> dict[str, tuple[float, float]]:
    """The engine, with adapters too, for each of the other architectures."""
    found = {}
    for name, changes in OTHERS.items():
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "config.json").write_text(json.dumps({**CONFIG, **changes}))
            for what, value in {**check_engine(Path(folder), device), **check_lora(Path(folder), device)}.items():
                found[f"{name}_{what}"] = value
    return found


def check_ranks(folder: Path, device: torch.device) -> dict[str, tuple[float, float]]:
    """Processes that share a model with FSDP2, one per GPU and at least two, against one process."""
    count = max(2, torch.cuda.device_count())
    environment = {**os.environ, **({"PAWL_SHARED_GPU": "1"} if torch.cuda.device_count() < count else {})}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(count), __file__, str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=True)
    theirs = json.loads(done.stdout.strip().splitlines()[-1])
    ours = _updates(folder, Ranks(0, 1, device, None))
    gap = lambda name: distance(torch.tensor(theirs[name]), torch.tensor(ours[name]))
    # Sums over ranks have a different order, which shows after an update in 16 bits.
    return {"ranks_loss": (gap("losses"), 1e-2), "ranks_gradient_norm": (gap("norms"), 2e-2), "ranks_logprobs": (gap("logprobs"), 1e-2)}


def _updates(folder: Path, ranks: Ranks) -> dict[str, list[float]]:
    """Some updates and their results, the log-probabilities after them, and samples that must agree
    with those.
    """
    gpu = ranks.device.type == "cuda"
    engine = _engine(folder, ranks, torch.bfloat16 if gpu else torch.float32, compiled=gpu)
    sequences, losses, norms = _learn(engine)
    logprobs = engine.score(sequences, reference=False, entropies=False, values=False).logprobs.tolist()
    worst, limit = _check_sampling(engine)["sampling_gap_max"]
    assert worst <= limit, f"sampling with {ranks.size} processes is {worst} from training, more than {limit}"
    return {"losses": losses, "norms": norms, "logprobs": logprobs}


def _learn(engine: Engine) -> tuple[Sequences, list[float], list[float]]:
    """Some updates on the same sequences; returns the sequences, the losses and the gradient norms."""
    generator = torch.Generator().manual_seed(5)
    ids = torch.randint(1000, (600,), generator=generator)
    sequences = Sequences((100, 250, 30, 220), ids, ids.roll(-1), torch.ones(600).bool(), {"weights": torch.ones(600) / 600})
    losses, norms = [], []
    for _ in range(4):
        losses.append(engine.learn(sequences, standard_objective("cross_entropy", {})).loss)
        norms.append(engine.step(AdamParams(1e-3)))
    return sequences, losses, norms


def _engine(folder: Path, ranks: Ranks, dtype: torch.dtype, compiled: bool, lora_rank: int = 0) -> Engine:
    options = EngineOptions(dtype=dtype, batch_tokens=4096, checkpointing=False, compiled=compiled)
    return Engine(folder, ranks, options, lora_rank=lora_rank, value_head=False, seed=0)


def main() -> None:
    if len(sys.argv) == 1:
        print(json.dumps(check()))
        return
    # One of the processes that check_ranks starts.
    ranks = join_ranks()
    found = _updates(Path(sys.argv[1]), ranks)
    if ranks.first:
        print(json.dumps(found), flush=True)
    ranks.gather("finished")
    # As when the server exits: gloo's threads may still hold tensors.
    os._exit(0)


if __name__ == "__main__":
    main()
