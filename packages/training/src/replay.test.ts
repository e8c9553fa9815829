import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isWhole } from "@pawl/core/dose-testing.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { runCli } from "@pawl/pawl/cli/testing.js";
import { beforeAll, describe, expect, it } from "vitest";
import { type ReplayedUpdate, replayRun } from "./replay.js";
import { trainRun } from "./run.js";
import { tinyConfig } from "./testing.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-replay-"));
const fail = (message: string): never => {
  throw new Error(message);
};

async function replayed(
  folder: string,
  losses: boolean,
  onProblem: (message: string) => void = fail,
): Promise<ReplayedUpdate[]> {
  const updates: ReplayedUpdate[] = [];
  for await (const update of replayRun(openRun(folder, onProblem), { losses, tolerance: 1e-3 }))
    updates.push(update);
  return updates;
}

/** A copy of a run with one of its text files changed, and without the checksums that tell. */
function changed(run: string, name: string, file: string, change: (text: string) => string) {
  const copy = join(parent, name);
  cpSync(run, copy, { recursive: true });
  const text = change(readFileSync(join(copy, file), "utf8"));
  writeFileSync(join(copy, file), text.replace(/,\s*"checksum": "\w+"/, ""));
  rmSync(join(copy, "metrics.crc32"));
  return copy;
}

