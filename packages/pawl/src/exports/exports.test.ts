import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { asyncBufferFromFile, parquetReadObjects } from "hyparquet";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCli } from "../cli/testing.js";
import type { EpisodeJson } from "./episode-json.js";
import {
  agentEpisode,
  brokenEpisode,
  recordEpisodes,
  recordExpert,
  spokenEpisode,
} from "./testing.js";

// biome-ignore lint/suspicious/noExplicitAny: tests look at what they expect.
type Anything = any;

const folder = mkdtempSync(join(tmpdir(), "pawl-exports-"));
const at = (name: string): string => join(folder, name);
beforeAll(async () => {
  recordEpisodes(at("spoken"), [spokenEpisode, brokenEpisode]);
  recordEpisodes(at("agent"), [agentEpisode]);
  await recordExpert(at("house"), "household", 2);
  await recordExpert(at("desk"), "desk", 2);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let outputs = 0;
async function written(run: string, format: string, ending: string): Promise<string> {
  const out = at(`out-${++outputs}${ending}`);
  const { code, stderr } = await runCli(["export", at(run), "--to", format, "--out", out]);
  expect([code, stderr]).toEqual([0, ""]);
  return out;
}

const linesOf = (file: string): unknown[] =>
  readFileSync(file, "utf8")
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));

describe("jsonl", () => {
  it("has messages, rewards and the tokens of every chain of steps", async () => {
    const [one, broken] = linesOf(await written("spoken", "jsonl", ".jsonl")) as EpisodeJson[];
    expect(one).toMatchObject({
      ...{ id: "3.1", run: "spoken", environment: "household", task: "train/3", type: "find" },
      ...{ return: 1, success: true, score: 0.5, rewards: [0.25, 0, 0.75] },
    });
    expect(one!.messages.map(({ role, content }) => [role, content])).toEqual([
      ["system", "You act."],
      ["user", "Find the key.\n\nA door."],
      ["assistant", "open door"],
      ["user", "It is open."],
      ["assistant", "go in"],
      ["user", "A key."],
      ["assistant", "take key"],
      ["user", "Done."],
    ]);
    expect(one!.messages[2]!.reasoning_content).toBe("Hm.");
    expect(one!.steps[0]!.response).toBe("<think>\nHm.\n</think>\n\nopen door");
    expect(one!.sequences).toEqual([
      {
        steps: [0, 1],
        token_ids: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
        sampled: [0, 0, 0, 1, 1, 0, 0, 0, 1, 0],
        observed: [0, 0, 0, 0, 0, 0, 1, 0, 0, 1],
        logprobs: [-0.5, -0.25, -1],
        temperature: 1,
      },
      {
        steps: [2],
        token_ids: [1, 2, 8, 11, 12],
        sampled: [0, 0, 0, 1, 0],
        observed: [0, 0, 0, 0, 1],
        logprobs: [-2],
        temperature: 1,
      },
    ]);
    expect(broken).toMatchObject({ stop: "broken", error: "no server", messages: [] });
  });

  it("has calls of tools with ids, and the whole prompt where it is prose", async () => {
    const [desk] = linesOf(await written("desk", "jsonl", ".jsonl")) as EpisodeJson[];
    const calls = desk!.messages.flatMap((one) => one.tool_calls ?? []);
    expect(calls).toHaveLength(desk!.steps.length);
    expect(calls[0]).toMatchObject({ id: "call00001", type: "function" });
    const answers = desk!.messages.filter(({ role }) => role === "tool");
    expect(answers.map((one) => one.tool_call_id)).toEqual(calls.map(({ id }) => id));
    expect(desk!.tools!.length).toBeGreaterThan(3);
    const [house] = linesOf(await written("house", "jsonl", ".jsonl")) as EpisodeJson[];
    expect(house!.steps.every(({ prompt }) => prompt!.includes(house!.goal))).toBe(true);
    expect(house!.messages).toHaveLength(2 * house!.steps.length + 1);
  });
});

