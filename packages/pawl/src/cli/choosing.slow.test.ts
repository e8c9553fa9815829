/** Choosing with a critic, by command: one with its own weights, and one that is a head on the policy. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { runCli } from "./testing.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-critic-"));
afterAll(() => rmSync(parent, { recursive: true, force: true }));

it.each(["own", "shared"])("adds the values of a critic with %s weights", async (weights) => {
  const run = join(parent, weights);
  const trained = await runCli([
    ...["train", "--quick", "--model.start", "examples/try-start", "--warm-start.episodes", "0"],
    ...["--advantage", "ppo", "--critic.weights", weights, "--updates", "1", "--groups", "2"],
    ...["--group-size", "2", "--step-limit", "4", "--evaluation.every", "0", "--out", run],
  ]);
  expect(trained.stderr).not.toMatch(/error/);
  const choose = ["--candidates", "4", "--choose", "self", "--choose.critic"];
  const { code, stdout, stderr } = await runCli([
    ...[
      "eval",
      "--checkpoint",
      run,
      "--temperature",
      "1",
      "--tasks",
      "4",
      "--split",
      "test_unseen",
    ],
    ...[...choose, "--choose.beta", "0.5", "--choose.tasks", "2", "--step-limit", "3", "--json"],
    ...["--out", join(parent, `${weights}-eval`)],
  ]);
  expect(stderr).not.toMatch(/error/);
  expect(code).toBe(0);
  const { choosing } = JSON.parse(stdout);
  expect(choosing.tried).toMatchObject(
    [0, 2, 5, 10].map((critic) => ({ beta: 0.5, critic, success: expect.any(Number) })),
  );
  expect(choosing).toMatchObject({ beta: 0.5, critic: expect.any(Number) });
  const start = await runCli(["eval", "--checkpoint", join(run, "reference"), ...choose]);
  expect(start.stderr).toContain("has no critic");
});