describe("the replay of a run", () => {
  const run = join(parent, "run");
  beforeAll(() => trainRun(tinyConfig({ gradients: { every: 10 } }), { folder: run }));

  it("reproduces the recorded numbers, and learns again if weights are kept", async () => {
    const updates = await replayed(run, true);
    expect(updates.flatMap((update) => update.divergences)).toEqual([]);
    expect(updates.map((update) => update.learnt)).toEqual([true, false, true]);
    expect(updates[0]!.left).toEqual([]);
    for (const name of ["loss", "world.loss", "world.p", "policy.kl", "gradNorm"])
      expect(updates[0]!.compared).toContain(name);
    for (const name of [
      "train.success",
      "train.return",
      "train.responseTokens",
      "train.tokens",
      "world.lambda",
      "world.selectedShare",
      "world.targets",
      "policy.actionEntropy",
      "policy.loss",
    ])
      expect(updates[1]!.compared).toContain(name);
    expect(updates[1]!.left).toContain("world.loss");
  });

  it("names the first number that diverges", async () => {
    const other = changed(run, "lambda", "metrics.jsonl", (text) =>
      text.replace(/("update":1,.*"world.lambda":)[\d.]+/, "$10.123"),
    );
    const { code, stdout } = await runCli(["replay", other, "--no-losses"]);
    expect(stdout).toMatch(
      /^update 1: world\.lambda was recorded as 0\.123, but recomputed as [\d.]+$/m,
    );
    expect(stdout).toMatch(/3 updates, \d+ numbers compared, 1 diverged/);
    expect(code).toBe(1);
  });

  it("notices that advantages were computed with other settings", async () => {
    const other = changed(run, "penalty", "manifest.json", (text) =>
      text
        .replace(/"penaltyPlace": "inside"/, '"penaltyPlace": "after"')
        .replace(/,\s*"checksum": "\w+"/, ""),
    );
    const wrong = (await replayed(other, false)).flatMap((update) => update.divergences);
    expect(new Set(wrong.map((divergence) => divergence.quantity))).toEqual(
      new Set(["policy.loss", "train.equalGroups"]),
    );
  });

  it("says where episodes are missing", async () => {
    const other = changed(run, "cut", "metrics.jsonl", (text) => text);
    rmSync(join(other, "episodes.jsonl.gz"));
    const problems: string[] = [];
    const updates = await replayed(other, false, (message) => problems.push(message));
    expect(updates.map((update) => update.divergences[0]?.quantity)).toEqual(
      new Array<string>(3).fill("episodes"),
    );
    expect(problems).toEqual([`${join(other, "episodes.jsonl.gz")} is missing`]);
  });

  it.runIf(isWhole)("replays a critic and full entropies as far as weights are kept", async () => {
    const folder = join(parent, "ppo");
    const config = tinyConfig({
      advantage: { name: "ppo" },
      paw: { entropy: "full" },
      gradients: { every: 10 },
      minibatch: 9,
      updates: 2,
      checkpointEvery: 2,
      evaluation: { every: 0 },
    });
    await trainRun(config, { folder });
    const updates = await replayed(folder, true);
    expect(updates.flatMap((update) => update.divergences)).toEqual([]);
    expect(updates.map((update) => update.learnt)).toEqual([true, false]);
    expect(updates[0]!.compared).toContain("policy.actionEntropy");
    expect(updates[1]!.left).toEqual(
      expect.arrayContaining(["policy.actionEntropy", "world.targets", "policy.loss"]),
    );
  });

  it.runIf(isWhole)("learns again at the sampling temperature", async () => {
    const folder = join(parent, "cold");
    const config = tinyConfig({
      ...{ temperature: 0.6, updates: 2, checkpointEvery: 2, evaluation: { every: 0 } },
      objective: { entropy: 0.01 },
      gradients: { every: 1 },
    });
    await trainRun(config, { folder });
    const line = openRun(folder, fail).metrics()[1]!;
    expect(line["mismatch.max"]).toBeLessThan(1e-4);
    expect(line["policy.ratio"]).toBeCloseTo(1, 4);
    const updates = await replayed(folder, true);
    expect(updates.flatMap((update) => update.divergences)).toEqual([]);
    expect(updates[0]!.compared).toEqual(
      expect.arrayContaining(["policy.entropy", "mismatch.mean", "gradient.cosine"]),
    );
    expect(updates[1]!.compared).toContain("policy.loss");
  });

  it.runIf(isWhole)(
    "leaves out gradients that were measured on a sample, as in older runs",
    async () => {
      const old = changed(run, "sampled", "manifest.json", (text) =>
        text.replace(/"gradients": \{[^}]*\}/, '"gradientSample": 8'),
      );
      const [update] = await replayed(old, true);
      expect(update!.learnt).toBe(true);
      expect(update!.divergences).toEqual([]);
      // No episode succeeded, so there is no cosine.
      expect(update!.left).toEqual(["gradient.policy", "gradient.world"]);
    },
  );

  it("rejects folders that are not training runs", async () => {
    const out = join(parent, "rollout");
    await runCli(["rollout", "--groups", "1", "--group-size", "1", "--out", out]);
    const { code, stderr } = await runCli(["replay", out]);
    expect(stderr).toContain("was made by pawl rollout: expected a run of pawl train");
    expect(code).toBe(1);
    expect((await runCli(["replay"])).stderr).toContain("pawl replay needs a run folder");
  });

  it("evaluates the run's checkpoints with the settings it was trained with", async () => {
    const out = join(parent, "eval");
    const args = ["eval", "--checkpoint", run, "--tasks", "3", "--out", out, "--json"];
    const { code, stdout } = await runCli(args);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ split: "valid_seen", episodes: 3, folder: out });
    const manifest = JSON.parse(readFileSync(join(out, "manifest.json"), "utf8"));
    expect(manifest).toMatchObject({
      kind: "eval",
      config: { env: { rooms: 1 }, prompt: { style: "compact" }, stepLimit: 3, temperature: 0.4 },
    });
    const start = await runCli([
      "eval",
      ...["--checkpoint", join(run, "reference"), "--tasks", "2", "--temperature", "0"],
      ...["--env.noise", "ids", "--out", join(parent, "eval-start")],
    ]);
    const elsewhere = join(parent, "model");
    cpSync(join(run, "checkpoints", "000003"), elsewhere, { recursive: true });
    const moved = await runCli([
      "eval",
      ...["--checkpoint", elsewhere, "--tasks", "1", "--step-limit", "1", "--max-tokens", "4"],
      ...[
        "--prompt.style",
        "compact",
        "--engine.threads",
        "1",
        "--out",
        join(parent, "eval-moved"),
      ],
    ]);
    expect(moved.stdout).toMatch(/^all +1 /m);
    expect(start.stdout).toMatch(/^pick +2 +[\d.]+ % +[\d.]+ – [\d.]+ %/m);
  });
});
