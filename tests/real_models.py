"""What transformers computes for tests/real-models.nightly.test.ts, in 32 bits: ids, log-probabilities, greedy continuations.

python real_models.py FOLDER   (reads FOLDER/in.json and the model beside it, writes FOLDER/out.json)
"""
import json
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

folder = Path(sys.argv[1])
asked = json.loads((folder / "in.json").read_text())
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForCausalLM.from_pretrained(folder).float().eval()


def rendered(messages, generate):
    text = tokenizer.apply_chat_template(messages, add_generation_prompt=generate, tokenize=False)
    return tokenizer.encode(text, add_special_tokens=False)


with torch.inference_mode():
    ids = torch.tensor([asked["ids"]])
    logprobs = model(ids).logits[0, :-1].log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
    prompts = [rendered(messages, True) for messages in asked["questions"]]
    greedy = []
    for prompt in prompts:
        given = torch.tensor([prompt])
        whole = model.generate(
            given, attention_mask=torch.ones_like(given), max_new_tokens=asked["greedy"], do_sample=False,
            # Qwen's generation_config.json has one, which also changes greedy choices.
            repetition_penalty=1.0,
        )
        greedy.append(whole[0, len(prompt) :].tolist())
found = {
    "texts": [tokenizer.encode(text, add_special_tokens=False) for text in asked["texts"]],
    "dialogue": rendered(asked["dialogue"], False),
    "prompts": prompts,
    "tools": tokenizer.apply_chat_template(
        asked["calls"], tools=asked["tools"], add_generation_prompt=True, tokenize=False
    ),
    "logprobs": logprobs.tolist(),
    "greedy": greedy,
}
(folder / "out.json").write_text(json.dumps(found))
