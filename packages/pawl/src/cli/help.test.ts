import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { runCli } from "./testing.js";

const help = async (...args: string[]) => (await runCli(args)).stdout;
/** The text with its line breaks undone. */
const flat = (text: string): string => text.replace(/\s+/g, " ");

it("shows the common options first, and the others by group with --help all", async () => {
  const short = await help("train", "--help");
  expect(short).not.toContain("--optimizer.beta1");
  expect(short.match(/^ {2}--/gm)!.length).toBeLessThan(24);
  expect(flat(short)).toMatch(/\d+ more options: pawl train --help all/);
  const all = await help("train", "--help", "all");
  expect(all.match(/^ {2}--(?!.*…)/gm)!.length).toBeLessThanOrEqual(60);
  expect(flat(all)).toMatch(/--optimizer\.… AdamW and the learning-rate schedule \(7\)/);
  expect(await help("help", "train", "all")).toBe(all);
  const group = await help("train", "--help", "optimizer");
  expect(group).toContain("--optimizer.…: AdamW and the learning-rate schedule");
  expect(flat(group)).toMatch(/--optimizer\.beta1 NUMBER Adam β₁ \(default: 0\.9\)/);
  expect(group).not.toContain("--warm-start");
  expect(await help("train", "--help", "warm-start")).toContain("--warm-start.sft.optimizer.beta1");
});

it("lists every option of commands that have few, under headings", async () => {
  expect(await help("rollout", "--help", "all")).toMatch(/^--policy\.…$/m);
});

it("shows the values that hold: the recipe's, and lists", async () => {
  const household = flat(await help("train", "--help", "all"));
  expect(household).toMatch(/--updates NUMBER number of RL updates \(default: 105\)/);
  expect(flat(await help("train", "--help", "evaluation"))).toMatch(
    /splits to evaluate on; needs evaluation.every above 0 \(default: valid_seen,valid_unseen\)/,
  );
  const desk = flat(await help("train", "--env", "desk", "--help"));
  expect(desk).toMatch(/--updates NUMBER number of RL updates \(default: 30\)/);
  // Not beside what would hold without the recipe.
  expect(household).toMatch(/maximum steps per episode \(default: 30\)/);
  for (const text of [household, flat(await help("eval", "--help", "all"))])
    expect(text).not.toMatch(/\(default[^()]*\) \(/);
});

it("finds options by a word of their description", async () => {
  for (const [word, flag] of [
    ["KL", "--objective.kl"],
    ["clip", "--objective.clip-low"],
    ["GAE", "--advantage.lambda"],
    ["Adam β₁", "--optimizer.beta1"],
    ["gradient norm", "--optimizer.grad-clip-norm"],
  ] as const)
    expect(await help("train", "--help", word)).toContain(flag);
  expect(await help("train", "--help", "no-such-word")).toContain("none; --help all");
});

it("keeps to the width", async () => {
  const all = await help("train", "--help", "all");
  const lines = all.slice(0, all.indexOf("Examples")).split("\n");
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(100);
  for (const args of [["--help"], ["eval", "--help"]]) {
    const { stdout } = await runCli(args, { columns: 60 });
    const own = stdout.split("Examples")[0]!.split("\n");
    expect(Math.max(...own.map((line) => line.length))).toBeLessThanOrEqual(60);
  }
});

it("prints a configuration that --config takes and that gives itself again", async () => {
  const path = join(mkdtempSync(join(tmpdir(), "pawl-help-")), "run.json");
  const printed = await help("train", "--env", "desk", "--seed", "7", "--print-config");
  expect(JSON.parse(printed)).toMatchObject({ env: { name: "desk" }, seed: 7, updates: 30 });
  writeFileSync(path, printed);
  expect(await help("train", "--config", path, "--print-config")).toBe(printed);
});

it("checks without starting, and says so where that cannot be done", async () => {
  const [says, ...takes] = (await help("train", "--env", "desk", "--dry-run")).split("\n");
  expect(says).toBe(
    "pawl train would make 30 updates of 16 × 8 episodes in desk with tiny, recorded to a new folder in runs/. Nothing was started.",
  );
  expect(takes).toEqual([
    expect.stringMatching(
      /^trains 0\.\d million parameters, about 0\.\d of the .* GB of memory here$/,
    ),
    expect.stringMatching(/^up to [\d,]+ tokens an update: 128 episodes of up to 8 steps$/),
    expect.stringMatching(/^up to about .* minutes: imitation .*, 30 × .* for updates, evaluation/),
    "",
  ]);
  const away = await help("train", "--engine", "http://127.0.0.1:1", "--dry-run");
  expect(away).toMatch(
    /\nminutes unknown: the engine server at http:\/\/127.0.0.1:1 does not answer/,
  );
  const wrong = await runCli(["train", "--split", "nowhere", "--dry-run"]);
  expect([wrong.code, wrong.stdout]).toEqual([1, ""]);
  const tight = ["train", "--max-tokens", "512", "--model.max-context", "512", "--dry-run"];
  expect((await runCli(tight)).stderr).toContain("leaves no room for a prompt");
  expect((await runCli(["show", "--dry-run"])).stderr).toContain("pawl show has no --dry-run");
  expect((await runCli(["show", "--help"])).stdout).not.toContain("--dry-run");
  expect((await runCli(["train", "--help"])).stdout).toContain("--dry-run");
  expect(await help("eval", "--tasks", "5", "--dry-run")).toContain("would play 5 tasks");
  expect(await help("rollout", "--groups", "3", "--dry-run")).toContain("would play 3 tasks");
});

it("prints the version without loading the commands", () => {
  const version = JSON.parse(readFileSync("package.json", "utf8")).version;
  const printed = execFileSync(process.execPath, ["dist/lib/main.js", "--version"]);
  expect(printed.toString()).toBe(`${version}\n`);
  const imports = readFileSync("packages/pawl/src/cli/main.ts", "utf8").matchAll(
    /^import .*"(.*)";$/gm,
  );
  expect([...imports].map(([, path]) => path)).toEqual([
    "@pawl/core/processes/escaped-errors.js",
    "@pawl/models/no-telemetry.js",
    "@pawl/core/version.js",
    "./io.js",
  ]);
});
