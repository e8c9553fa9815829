/** The example of a plugin, as its reader would use it: trained with, replayed, compared. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "pawl-example-"));
const env = { ...process.env, XDG_CACHE_HOME: join(folder, "cache") };
const pawl = (...args: string[]) =>
  spawnSync(process.execPath, ["dist/lib/main.js", ...args], { encoding: "utf8", env });

const plugin = ["--plugin", "examples/plugin.ts"];
const tiny = [
  ...["env.rooms", "1", "env.receptacles", "4", "env.objects", "3", "model.max-context", "256"],
  ...["engine.threads", "1", "updates", "1", "groups", "2", "group-size", "2", "step-limit", "2"],
  ...["max-tokens", "4", "warm-start.episodes", "0", "objective.entropy", "0"],
];
const flags = (prefix: string) =>
  tiny.map((word, i) => (i % 2 === 0 ? `--${prefix}${word}` : word));
const chosen = ["--advantage", "best", "--objective.loss", "bounded", "--paw.loss", "squared"];
const metrics = (run: string): Record<string, number> =>
  JSON.parse(readFileSync(join(run, "metrics.jsonl"), "utf8").trim().split("\n").at(-1)!);

describe("examples/plugin.ts", () => {
  const run = join(folder, "run");

  it("trains with its estimator and its losses", () => {
    const trained = pawl(
      ...["train", ...plugin, ...flags(""), "--evaluation.every", "0", ...chosen],
      ...["--advantage.margin", "0.25", "--out", run],
    );
    expect(trained.status, trained.stderr).toBe(0);
    const line = metrics(run);
    // No episode earns a reward in two steps: A is the margin, less 0.1 for invalid actions. At a
    // ratio of 1 the loss is −A.
    expect(line["policy.loss"]).toBeGreaterThanOrEqual(-0.25 - 1e-6);
    expect(line["policy.loss"]).toBeLessThanOrEqual(0.1 - 0.25 + 1e-6);
    expect(line["world.loss"]).toBeGreaterThan(0);
    expect(line).not.toHaveProperty("policy.clipped");
  });

  it("is loaded by itself to replay and report the run", () => {
    const replayed = pawl("replay", run);
    expect(replayed.stdout, replayed.stderr).toMatch(/1 updates, \d+ numbers compared, 0 diverged/);
    expect(replayed.status).toBe(0);
    const reported = pawl("report", run, "--predictions", "--out", join(folder, "report.html"));
    expect(reported.status, reported.stderr).toBe(0);
  });

  it("plays with its policy", () => {
    const out = join(folder, "curious");
    const played = pawl("rollout", ...plugin, "--policy", "curious", "--groups", "2", "--out", out);
    expect(played.status, played.stderr).toBe(0);
    expect(played.stdout).toMatch(/^all +16 /m);
  });

  it("reaches the processes of a comparison", () => {
    const out = join(folder, "bench");
    const compared = pawl(
      ...[
        "bench",
        "observations",
        ...plugin,
        ...flags("train."),
        "--train.objective.loss",
        "bounded",
      ],
      ...["--train.evaluation.splits", "valid_seen", "--algorithms", "best", "--arms", "plain"],
      ...["--seeds", "0", "--eval-tasks", "2", "--jobs", "1", "--threads", "1", "--out", out],
    );
    expect(compared.status, compared.stderr).toBe(0);
    const trained = join(out, "default", "best", "seed-0", "run");
    const manifest = JSON.parse(readFileSync(join(trained, "manifest.json"), "utf8"));
    expect(manifest.plugins[0].path).toMatch(/examples\/plugin\.ts$/);
    expect(manifest.config).toMatchObject({
      advantage: { name: "best" },
      objective: { loss: "bounded" },
    });
  });
});
