/** Code that a run names by its path is loaded only where, and as, its user has named it before. */
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";

let folder: string;

/** Runs a command in a process of its own: in this one the honest plugin would be loaded already. */
function pawl(...args: readonly string[]): string {
  const env = { ...process.env, XDG_CACHE_HOME: join(folder, "cache") };
  const cli = join(process.cwd(), "dist/lib/main.js");
  return spawnSync(process.execPath, [cli, ...args], { env, encoding: "utf8" }).stderr;
}

const world = `
import { trace } from "tracer";
import { defineEnv, definePlugin, numberedTasks, taskLists } from "pawl";
import { z } from "zod";
trace();
const lists = taskLists("coin", { train: numberedTasks("train", 3, "coin") });
const coin = defineEnv({
  name: "coin", summary: "a coin", options: z.strictObject({}),
  open: () => ({
    ...lists, name: "coin", stepLimit: 3, maxReturn: 1,
    create: () => ({
      goal: "Say heads.", taskType: "coin",
      reset: () => "A coin.",
      step: (action) => ({ observation: "It falls.", reward: 1, done: true, info: { valid: true, success: true } }),
      admissibleActions: () => ["heads", "tails"],
      clone() { throw new Error("not needed here"); },
    }),
  }),
});
export default definePlugin({ environments: [coin] });
`;

/** A folder with a plugin and a package that it imports, which leaves a trace. */
function project(at: string): { readonly plugin: string; readonly trace: string } {
  const tracer = join(at, "node_modules", "tracer");
  const trace = join(at, "trace");
  mkdirSync(tracer, { recursive: true });
  const described = { name: "tracer", type: "module", exports: "./index.js" };
  writeFileSync(join(tracer, "package.json"), JSON.stringify(described));
  const code = `import { appendFileSync } from "node:fs";
export const trace = () => appendFileSync(${JSON.stringify(trace)}, "ran");`;
  writeFileSync(join(tracer, "index.js"), code);
  writeFileSync(join(at, "coin.ts"), world);
  return { plugin: join(at, "coin.ts"), trace };
}

describe("code that a run names is loaded only from where its user named it", () => {
  let run: string;
  let honest: string;
  let trace: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "pawl-planted-"));
    const own = project(join(folder, "honest"));
    honest = join(folder, "run");
    const random = ["--policy", "random", "--groups", "1", "--group-size", "1"];
    pawl("rollout", "--plugin", own.plugin, "--env", "coin", ...random, "--out", honest);
    expect(existsSync(own.trace)).toBe(true);
    // The same plugin, byte for byte, beside other packages.
    const evil = project(join(folder, "evil"));
    trace = evil.trace;
    run = join(folder, "copy");
    cpSync(honest, run, { recursive: true });
    const path = join(run, "manifest.json");
    const { checksum: _, ...manifest } = JSON.parse(readFileSync(path, "utf8"));
    const plugins = manifest.plugins.map((one: object) => ({ ...one, path: evil.plugin }));
    writeFileSync(path, JSON.stringify({ ...manifest, plugins }));
  });

  it.each([
    ["report", (at: string) => ["report", at]],
    ["replay", (at: string) => ["replay", at]],
    ["eval", (at: string) => ["eval", "--checkpoint", at]],
    ["train", (at: string) => ["train", "--resume", at]],
    ["rescore", (at: string) => ["rescore", at, "--reward", "judge.ts"]],
  ])("a byte-identical plugin beside planted packages, by %s", (_, args) => {
    expect(pawl(...args(run))).toContain("you have not used on this machine");
    expect(existsSync(trace)).toBe(false);
  });

  it("where it was named, it is loaded without a word", () => {
    expect(pawl("replay", honest)).toContain("expected a run of pawl train");
  });
});