it("an agent's task, what it returned and why it was rewarded are exported", async () => {
  const [row] = linesOf(await written("agent", "jsonl", ".jsonl")) as EpisodeJson[];
  expect(row).toMatchObject({
    ...{ given: '{"ask":"key","where":["door"]}', result: '{"key":false}', why: "half of it" },
    ...{ return: 0.5, steps: [{ calls: agentEpisode.steps[0]!.calls, seconds: 1.5 }] },
  });
  const log = readFileSync(await written("agent", "inspect", ".eval")).toString("latin1");
  const name = /samples\/[^.]+\.json/.exec(log)![0];
  const sample = JSON.parse(
    spawnSync("unzip", ["-p", at(`out-${outputs}.eval`), name], { encoding: "utf8" }).stdout,
  ) as Anything;
  expect(sample.metadata).toMatchObject({ given: agentEpisode.given, result: { key: false } });
  expect(sample.scores.return).toMatchObject({ value: 0.5, explanation: "half of it" });
});

it("parquet has the same rows", async () => {
  for (const run of ["spoken", "agent", "desk", "house"]) {
    const rows = linesOf(await written(run, "jsonl", ".jsonl")) as EpisodeJson[];
    const file = await asyncBufferFromFile(await written(run, "parquet", ".parquet"));
    const read = await parquetReadObjects({ file });
    const bare = (value: unknown): unknown =>
      JSON.parse(
        JSON.stringify(value, (_, inner: unknown) =>
          typeof inner === "bigint" ? Number(inner) : inner === null ? undefined : inner,
        ),
      );
    const texts = rows.map(({ tools, ...row }) => ({
      ...row,
      ...(tools && { tools: JSON.stringify(tools) }),
    }));
    expect(read.map(bare)).toEqual(texts);
  }
});

it("parquet is written in groups, so that memory does not grow with the run", async () => {
  const many = Array.from({ length: 130 }, (_, group) => ({ ...spokenEpisode, group }));
  recordEpisodes(at("many"), many);
  const file = await asyncBufferFromFile(await written("many", "parquet", ".parquet"));
  const { parquetMetadataAsync } = await import("hyparquet");
  const { row_groups: groups } = await parquetMetadataAsync(file);
  expect(groups.map((one) => Number(one.num_rows))).toEqual([64, 64, 2]);
});

