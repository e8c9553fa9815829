import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { afterAll, beforeAll, expect, it } from "vitest";
import { brokenEpisode, recordEpisodes, recordExpert } from "../exports/testing.js";
import { runCli } from "./testing.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-rescore-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const [house, desk] = [join(folder, "house"), join(folder, "desk")];
beforeAll(async () => {
  await recordExpert(house, "household", 3);
  await recordExpert(desk, "desk", 2);
});

function module(name: string, source: string): string {
  const path = join(folder, name);
  writeFileSync(path, source);
  return path;
}

it("gives old and new returns by task type, and leaves the records alone", async () => {
  const before = readdirSync(house).map((name) => [name, statOf(join(house, name))]);
  // The largest return of the household is 10: a number below it is no success.
  const reward = module(
    "short.ts",
    "export default ({ actions }: { actions: string[] }) => actions.length <= 6 ? 10 : 1;",
  );
  const { code, stdout, stderr } = await runCli(["rescore", house, "--reward", reward]);
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toMatch(/task type +episodes +success +now +return +now +success changed/);
  const out = join(house, "rescored-short.jsonl");
  const [about, ...lines] = readFileSync(out, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(about).toMatchObject({ sha256: expect.stringMatching(/^[0-9a-f]{64}$/) });
  expect(lines).toHaveLength(6);
  const records = [...openRun(house, () => undefined).episodes()];
  for (const [i, { before: old, after }] of lines.entries()) {
    const { steps, return: worth, success } = records[i]!;
    expect(old).toEqual({ return: worth, success });
    expect(after).toEqual({
      return: steps.length <= 6 ? 10 : 1,
      success: steps.length <= 6,
    });
  }
  const all = /^all +6 +100\.0 % +\S+ % +10\.00 /m;
  expect(stdout).toMatch(all);
  const after = readdirSync(house).filter((name) => !name.startsWith("rescored"));
  expect(after.map((name) => [name, statOf(join(house, name))])).toEqual(before);
});

const statOf = (path: string): string => {
  try {
    return readFileSync(path).toString("base64");
  } catch {
    return "folder";
  }
};

it("shows a reward what a task's own reward sees, and the record", async () => {
  const reward = module(
    "all.ts",
    `export default async ({ task, actions, observations, messages, episode }) => {
      if (task.goal !== episode.goal || actions.length !== observations.length) throw new Error("?");
      if (!messages.some(({ role, calls }) => role === "assistant" && calls?.length === 1)) throw new Error("calls");
      return { reward: 0.5, success: false, score: 0.25 };
    };`,
  );
  const { stdout, stderr } = await runCli(["rescore", desk, "--reward", reward, "--json"]);
  expect(stderr).toBe("");
  const { byType, broken } = JSON.parse(stdout);
  expect(broken).toBe(0);
  expect(byType.all).toEqual({ episodes: 4, changed: 4, success: [1, 0], returns: [1, 0.5] });
});

it("does not judge broken episodes", async () => {
  const run = join(folder, "broken");
  recordEpisodes(run, [brokenEpisode]);
  const reward = module("one.ts", "export default () => 1;");
  const { stdout } = await runCli(["rescore", run, "--reward", reward]);
  expect(stdout).toContain("1 broken episodes were not judged");
});

it.each([
  ["throws.ts", "export default () => { throw new Error('judge is down'); };", /judge is down/],
  ["nan.ts", "export default () => NaN;", /is NaN; expected a finite number/],
  ["text.ts", "export default () => 'good';", /gave "good"; expected a number/],
  ["calls.ts", "export default ({ call }) => call({ tool: 'x', arguments: {} });", /is gone/],
  ["none.ts", "export const reward = () => 1;", /the default export is missing/],
])("refuses %s, and writes nothing", async (name, source, message) => {
  const { code, stderr } = await runCli(["rescore", desk, "--reward", module(name, source)]);
  expect(stderr).toMatch(message);
  expect(code).toBeGreaterThan(0);
  expect(readdirSync(desk)).not.toContain(`rescored-${name.replace(".ts", ".jsonl")}`);
});

it.each([
  [[], /pawl rescore needs a run/],
  [["nowhere"], /nowhere is not a run folder/],
])("refuses %j", async (args, message) => {
  const reward = module("fine.ts", "export default () => 1;");
  const { code, stderr } = await runCli(["rescore", ...args, "--reward", reward]);
  expect(stderr).toMatch(message);
  expect(code).toBeGreaterThan(0);
});
