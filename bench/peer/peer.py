"""The PyTorch peer of bench/engine.ts: the same model, trained and sampled the way a PyTorch user would.

Reads one JSON command per line from standard input and answers with one JSON line each, so that the
benchmark can interleave its repetitions with ours. Fused attention, fused RMSNorm, fused AdamW, f32. Sampling
allocates its KV caches once, and prefills a prompt that is sampled several times only once.
"""
import json
import resource
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class PlainRMSNorm(nn.Module):
    """For PyTorch before 2.4, which has no RMSNorm."""

    def __init__(self, dim, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


RMSNorm = getattr(nn, "RMSNorm", PlainRMSNorm)


def attend(q, k, v, causal):
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    # PyTorch before 2.0 has no fused attention.
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if causal:
        hidden = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, float("-inf"))
    return scores.softmax(-1) @ v


def adamw(parameters):
    try:
        return torch.optim.AdamW(parameters, lr=1e-3, fused=True)
    except (RuntimeError, TypeError):
        # PyTorch before 2.4 has no fused AdamW on a CPU.
        return torch.optim.AdamW(parameters, lr=1e-3, foreach=True)


class Block(nn.Module):
    def __init__(self, dim, heads, inner):
        super().__init__()
        self.heads = heads
        self.norm1 = RMSNorm(dim, eps=1e-6)
        self.norm2 = RMSNorm(dim, eps=1e-6)
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)
        self.gate_up = nn.Linear(dim, 2 * inner, bias=False)
        self.down = nn.Linear(inner, dim, bias=False)

    def forward(self, x, cos, sin, cache=None, start=0):
        batch, length, dim = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, dim // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if cache is not None:
            end = start + length
            cache[0][:, :, start:end], cache[1][:, :, start:end] = k, v
            k, v = cache[0][:, :, :end], cache[1][:, :, :end]
        y = attend(q, k, v, length > 1)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, dim))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


def rotate(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Model(nn.Module):
    def __init__(self, dim, layers, heads, inner, vocab, context=1024):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(Block(dim, heads, inner) for _ in range(layers))
        self.norm = RMSNorm(dim, eps=1e-6)
        self.head = nn.Linear(dim, vocab, bias=False)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)
        half = dim // heads // 2
        angles = torch.outer(torch.arange(context).float(), 10000.0 ** (-torch.arange(half).float() / half))
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, ids, start=0, caches=None, last=False):
        x = self.embed(ids)
        cos, sin = self.cos[start : start + ids.shape[1]], self.sin[start : start + ids.shape[1]]
        for i, block in enumerate(self.blocks):
            x = block(x, cos, sin, caches[i] if caches is not None else None, start)
        if last:
            x = x[:, -1:]
        return self.head(self.norm(x))


def make_caches(model, rows, length):
    """A KV cache for these rows, allocated once so that no decode step copies earlier entries."""
    shape = (rows, model.blocks[0].heads, length, 2 * model.cos.shape[-1])
    return [[torch.empty(shape), torch.empty(shape)] for _ in model.blocks]


def main():
    threads = int(sys.argv[1])
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    state = {}
    for line in sys.stdin:
        command = json.loads(line)
        reply = handle(command, state)
        reply["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(reply), flush=True)


def handle(command, state):
    what = command["do"]
    if what == "hello":
        return {"torch": torch.__version__, "mkl": torch.backends.mkl.is_available()}
    if what == "model":
        shape = {k: command[k] for k in ("dim", "layers", "heads", "inner", "vocab")}
        model = Model(**shape)
        state["model"] = model
        compiled = bool(command.get("compiled")) and hasattr(torch, "compile")
        state["step"] = torch.compile(model) if compiled else model
        state["adam"] = adamw(model.parameters())
        return {"parameters": sum(p.numel() for p in model.parameters()), "compiled": compiled}
    if what == "sgemm":
        a, b = torch.randn(2048, 2048), torch.randn(2048, 2048)
        best = float("inf")
        for _ in range(8):
            begin = time.perf_counter()
            a @ b
            best = min(best, time.perf_counter() - begin)
        return {"gflops": 2 * 2048**3 / best / 1e9}
    if what == "product":
        m, n, k = (command[name] for name in "mnk")
        tall = command.get("tall", False)
        a, b = torch.randn(m, k), torch.randn((m, n) if tall else (n, k))
        repeat, best = max(1, round(4e9 / (2 * m * n * k))), float("inf")
        for i in range(9):
            begin = time.perf_counter()
            for _ in range(repeat):
                a.T @ b if tall else a @ b.T
            if i > 0:
                best = min(best, (time.perf_counter() - begin) / repeat)
        return {"gflops": 2 * m * n * k / best / 1e9}
    model = state["model"]
    vocab = model.embed.num_embeddings
    if what == "train":
        ids = torch.randint(vocab, (command["batch"], command["length"] + 1))
        begin = time.perf_counter()
        logits = state["step"](ids[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, vocab), ids[:, 1:].reshape(-1))
        loss.backward()
        state["adam"].step()
        state["adam"].zero_grad(set_to_none=True)
        seconds = time.perf_counter() - begin
        return {"seconds": seconds, "tokens_per_s": command["batch"] * command["length"] / seconds}
    if what == "sample":
        count, prompt, new = (command[k] for k in ("count", "prompt", "new"))
        ids = torch.randint(vocab, (command["prompts"], prompt))
        begin = time.perf_counter()
        with torch.no_grad():
            caches = make_caches(model, len(ids), prompt + new)
            logits, at = model(ids, 0, caches, last=True), prompt
            if count > 1:
                logits = logits.repeat_interleave(count, 0)
                caches = [[x.repeat_interleave(count, 0) for x in cache] for cache in caches]
            for step in range(new):
                logprobs = F.log_softmax(logits[:, -1], -1)
                token = torch.multinomial(logprobs.exp(), 1)
                logprobs.gather(1, token)
                if step + 1 < new:
                    logits, at = model(token, at, caches), at + 1
        seconds = time.perf_counter() - begin
        return {"seconds": seconds, "tokens_per_s": len(ids) * count * new / seconds}
    raise ValueError(f"unknown command {what}")


main()