describe("verifiers", () => {
  it("has nodes whose tokens join to the sequences, with forks as roots", async () => {
    const [line, broken] = linesOf(await written("spoken", "verifiers", ".jsonl")) as Anything[];
    const { nodes, rewards } = line.traces[0];
    const roots = nodes.flatMap((node: { parent?: number }, i: number) =>
      node.parent === undefined ? [i] : [],
    );
    expect(roots).toEqual([0, 6]);
    const joined = (name: string, from: number, to?: number) =>
      nodes.slice(from, to).flatMap((node: Record<string, unknown[]>) => node[name]);
    expect(joined("token_ids", 0, 6)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(joined("mask", 0, 6).map(Number)).toEqual([0, 0, 0, 1, 1, 0, 0, 0, 1, 0]);
    expect(joined("is_content", 0, 3).map(Number)).toEqual([0, 1, 1, 1, 1]);
    expect(joined("logprobs", 0)).toEqual([-0.5, -0.25, -1, -2]);
    expect(joined("token_ids", 6)).toEqual([1, 2, 8, 11, 12]);
    expect(rewards).toEqual({ return: { score: 1, weight: 1 } });
    expect(broken).toMatchObject({ ok: false, errors: [{ message: "no server" }] });
    expect(broken.traces[0].rewards).toEqual({ return: null });
  });
});

it("sharegpt keeps responses as written, and prose prompts as they were read", async () => {
  const [one] = linesOf(await written("spoken", "sharegpt", ".jsonl")) as Anything[];
  expect(one.system).toBe("You act.");
  expect(one.conversations.map((turn: { from: string }) => turn.from)).toEqual([
    ...["human", "gpt", "human", "gpt", "human", "gpt"],
  ]);
  expect(one.conversations[1].value).toBe("<think>\nHm.\n</think>\n\nopen door");
  const [house] = linesOf(await written("house", "jsonl", ".jsonl")) as EpisodeJson[];
  const records = linesOf(await written("house", "sharegpt", ".jsonl")) as Anything[];
  expect(records.slice(0, 2).map(({ conversations }) => conversations)).toEqual(
    house!.steps.slice(0, 2).map(({ prompt, response }) => [
      { from: "human", value: prompt },
      { from: "gpt", value: response },
    ]),
  );
});

it("hub-traces is a folder of sessions with a card", async () => {
  const out = await written("desk", "hub-traces", "");
  expect(readdirSync(out).sort()).toEqual(["README.md", "sessions"]);
  const [session, ...messages] = linesOf(join(out, "sessions/0000/0.0.jsonl")) as Anything[];
  expect(session).toMatchObject({ type: "session", harness: "pawl", id: "desk/0.0" });
  const spoken = messages.map(({ message }) => message);
  const calls = spoken.flatMap(({ toolCalls }) => toolCalls ?? []);
  expect(JSON.parse(calls[0].function.arguments)).toBeTypeOf("object");
  expect(spoken.filter(({ role }) => role === "tool").map(({ toolCallId }) => toolCallId)).toEqual(
    calls.map(({ id }) => id),
  );
});

describe("pawl export --to", () => {
  it("writes only solved episodes if asked", async () => {
    const out = at("solved.jsonl");
    await runCli(["export", at("spoken"), "--to", "jsonl", "--solved", "--out", out]);
    expect(linesOf(out)).toHaveLength(1);
  });

  it("does not alter the run", async () => {
    const before = readFileSync(at("spoken/episodes.jsonl.gz"));
    await written("spoken", "inspect", ".eval");
    expect(readFileSync(at("spoken/episodes.jsonl.gz"))).toEqual(before);
    expect([...openRun(at("spoken"), () => undefined).episodes()][0]).toEqual(spokenEpisode);
  });

  it("leaves nothing behind when the disk is full", () => {
    const many = Array.from({ length: 200 }, (_, group) => ({ ...spokenEpisode, group }));
    recordEpisodes(at("large"), many);
    mkdirSync(at("full"));
    const cli = resolve("dist/lib/main.js");
    const args = ["export", at("large"), "--to", "jsonl", "--out", at("full/a.jsonl")];
    const result = spawnSync(
      "sh",
      ["-c", `ulimit -f 64; exec "$0" "$@"`, process.execPath, cli, ...args],
      { encoding: "utf8" },
    );
    expect(result.status).toBe(1);
    expect(result.stderr).toMatch(/could not write .*a\.jsonl.*ulimit -f/);
    expect(readdirSync(at("full"))).toEqual([]);
  });

  it.each([
    [["--to", "csv", "--out", "x"], /--to: expected "model" or "gguf-f16"/],
    [["--to", "jsonl"], /pawl export needs a run or a model and an output/],
    [["--to", "jsonl", "--out", "x.json"], /--out: expected a file that ends in \.jsonl/],
    [["--to", "jsonl", "--out", "x.jsonl", "--engine", "http://a"], /--engine: it has weights/],
    [["--solved", "--out", "x"], /--solved: it chooses episodes/],
    [["--to", "hub-traces", "--out", "recipes"], /--out: recipes is not empty/],
  ])("refuses %j", async (args, message) => {
    const { code, stderr } = await runCli(["export", at("spoken"), ...args]);
    expect(stderr).toMatch(message);
    expect(code).toBeGreaterThan(0);
  });

  it("refuses to write over a file, and folders that are no runs", async () => {
    writeFileSync(at("there.jsonl"), "mine");
    const over = await runCli([
      ...["export", at("spoken"), "--to", "jsonl", "--out", at("there.jsonl")],
    ]);
    expect(over.stderr).toContain("exists already");
    expect(readFileSync(at("there.jsonl"), "utf8")).toBe("mine");
    const none = await runCli(["export", "recipes", "--to", "jsonl", "--out", at("none.jsonl")]);
    expect(none.stderr).toContain("recipes is not a run folder");
    expect(existsSync(at("none.jsonl"))).toBe(false);
  });
});
