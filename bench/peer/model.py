"""The PyTorch peer of ../models.ts: a pretrained model in transformers, with PEFT's adapters.

Reads one JSON command per line from standard input and answers with one JSON line each, as peer.py does.
f32, eager, PyTorch's fused attention. Sampling is transformers' `generate` with its KV cache and with the
adapters merged; training adds up micro-batches, because a whole batch's logits would need many times the memory.
Prompts of different lengths are padded on the left, so that answers end together and only their logits are computed.
"""
import json
import resource
import sys
import time

import torch
import torch.nn.functional as F
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def main():
    torch.set_num_threads(int(sys.argv[1]))
    torch.manual_seed(0)
    state = {}
    for line in sys.stdin:
        reply = handle(json.loads(line), state)
        reply["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(reply), flush=True)


def clocks():
    return time.perf_counter(), time.process_time()


def since(begin):
    wall, processor = clocks()
    return {"seconds": wall - begin[0], "processor": processor - begin[1]}


def handle(command, state):
    what = command["do"]
    if what == "hello":
        return {"torch": torch.__version__}
    if what == "model":
        model = AutoModelForCausalLM.from_pretrained(
            command["folder"], dtype=torch.float32, attn_implementation="sdpa"
        )
        lora = LoraConfig(r=command["rank"], lora_alpha=command["alpha"], target_modules=TARGETS, task_type="CAUSAL_LM")
        model = get_peft_model(model, lora)
        state["model"] = model
        trained = [p for p in model.parameters() if p.requires_grad]
        state["adam"] = torch.optim.AdamW(trained, lr=1e-3, fused=True)
        return {"trained": sum(p.numel() for p in trained)}
    model = state["model"]
    if what == "answer":
        return answer(model, command)
    if what == "learn":
        return learn(model, state["adam"], command)
    vocabulary = model.config.vocab_size
    ids = torch.randint(vocabulary, (command["rows"], command["length"]))
    if what == "sample":
        return generate(model, ids, torch.ones_like(ids), command["new"])
    if what == "train":
        model.train()
        targets = torch.randint(vocabulary, (command["rows"], 1))
        following = torch.cat((ids[:, 1:], targets), 1)
        begin = clocks()
        for part, after in zip(ids.split(command["micro"]), following.split(command["micro"])):
            logits = model(input_ids=part).logits
            loss = F.cross_entropy(logits.flatten(0, 1), after.flatten(), reduction="sum") / ids.numel()
            loss.backward()
        state["adam"].step()
        state["adam"].zero_grad(set_to_none=True)
        return since(begin)
    raise ValueError(f"unknown command {what}")


def generate(model, ids, mask, new, count=1):
    model.eval()
    model.merge_adapter()
    begin = clocks()
    with torch.inference_mode():
        found = model.generate(
            input_ids=ids,
            attention_mask=mask,
            do_sample=True,
            top_k=0,
            top_p=1.0,
            num_return_sequences=count,
            min_new_tokens=new,
            max_new_tokens=new,
            pad_token_id=0,
        )
    spent = since(begin)
    model.unmerge_adapter()
    assert found.shape == (len(ids) * count, ids.shape[1] + new)
    return spent


def padded(rows):
    longest = max(map(len, rows))
    ids = torch.tensor([[0] * (longest - len(row)) + row for row in rows])
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
    return ids, mask


def answer(model, command):
    ids, mask = padded(command["prompts"])
    return generate(model, ids, mask, command["new"], command["count"])


def learn(model, adam, command):
    ids, mask = padded([one["prompt"] + one["tokens"] for one in command["answers"]])
    new, micro = command["new"], command["micro"]
    model.train()
    logprobs = []
    begin = clocks()
    for part, seen in zip(ids.split(micro), mask.split(micro)):
        positions = (seen.cumsum(1) - 1).clamp(min=0)
        found = model(input_ids=part, attention_mask=seen, position_ids=positions, logits_to_keep=new + 1)
        chosen = -F.cross_entropy(found.logits[:, :-1].flatten(0, 1), part[:, -new:].flatten(), reduction="none")
        (-chosen.sum() / (len(ids) * new)).backward()
        logprobs += chosen.tolist()
    adam.step()
    adam.zero_grad(set_to_none=True)
    return {**since(begin), "logprobs": logprobs}


main()
