"""What transformers computes for tiny models with random weights, for live.test.ts.

    python live.py make FOLDER     writes every model of models.py there, and results.json
    python live.py read FOLDER     reads the models that Pawl wrote there; results.json again
"""
import json
import pathlib
import sys

import torch
from models import CONFIGS
from transformers import AutoModelForCausalLM

# Longer than windows, and than the original context of stretched embeddings.
IDS = [[(7 * s + 5 * i + i * i) % 29 for i in range(length)] for s, length in enumerate((150, 23))]
PROMPT, NEW_TOKENS = IDS[0][:60], 24


def make(folder):
    for seed, (name, config) in enumerate(CONFIGS.items()):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config, attn_implementation="eager")
        for parameter in model.parameters():
            # Norms and biases must not be ones and zeros.
            parameter.data += (0.2 if parameter.dim() > 1 else 0.3) * torch.randn(parameter.shape)
        model.save_pretrained(folder / name)


def results(folder):
    """Log-probabilities of all tokens, the gradient of a weighted sum of them, and a greedy continuation."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    found = []
    for ids in IDS:
        tokens = torch.tensor([ids])
        chosen = model(tokens).logits[0, :-1].log_softmax(-1).gather(1, tokens[0, 1:, None])[:, 0]
        (chosen * torch.tensor([0.5 + 0.1 * (i % 5) for i in range(1, len(ids))])).sum().backward()
        found.append([0.0, *chosen.tolist()])
    text = list(PROMPT)
    with torch.no_grad():
        for _ in range(NEW_TOKENS):
            text.append(int(model(torch.tensor([text])).logits[0, -1].argmax()))
    return {
        "architecture": type(model).__name__,
        "logprobs": found,
        "gradients": {name: p.grad.flatten().tolist() for name, p in model.named_parameters()},
        "greedy": text[len(PROMPT) :],
    }


root = pathlib.Path(sys.argv[2])
if sys.argv[1] == "make":
    make(root)
found = {path.name: results(path) for path in root.iterdir() if path.is_dir()}
(root / "results.json").write_text(json.dumps({"ids": IDS, "prompt": PROMPT, "models": found}))
