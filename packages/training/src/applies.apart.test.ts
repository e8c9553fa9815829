import "@pawl/pawl/cli/all-worlds.js";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findEnvKind, registerEnv } from "@pawl/core/envs/registry.js";
import { runCli } from "@pawl/pawl/cli/testing.js";
import { describe, expect, it } from "vitest";
import { trainConfig } from "./config.js";
import { checkTraining } from "./run.js";
import { tinyConfig } from "./testing.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-applies-"));

/** Settings that were ignored without a word, in a configuration in which they are. */
const ignored: readonly (readonly [path: string, settings: object, needs: RegExp])[] = [
  ["paw.rho", { paw: { loss: "ce", rho: 0.5 } }, /needs paw\.loss cmae \(paw\.loss is ce\)/],
  ["paw.mask", { paw: { loss: "ce", mask: "above" } }, /its default is below/],
  ["paw.alpha", { paw: { loss: "off", alpha: 0.5 } }, /needs a loss: paw\.loss/],
  ["objective.importanceCap", { objective: { importanceCap: 5 } }, /engine\.sampler, overlap 1/],
  ["objective.valueClip", { objective: { valueClip: 0.1 } }, /needs advantage ppo/],
  ["objective.valueCoefficient", { objective: { valueCoefficient: 1 } }, /needs advantage ppo/],
  ["critic.weights", { critic: { weights: "shared" } }, /needs advantage ppo/],
  ["critic.learningRate", { critic: { learningRate: 1 } }, /advantage ppo and critic\.weights own/],
  [
    "critic.learningRate",
    { advantage: { name: "ppo" }, critic: { weights: "shared", learningRate: 1 } },
    /critic\.weights is shared/,
  ],
  ["model.maxContext", { model: { start: "runs/a", maxContext: 99 } }, /model\.start is runs\/a/],
  ["prompt.toolCalls", { prompt: { style: "chat", toolCalls: "json" } }, /actions are tool calls/],
  ["corrections.weight", { corrections: { weight: 2 } }, /needs corrections\.episodes above 0/],
  ["corrections.teacher", { corrections: { teacher: "seeker" } }, /needs corrections\.episodes/],
  ["warmStart.teacher", { warmStart: { teacher: "seeker" } }, /needs warmStart\.episodes above 0/],
  [
    "warmStart.epsilon",
    { warmStart: { episodes: 9, runs: ["a"], epsilon: 0.3 } },
    /a teacher that plays/,
  ],
  [
    "advantage.penaltyOn",
    { advantage: { name: "grpo", penalty: 0, penaltyOn: "malformed" } },
    /advantage\.penalty above 0/,
  ],
  [
    "advantage.similarity",
    { advantage: { name: "gigpo", stepWeight: 0, similarity: 0.5 } },
    /advantage\.stepWeight above 0/,
  ],
  ["engine.model", { engine: { model: "a" } }, /an engine server/],
  ["engine.samplerModel", { engine: { samplerModel: "a" } }, /needs engine\.sampler/],
  ["evaluation.splits", { evaluation: { every: 0, splits: ["a"] } }, /evaluation\.every above 0/],
  ["track.project", { track: { project: "a" } }, /needs track\.to/],
  ["alarms.kl", { alarms: { kl: 3 }, objective: { kl: 0 } }, /needs objective\.kl above 0/],
  ["rollout.rows", { rollout: { rows: 8 } }, /needs rollout\.pace own/],
  ["rollout.stragglers", { rollout: { pace: "own", stragglers: "carry" } }, /stragglerSeconds/],
];

/** The same settings where they have an effect. */
const obeyed: readonly (readonly [path: string, settings: object])[] = [
  ["paw.rho", { paw: { rho: 0.5, mask: "above" } }],
  ["objective.importanceCap", { overlap: 1, objective: { importanceCap: 5 } }],
  ["objective.valueClip", { advantage: { name: "ppo" }, objective: { valueClip: 0.1 } }],
  ["critic.learningRate", { advantage: { name: "ppo" }, critic: { learningRate: 1 } }],
  ["corrections.weight", { corrections: { episodes: 1, weight: 2 } }],
  ["rollout", { rollout: { pace: "own", stragglerSeconds: 5, stragglers: "carry", rows: 8 } }],
];

