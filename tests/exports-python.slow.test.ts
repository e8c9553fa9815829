/**
 * Exports read by the tools they are made for: pandas, Inspect, verifiers and llama.cpp's gguf.
 * PAWL_TOOLS names a Python that has them; what is absent is skipped.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readTranscripts } from "@pawl/agents/imports/read-transcripts.js";
import { readGgufModel, writeGgufModel } from "@pawl/models/gguf/gguf-convert.js";
import { openGguf } from "@pawl/models/gguf/gguf-file.js";
import { tinyModel, writeGguf } from "@pawl/models/gguf/gguf-testing.js";
import { runCli } from "@pawl/pawl/cli/testing.js";
import {
  brokenEpisode,
  recordEpisodes,
  recordExpert,
  spokenEpisode,
} from "@pawl/pawl/exports/testing.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

// biome-ignore lint/suspicious/noExplicitAny: tests look at what they expect.
type Anything = any;

const python = process.env.PAWL_TOOLS ?? "python3";
const absent = (modules: string): boolean => {
  const none = spawnSync(python, ["-c", `import ${modules}`]).status !== 0;
  if (none) console.warn(`exports are not read by ${modules}: ${python} does not have it`);
  return none;
};

const folder = mkdtempSync(join(tmpdir(), "pawl-tools-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string): string => join(folder, name);

beforeAll(async () => {
  recordEpisodes(at("spoken"), [spokenEpisode, brokenEpisode]);
  await recordExpert(at("desk"), "desk", 2);
});

async function exported(run: string, format: string, name: string): Promise<string> {
  const out = at(name);
  const { code, stderr } = await runCli(["export", at(run), "--to", format, "--out", out]);
  expect([code, stderr]).toEqual([0, ""]);
  return out;
}

const run = (script: string, ...args: readonly string[]): unknown =>
  JSON.parse(
    execFileSync(python, ["-c", script, ...args], { encoding: "utf8" })
      .split("\n")
      .at(-2)!,
  );

const PANDAS = `import json, sys, pandas
rows = pandas.read_parquet(sys.argv[1]).to_dict("records")
plain = lambda v: v.tolist() if hasattr(v, "tolist") else v
print(json.dumps([{"id": r["id"], "return": r["return"], "seed": int(r["seed"]), "score": plain(r["score"]) if r["score"] == r["score"] else None,
  "messages": [[m["role"], m["content"], [c["function"]["name"] for c in m["tool_calls"]] if m["tool_calls"] is not None else []] for m in r["messages"]],
  "tokens": [plain(s["token_ids"]) for s in r["sequences"]], "logprobs": [plain(s["logprobs"]) for s in r["sequences"]]} for r in rows]))
`;

describe.skipIf(absent("pandas, pyarrow"))("pandas", () => {
  it("reads messages, rewards and tokens", async () => {
    const rows = run(PANDAS, await exported("spoken", "parquet", "a.parquet")) as Anything[];
    expect(rows).toHaveLength(2);
    expect(rows[0]).toMatchObject({
      ...{ id: "3.1", return: 1, seed: 4_000_000_000, score: 0.5 },
      tokens: [
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
        [1, 2, 8, 11, 12],
      ],
      logprobs: [[-0.5, -0.25, -1], [-2]],
    });
    expect(rows[0].messages[2]).toEqual(["assistant", "open door", []]);
    const [desk] = run(PANDAS, await exported("desk", "parquet", "b.parquet")) as Anything[];
    expect(
      desk.messages.some(([, , calls]: [string, string, string[]]) => calls.length === 1),
    ).toBe(true);
  });
});

const INSPECT = `import json, sys
from inspect_ai.log import read_eval_log, read_eval_log_sample_summaries
log = read_eval_log(sys.argv[1])
print(json.dumps({"status": log.status, "task": log.eval.task, "model": log.eval.model,
  "success": log.results.scores[0].metrics["mean"].value, "total": log.results.total_samples,
  "summaries": len(read_eval_log_sample_summaries(sys.argv[1])),
  "samples": [{"id": s.id, "epoch": s.epoch, "error": s.error.message if s.error else None,
    "success": s.scores["success"].value if s.scores else None,
    "roles": [m.role for m in s.messages], "calls": [c.function for m in s.messages for c in (getattr(m, "tool_calls", None) or [])],
    "first": s.messages[2].text if len(s.messages) > 2 else None} for s in log.samples]}))
`;

describe.skipIf(absent("inspect_ai"))("Inspect", () => {
  it("reads samples, scores, errors and calls", async () => {
    const log = run(INSPECT, await exported("spoken", "inspect", "a.eval"));
    expect(log).toMatchObject({
      ...{ status: "success", task: "household", model: "runs/x", success: 1, total: 2 },
      summaries: 2,
      samples: [
        { id: "train/3", epoch: 1, success: 1, error: null, first: "open door" },
        { id: "train/3", epoch: 2, success: null, error: "no server", roles: [] },
      ],
    });
    const desk = run(INSPECT, await exported("desk", "inspect", "b.eval")) as Anything;
    expect(desk.samples).toHaveLength(4);
    expect(desk.samples[0].calls.length).toBeGreaterThan(2);
    expect(desk.samples[0].roles).toContain("tool");
  });
});

const VERIFIERS = `import json, sys
from pathlib import Path
from verifiers.v1 import Trace
from verifiers.v1.configs.agent import WireAgentConfig
from verifiers.v1.state import State
from verifiers.v1.task import WireTaskData
from verifiers.v1.utils.trace_store import read_episodes
episodes = read_episodes(Path(sys.argv[1]), Trace[WireTaskData, State, WireAgentConfig])
print(json.dumps([{"ok": e.ok, "reward": e.traces[0].reward, "rewards": {k: None if v is None else v.score for k, v in e.traces[0].rewards.items()},
  "turns": e.num_turns, "branches": [{"ids": b.token_ids, "mask": b.sampled_mask, "logprobs": b.logprobs} for b in e.traces[0].branches],
  "calls": [c.name for n in e.traces[0].nodes for c in (getattr(n.message, "tool_calls", None) or [])]} for e in episodes]))
`;

const AGAIN = `
from verifiers.v1.utils.trace_store import write_episode
for episode in episodes: write_episode(Path(sys.argv[2]), episode)
`;

describe.skipIf(absent("verifiers.v1"))("verifiers", () => {
  it("reads rewards, and branches that are our sequences", async () => {
    for (const name of ["v", "w"]) mkdirSync(at(name));
    await exported("spoken", "verifiers", "v/traces.jsonl");
    const [one, broken] = run(VERIFIERS, at("v")) as Anything[];
    expect(one).toMatchObject({ ok: true, reward: 1, rewards: { return: 1 }, turns: 3 });
    expect(one.branches).toEqual([
      {
        ids: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
        mask: [0, 0, 0, 1, 1, 0, 0, 0, 1, 0].map(Boolean),
        logprobs: [0, 0, 0, -0.5, -0.25, 0, 0, 0, -1, 0],
      },
      { ids: [1, 2, 8, 11, 12], mask: [0, 0, 0, 1, 0].map(Boolean), logprobs: [0, 0, 0, -2, 0] },
    ]);
    expect(broken).toMatchObject({ ok: false, rewards: { return: null } });
    await exported("desk", "verifiers", "w/traces.jsonl");
    const [desk] = run(VERIFIERS, at("w")) as Anything[];
    expect(desk.calls.length).toBe(desk.turns);
  });

  it("writes traces that are imported", async () => {
    mkdirSync(at("x"));
    mkdirSync(at("y"));
    await exported("desk", "verifiers", "x/traces.jsonl");
    execFileSync(python, ["-c", `${VERIFIERS}${AGAIN}`, at("x"), at("y")]);
    const [ours, theirs] = ["x", "y"].map((name) =>
      readTranscripts(at(`${name}/traces.jsonl`), (kind) => expect(kind).toBe("")).map(
        ({ where: _, ...one }) => one,
      ),
    );
    expect(theirs).toHaveLength(4);
    expect(theirs).toEqual(ours);
  });
});

const GGUF = `import gguf, json, numpy, sys
file = gguf.GGUFReader(sys.argv[1])
text = lambda key: file.fields[key].contents()
print(json.dumps({"keys": sorted(file.fields), "tokens": text("tokenizer.ggml.tokens"), "pre": text("tokenizer.ggml.pre"),
  "tensors": {t.name: [t.tensor_type.name, [int(n) for n in reversed(t.shape)],
    gguf.quants.dequantize(t.data, t.tensor_type).astype(numpy.float32).flatten().tolist()] for t in file.tensors}}))
`;

describe.skipIf(absent("gguf"))("gguf", () => {
  it.each(["f16", "q8_0"])("reads the numbers that were written, %s", async (weights) => {
    const { metadata, tensors } = tinyModel("qwen3", { width: 32 });
    writeGguf(at("tiny.gguf"), metadata, tensors);
    const tiny = await readGgufModel(openGguf(at("tiny.gguf")));
    await writeGgufModel(tiny, at(`model-${weights}`));
    const out = await exported(`model-${weights}`, `gguf-${weights}`, `${weights}.gguf`);
    const theirs = run(GGUF, out) as Anything;
    const ours = await readGgufModel(openGguf(out));
    expect(theirs.tokens).toEqual((metadata["tokenizer.ggml.tokens"] as Anything).strings);
    expect(theirs.pre).toBe("smollm");
    for (const key of ["GGUF.version", "general.file_type", "qwen3.rope.freq_base"])
      expect(theirs.keys).toContain(key);
    expect(Object.keys(theirs.tensors)).toHaveLength(ours.tensors.length);
    const up = ours.tensors.find(({ name }) => name.endsWith("1.mlp.up_proj.weight"))!;
    const [format, shape, numbers] = theirs.tensors["blk.1.ffn_up.weight"];
    expect([format, shape]).toEqual([weights.toUpperCase(), [12, 32]]);
    expect(numbers).toEqual([...(await up.read())]);
    expect(theirs.tensors["blk.0.attn_norm.weight"][0]).toBe("F32");
  });
});
