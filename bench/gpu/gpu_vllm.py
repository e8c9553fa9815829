"""vLLM's speed at the work of gpu_bench.py's sections `sample` and `continued`: one line of JSON per measurement.

    python3 bench/gpu/gpu_vllm.py --model FOLDER [--no-prefix-caching] [CASE …]      # a folder with config.json; needs vLLM

Random weights, bfloat16, temperature 1, no end of sequence, no text. Each repetition has prompts of its own, so that
prefix caching finds only what a case shares: the prompt within a group (n=8), the turn before in `continued`.
"""
from __future__ import annotations

import argparse
import json
import math
import os
import random
import time

BEGIN = time.perf_counter()
ROWS, PROMPT, SHARED, GROUP = 128, 512, 400, 8
# Prompts, samples per prompt, new tokens, continued.
CASES = {
    "sample": (ROWS, 1, 128, False),
    "sample_grouped": (ROWS // GROUP, GROUP, 128, False),
    "continued": (ROWS, 1, 128, True),
    "continued_short": (ROWS, 1, 32, True),
    "sample_long": (ROWS, 1, 512, False),
    "whole_short": (ROWS, 1, 32, False),
    "sample_grouped_long": (ROWS // GROUP, GROUP, 512, False),
}


def say(**fields: object) -> None:
    print(json.dumps({**fields, "at_s": round(time.perf_counter() - BEGIN, 1)}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="*", default=list(CASES), help=f"some of: {', '.join(CASES)} (default: all)")
    parser.add_argument("--model", required=True)
    parser.add_argument("--no-prefix-caching", action="store_true")
    parser.add_argument("--logprobs", choices=("with", "without", "both"), default="both")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--warm", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--eager", action="store_true", help="no CUDA graphs, no torch.compile: only to look for a fault")
    parser.add_argument("--batched-tokens", type=int, default=None, help="max_num_batched_tokens (default: vLLM's own)")
    arguments = parser.parse_args()
    unknown = [case for case in arguments.cases if case not in CASES]
    if unknown:
        parser.error(f"unknown case {unknown[0]}; expected some of: {', '.join(CASES)}")
    prefix = not arguments.no_prefix_caching

    import torch
    import transformers
    import vllm
    from vllm import LLM, SamplingParams

    say(vllm=vllm.__version__, torch=torch.__version__, transformers=transformers.__version__)
    extra = {} if arguments.batched_tokens is None else {"max_num_batched_tokens": arguments.batched_tokens}
    llm = LLM(
        model=arguments.model, load_format="dummy", dtype="bfloat16", max_model_len=2048, gpu_memory_utilization=0.5,
        skip_tokenizer_init=True, enable_prefix_caching=prefix, max_num_seqs=ROWS, disable_log_stats=True, seed=0,
        enforce_eager=arguments.eager, **extra,
    )  # fmt: skip
    # Only now: before, the device must be untouched in case vLLM runs its engine in another process (its default).
    say(device=torch.cuda.get_device_name(), **described(llm), prefix_caching=prefix, repeat=arguments.repeat, warm=arguments.warm)
    bench = Bench(llm, SamplingParams, torch.cuda.synchronize, arguments.seed)
    kinds = {"with": [True], "without": [False], "both": [True, False]}[arguments.logprobs]
    # With log-probabilities first: ours records them always.
    for logprobs in kinds:
        for case in arguments.cases:
            if CASES[case][3] and not prefix:
                say(case=case, logprobs=logprobs, skipped="needs prefix caching")
                continue
            try:
                say(case=case, logprobs=logprobs, prefix_caching=prefix, **bench.measure(*CASES[case], logprobs, arguments.warm, arguments.repeat))
            except Exception as error:  # noqa: BLE001: the other cases still count
                say(case=case, logprobs=logprobs, error=f"{type(error).__name__}: {error}"[:500])


def described(llm) -> dict[str, object]:
    """The attention backend and what vLLM chose by itself."""
    found: dict[str, object] = {}
    try:
        config = llm.llm_engine.vllm_config
        found["own_process"] = os.environ.get("VLLM_ENABLE_V1_MULTIPROCESSING", "1") == "1"
        found["max_num_batched_tokens"] = config.scheduler_config.max_num_batched_tokens
        found["async_scheduling"] = config.scheduler_config.async_scheduling
        found["cudagraph_mode"] = str(config.compilation_config.cudagraph_mode)
        found["compilation_mode"] = str(config.compilation_config.mode)
        found["block_size"] = config.cache_config.block_size
        found["gpu_blocks"] = config.cache_config.num_gpu_blocks
        layer = next(iter(config.compilation_config.static_forward_context.values()))
        found["attention"] = layer.get_attn_backend().get_name()
        found["flash_attention"] = getattr(layer.impl, "vllm_flash_attn_version", None)
    except Exception as error:  # noqa: BLE001: a description only; the log has the backend as well
        found["description_error"] = f"{type(error).__name__}: {error}"
    return found


class Bench:
    def __init__(self, llm, sampling, synchronize, seed: int) -> None:
        self.llm, self.sampling, self.synchronize = llm, sampling, synchronize
        self.random = random.Random(seed)
        self.vocabulary = llm.llm_engine.vllm_config.model_config.get_vocab_size()

    def tokens(self, count: int) -> list[int]:
        return [self.random.randrange(self.vocabulary) for _ in range(count)]

    def sample(self, prompts: list[list[int]], count: int, new: int, logprobs: bool):
        # logprobs=0: of the sampled token only.
        params = self.sampling(
            n=count, temperature=1.0, top_p=1.0, max_tokens=new, ignore_eos=True, detokenize=False, logprobs=0 if logprobs else None
        )
        return self.llm.generate([{"prompt_token_ids": prompt} for prompt in prompts], params, use_tqdm=False)

    def prompts(self, rows: int, new: int, continued: bool) -> list[list[int]]:
        if not continued:
            return [self.tokens(PROMPT) for _ in range(rows)]
        # As gpu_bench.py: the turn before ends with 32 sampled tokens, the next adds 112.
        before = [self.tokens(SHARED - 32) for _ in range(rows)]
        turns = self.sample(before, 1, 32, True)
        return [[*prompt, *turn.outputs[0].token_ids, *self.tokens(PROMPT - SHARED)] for prompt, turn in zip(before, turns)]

    def measure(self, rows: int, count: int, new: int, continued: bool, logprobs: bool, warm: int, repeat: int) -> dict[str, object]:
        seconds: list[float] = []
        for i in range(warm + repeat):
            prompts = self.prompts(rows, new, continued)
            self.synchronize()
            begin = time.perf_counter()
            outputs = self.sample(prompts, count, new, logprobs)
            self.synchronize()
            if i >= warm:
                seconds.append(time.perf_counter() - begin)
        return {**self.checked(outputs, rows, count, new, logprobs), **rates(seconds, rows * count * new)}

    def checked(self, outputs, rows: int, count: int, new: int, logprobs: bool) -> dict[str, object]:
        """That everything asked for came; the mean log-probability is near -ln(vocabulary) with random weights."""
        samples = [sample for output in outputs for sample in output.outputs]
        lengths = {len(sample.token_ids) for sample in samples}
        assert (len(outputs), len(samples), lengths) == (rows, rows * count, {new}), (len(outputs), len(samples), lengths)
        distinct = len({tuple(sample.token_ids) for sample in samples})
        cached = [output.num_cached_tokens or 0 for output in outputs]
        found: dict[str, object] = {"distinct": distinct, "cached_tokens_mean": round(sum(cached) / len(cached), 1)}
        if logprobs:
            values = [step[token].logprob for sample in samples for token, step in zip(sample.token_ids, sample.logprobs)]
            assert len(values) == rows * count * new, len(values)
            found["logprob_mean"] = round(sum(values) / len(values), 3)
            found["logprob_uniform"] = round(-math.log(self.vocabulary), 3)
        return found


def rates(seconds: list[float], tokens: int) -> dict[str, object]:
    middle = sorted(seconds)[len(seconds) // 2]
    return {
        "tokens_per_s": round(tokens / middle), "seconds": round(middle, 4), "least": round(min(seconds), 4),
        "most": round(max(seconds), 4), "repetitions": len(seconds),
    }  # fmt: skip


if __name__ == "__main__":
    main()