describe("a setting without an effect", () => {
  it.each(ignored)("is refused by name: %s", (path, settings, needs) => {
    const check = () => checkTraining(tinyConfig({ ...settings }));
    expect(check).toThrow(`${path}: `);
    expect(check).toThrow(/would change nothing: it needs .* Set that, or leave \S+ out/);
    expect(check).toThrow(needs);
  });

  it.each(obeyed)("is accepted where it has one: %s", (_, settings) => {
    expect(() =>
      checkTraining(tinyConfig({ evaluation: { every: 0 }, ...settings })),
    ).not.toThrow();
  });

  it("is accepted where it has one: prompt.toolCalls", () => {
    const { env: _, ...settings } = tinyConfig({ prompt: { style: "chat", toolCalls: "json" } });
    const desk = trainConfig(findEnvKind("desk")).parse({
      ...settings,
      env: { name: "desk" },
      evaluation: { every: 0 },
    });
    expect(() => checkTraining(desk)).not.toThrow();
  });

  it("is looked up by the name in the settings, which an opened environment may extend", () => {
    const household = findEnvKind("household");
    registerEnv({
      ...household,
      name: "renamed",
      open: (options) => ({ ...household.open(options), name: "renamed-household" }),
    });
    const config = tinyConfig();
    expect(() =>
      checkTraining({ ...config, env: { ...config.env, name: "renamed" } }),
    ).not.toThrow();
  });

  it("is accepted where nobody gave it, or gave its default", () => {
    const config = tinyConfig({ paw: { loss: "ce", rho: 0.5 } });
    expect(() => checkTraining(config, { given: () => false })).not.toThrow();
    expect(() => checkTraining(config, { resume: true })).not.toThrow();
    expect(() => checkTraining(tinyConfig({ paw: { loss: "ce", rho: 0.2 } }))).not.toThrow();
  });
});

describe("on the command line", () => {
  const file = (name: string, settings: object): string => {
    const path = join(parent, name);
    writeFileSync(path, JSON.stringify(settings));
    return path;
  };
  const dry = (...args: readonly string[]) => runCli(["train", "--dry-run", ...args]);

  it("a flag or a file's setting is refused, with its place", async () => {
    const flag = await dry("--paw.loss", "ce", "--paw.rho", "0.5");
    expect(flag.code).toBe(2);
    expect(flag.stderr).toContain("--paw.rho: 0.5 would change nothing");
    const path = file("rho.json", { paw: { loss: "ce", rho: 0.5 } });
    expect((await dry("--config", path)).stderr).toContain(`${path}: paw.rho: 0.5`);
  });

  it("a recipe's is not, nor a file's that a flag switches off", async () => {
    // The recipe has corrections with a weight, and a context for its model from scratch.
    expect(await dry("--corrections.episodes", "0")).toMatchObject({ code: 0 });
    expect(await dry("--model.start", "OWNER/NAME")).toMatchObject({ code: 0 });
    const path = file("half.json", { paw: { loss: "cmae", rho: 0.5 } });
    expect(await dry("--config", path, "--paw.loss", "ce")).toMatchObject({ code: 0 });
    expect(
      (await dry("--config", path, "--paw.loss", "ce", "--paw.mask", "above")).stderr,
    ).toContain("--paw.mask: above would change nothing");
  });

  it("what --print-config writes is taken as it is", async () => {
    const { stdout } = await runCli(["train", "--corrections.episodes", "0", "--print-config"]);
    const path = join(parent, "printed.json");
    writeFileSync(path, stdout);
    expect(await dry("--config", path)).toMatchObject({ code: 0 });
  });

  it("other commands have the same conditions", async () => {
    const calls = ["--prompt.style", "chat", "--prompt.tool-calls", "json"];
    for (const command of ["eval", "rollout"])
      expect((await runCli([command, "--env", "household", ...calls])).stderr).toContain(
        "--prompt.tool-calls: json would change nothing",
      );
    const world = ["--data", "none", "--model.start", "runs/none", "--model.max-context", "64"];
    expect((await runCli(["wm", "train", ...world])).stderr).toContain("--model.max-context: 64");
    const rwml = ["rwml", "--model.start", "served", "--objective.value-clip", "0.1"];
    expect((await runCli(rwml)).stderr).toContain("--objective.value-clip: 0.1");
  });

  it("commands that play or read a world model have conditions of their own", async () => {
    const refused = async (needs: string, ...args: readonly string[]) =>
      expect((await runCli([...args])).stderr).toContain(`would change nothing: it needs ${needs}`);
    for (const command of ["eval", "rollout"])
      await refused("a model: checkpoint", command, "--dry-run", "--temperature", "0.7");
    await refused(
      "a number",
      "rollout",
      "--dry-run",
      "--tasks",
      "train/0",
      "--split",
      "valid_seen",
    );
    const none = ["--model", "none", "--shots", "9"];
    await refused("a chat model", "wm", "eval", "fidelity", "--data", "none", ...none);
    for (const what of ["consistency", "verifier"])
      await refused("a chat model", "wm", "eval", what, ...none);
    const served = ["rwml", "--model.start", "served"];
    await refused("task.groups above 0", ...served, "--task.weight", "5");
    const runs = ["--collect.runs", "x", "--collect.epsilon", "0.5"];
    await refused("a model that plays", ...served, ...runs);
  });

  it("help says what a setting needs", async () => {
    const { stdout } = await runCli(["train", "--help", "importanceCap"]);
    expect(stdout).toContain("none");
    expect(
      (await runCli(["train", "--help", "straggler-seconds"])).stdout.replace(/\s+/g, " "),
    ).toContain("; needs rollout.pace own");
  });
});
