/**
 * What CONTRIBUTING.md promises newcomers: an advantage estimator and a world-model loss are one
 * file each and a line in a list. The test adds both to a copy of the package, compiles it, trains
 * with them and replays the run.
 */
import { spawnSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";

const estimator = `/** The step's score against the best of its group: A = s − max(s). */
import { z } from "zod";
import { commonSettings, groupEstimator } from "./estimator.js";
import { mapSteps } from "./statistics.js";

export const bestEstimator = groupEstimator(
  z.strictObject({
    name: z.literal("best"),
    ...commonSettings,
    margin: z.number().min(0).default(0).describe("added to every advantage"),
  }),
  (scores, { margin }) => {
    const best = Math.max(...scores.flat());
    return mapSteps(scores, (score) => score - best + margin);
  },
);
`;
const loss = `/** The squared error of a token's probability: c·(1 − p)². */
import { z } from "zod";
import { mul, sub } from "./expression.js";
import { p, type WorldLoss } from "./world-loss.js";

const settings = {
  squaredWeight: z.number().gt(0).default(1).describe("c of the squared error"),
};

export const squaredError: WorldLoss<typeof settings> = {
  title: "squared error",
  settings,
  token: ({ squaredWeight }) => mul(squaredWeight, mul(sub(1, p), sub(1, p))),
};
`;

const copy = mkdtempSync(join(tmpdir(), "pawl-newcomer-"));
const pawl = (...args: string[]) =>
  spawnSync(process.execPath, [join(copy, "dist/lib/main.js"), ...args], {
    cwd: copy,
    encoding: "utf8",
  });

/** Adds an import, and a line after an entry of a list. */
function addLine(file: string, imported: string, after: string, line: string): void {
  const path = join(copy, file);
  const text = readFileSync(path, "utf8");
  expect(text).toContain(after);
  const [header, ...rest] = text.split("\nimport ");
  const more = text.replace(after, `${after}\n${line}`).slice(header!.length);
  expect(rest.length).toBeGreaterThan(0);
  writeFileSync(path, `${header}\n${imported}${more}`);
}

describe("a newcomer", () => {
  beforeAll(() => {
    const folders = ["packages", "recipes", "ui", "packaging"];
    for (const one of [...folders, "package.json", "tsconfig.json", "tsconfig.build.json"])
      cpSync(one, join(copy, one), { recursive: true });
    // What is installed, but its own rooms.
    mkdirSync(join(copy, "node_modules/@pawl"), { recursive: true });
    for (const name of readdirSync("node_modules"))
      if (name !== "@pawl")
        symlinkSync(resolve("node_modules", name), join(copy, "node_modules", name));
    for (const room of readdirSync("packages"))
      symlinkSync(join(copy, "packages", room), join(copy, "node_modules/@pawl", room));
    writeFileSync(join(copy, "packages/core/src/advantages/best.ts"), estimator);
    writeFileSync(join(copy, "packages/core/src/objectives/squared-error.ts"), loss);
    addLine(
      "packages/core/src/advantages/advantages.ts",
      'import { bestEstimator } from "./best.js";',
      "  grpoEstimator, // the default",
      "  bestEstimator,",
    );
    addLine(
      "packages/core/src/objectives/world-losses.ts",
      'import { squaredError } from "./squared-error.js";',
      "  ce: crossEntropy,",
      "  squared: squaredError,",
    );
    const built = spawnSync("npm", ["run", "--silent", "build"], { cwd: copy, encoding: "utf8" });
    expect(`${built.stdout}${built.stderr}`).toBe("");
    expect(built.status).toBe(0);
  });

  it("adds an advantage estimator and a world-model loss in under 40 lines together", () => {
    expect(`${estimator}${loss}`.trimEnd().split("\n").length + 4).toBeLessThan(40);
  });

  it("sees both in the help, with their own settings", () => {
    const groups = ["advantage", "paw"].map((group) => pawl("train", "--help", group).stdout);
    const stdout = groups.join("\n");
    expect(stdout).toContain("--advantage grpo|best|rloo|gigpo|tree|ppo");
    expect(stdout).toMatch(/--advantage\.margin NUMBER\s+added to every advantage/);
    expect(stdout).toContain("--paw.loss cmae|mae|ce|squared|off");
    expect(stdout).toMatch(/cross-entropy,\s+squared\s+error/);
    expect(stdout).toContain("--paw.squared-weight NUMBER");
  });

  it("trains with both, and replays what was trained", () => {
    const tiny = [
      ...["--env.rooms", "1", "--env.receptacles", "4", "--env.objects", "3"],
      ...["--model.max-context", "256", "--engine.threads", "1", "--updates", "1"],
      ...["--groups", "2", "--group-size", "2", "--step-limit", "2", "--max-tokens", "4"],
      ...["--warm-start.episodes", "0", "--evaluation.every", "0", "--objective.entropy", "0"],
    ];
    const chosen = ["--advantage", "best", "--advantage.margin", "0.5", "--paw.loss", "squared"];
    const trained = pawl("train", ...tiny, ...chosen, "--out", "run");
    expect(trained.status, trained.stderr).toBe(0);
    const line = JSON.parse(
      readFileSync(join(copy, "run/metrics.jsonl"), "utf8").trim().split("\n").at(-1)!,
    ) as Record<string, number>;
    // No episode earns a reward in two steps: s − max(s) is 0, or −0.1 for an invalid action.
    expect(line["policy.loss"]).toBeLessThanOrEqual(0.1 - 0.5 + 1e-6);
    expect(line["policy.loss"]).toBeGreaterThanOrEqual(-0.5 - 1e-6);
    expect(line["world.loss"]).toBeGreaterThan(0);
    const replayed = pawl("replay", "run");
    expect(replayed.stdout).toMatch(/1 updates?, \d+ numbers compared, (0|none) diverged/);
    expect(replayed.status).toBe(0);
  });
});
