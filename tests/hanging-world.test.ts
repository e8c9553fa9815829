/** A world that hangs for ever, as a user meets it: broken after its limit, and Ctrl-C works. */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "pawl-hang-"));
const plugin = join(folder, "hang.ts");

beforeAll(() => {
  writeFileSync(
    plugin,
    `import { defineTaskEnv, definePlugin } from "pawl";
     // A reward that never comes, and a timer that would keep the process alive.
     const never = () => new Promise(() => void setInterval(() => undefined, 1000));
     export default definePlugin({
       environments: [defineTaskEnv({
         name: "hang",
         summary: "hangs in some of its tasks",
         splits: {
           train: () => [{ goal: "fine" }, { goal: "hang" }, { goal: "fine" }],
           lost: () => [{ goal: "hang" }, { goal: "hang" }],
         },
         reward: ({ task }) => (task.goal === "hang" ? never() : 1),
         expert: () => "yes",
       })],
     });`,
  );
});

/** Evaluates the expert; a signal is sent as soon as the run has recorded an episode, if asked for. */
function evaluate(out: string, args: readonly string[], signal?: NodeJS.Signals) {
  const all = ["eval", "--plugin", plugin, "--env", "hang", "--policy", "expert", ...args];
  const child = spawn(process.execPath, ["dist/src/cli/main.js", ...all, "--out", out], {
    env: { ...process.env, XDG_CACHE_HOME: join(folder, "cache") },
  });
  let text = "";
  const listen = (chunk: Buffer): void => {
    text += chunk.toString();
  };
  child.stdout.on("data", listen);
  child.stderr.on("data", listen);
  const episodes = join(out, "episodes.jsonl.gz");
  const watch = setInterval(() => {
    if (signal === undefined || !existsSync(episodes) || statSync(episodes).size === 0) return;
    child.kill(signal);
    clearInterval(watch);
  }, 100);
  return new Promise<{ code: number | null; text: string }>((resolve) => {
    child.on("close", (code) => {
      clearInterval(watch);
      resolve({ code, text });
    });
  });
}

const quick = ["--env.limits.step-seconds", "0.5"];

it("is broken after its limit, by reason, and the others are whole", async () => {
  const { code, text } = await evaluate(join(folder, "some"), ["--split", "train", ...quick]);
  expect(text).toMatch(/^all +2 +100\.0 % .* 1$/m);
  expect(text).toContain("1 × a step took longer than env.limits.stepSeconds, 0.5 s");
  expect(code).toBe(0);
});

it("says the first reason and fails if nothing else was played", async () => {
  const { code, text } = await evaluate(join(folder, "all"), ["--split", "lost", ...quick]);
  expect(text).toContain(
    "error: all 2 episodes broke. The first error, of task lost/0: a step took longer than env.limits.stepSeconds",
  );
  expect(code).toBe(1);
});

it("is interrupted by the first Ctrl-C, with finished episodes kept", async () => {
  const out = join(folder, "stopped");
  // The first episode is recorded at once; the second hangs.
  const { code, text } = await evaluate(out, ["--split", "train"], "SIGINT");
  expect(code, text).toBe(130);
  expect(text).toContain("interrupted; finished episodes are in");
  const manifest = JSON.parse(readFileSync(join(out, "manifest.json"), "utf8"));
  expect(manifest).toMatchObject({ status: "interrupted", summary: { episodes: 1 } });
});
