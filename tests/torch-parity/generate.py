"""Writes values.json: what PyTorch and transformers compute for the models of parity.test.ts.

    pip install torch transformers
    python tests/torch-parity/generate.py

Weights come from a formula that both sides evaluate, so only results are stored.
"""
import json
import math
import pathlib
import tempfile

import torch
import torch.nn.functional as F
from models import CONFIGS
from transformers import AutoModelForCausalLM

# Longer rows are attended to in 2 blocks from 64 tokens on and in 4 from 512; not all of them divide evenly.
CASES = {
    "short": dict(lengths=[19, 7, 12], tempered=False),
    "long": dict(lengths=[65, 130, 600], tempered=False),
    "tempered": dict(lengths=[19, 65, 12], tempered=True),
}


def formula(name, count, one=1.0):
    """The weights of a tensor: the same numbers as in parity.test.ts; norms are around `one`."""
    start = sum(ord(c) * (i + 1) for i, c in enumerate(name)) % 1000
    wave = [math.sin(start + 0.37 * i + 0.011 * i * (i % 7)) for i in range(count)]
    scale, shift = (0.1, one) if name.endswith("norm.weight") else (0.25, 0.0)
    return [scale * x + shift for x in wave]


def thinned(numbers):
    """About 64 of them, evenly spread: enough to find a wrong place, and little to store."""
    return numbers[:: max(1, len(numbers) // 64)]


def run(config, lengths, tempered):
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    # Gemma adds one to the weights of its norms.
    one = 0.0 if config.model_type == "gemma3_text" else 1.0
    for name, p in model.named_parameters():
        p.data = torch.tensor(formula(name, p.numel(), one), dtype=torch.float32).view_as(p)
    if model.config.tie_word_embeddings:
        model.tie_weights()
    model.double()
    model.zero_grad()
    value = torch.tensor(formula("value_head.weight", 24), dtype=torch.float32).double().view(1, 24).requires_grad_()
    logprobs, entropies, values, loss = [], [], [], 0.0
    for s, length in enumerate(lengths):
        ids = torch.tensor([[(5 * s + 3 * i + i * i) % 29 for i in range(length)]])
        hidden = model.model(ids).last_hidden_state
        temperature = torch.tensor([0.5 + 0.25 * ((s + i) % 4) if tempered else 1.0 for i in range(1, length)])
        distribution = F.log_softmax(model.lm_head(hidden)[0, :-1] / temperature.double()[:, None], -1)
        logprob = distribution.gather(1, ids[0, 1:, None])[:, 0]
        entropy = -(distribution.exp() * distribution).sum(-1)
        critic = (hidden @ value.T)[0, :-1, 0]
        weight = torch.tensor([0.5 + 0.1 * ((s + i) % 5) for i in range(1, length)]).double()
        # A clipped ratio, an entropy bonus and a squared value error: every kind of seed at once.
        ratio = (logprob + 3.4).exp()
        loss = loss + (-torch.minimum(ratio * weight, torch.tensor(0.9).double()) - 0.3 * entropy * weight).sum()
        loss = loss + (0.2 * (critic - weight) ** 2).sum()
        for store, result in ((logprobs, logprob), (entropies, entropy), (values, critic)):
            store.append(thinned([0.0] + result.tolist()))
    loss.backward()
    gradients = {name: p.grad for name, p in model.named_parameters()}
    gradients["value_head.weight"] = value.grad
    return {
        "loss": loss.item(),
        "logprobs": logprobs,
        "entropies": entropies,
        "values": values,
        "gradients": {
            name: {"norm": g.norm().item(), "numbers": g.flatten()[:: max(1, g.numel() // 12)].tolist()}
            for name, g in gradients.items()
        },
    }


def rounded(x):
    if isinstance(x, dict):
        return {k: rounded(v) for k, v in x.items()}
    if isinstance(x, list):
        return [rounded(v) for v in x]
    return float(f"{x:.9g}")


def written(config, folder):
    """The content of config.json that transformers writes for a model."""
    config.architectures = [AutoModelForCausalLM.from_config(config).__class__.__name__]
    config.save_pretrained(folder)
    return json.loads((pathlib.Path(folder) / "config.json").read_text())


# All cases where nothing else is special, one for each other kind of model.
results = {
    f"{name}, {case}": rounded(run(config, **options))
    for name, config in CONFIGS.items()
    for case, options in CASES.items()
    if case == "long" or name in ("llama", "qwen2")
}
with tempfile.TemporaryDirectory() as folder:
    configs = {name: written(config, folder) for name, config in CONFIGS.items()}
path = pathlib.Path(__file__).parent / "values.json"
path.write_text(json.dumps({"torch": torch.__version__.split("+")[0], "configs": configs, "models": results}) + "\n")
