/** A world that hangs for ever, as a user meets it: broken after its limit, and Ctrl-C works. */
import "@pawl/pawl/cli/all-worlds.js";
import { spawn } from "node:child_process";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { isWhole } from "@pawl/core/dose-testing.js";
import { runCli } from "@pawl/pawl/cli/testing.js";
import { beforeAll, expect, it, vi } from "vitest";

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
  const world = args.includes("--plugin") ? [] : ["--plugin", plugin, "--env", "hang"];
  const all = ["eval", ...world, "--policy", "expert", ...args];
  const child = spawn(process.execPath, ["dist/lib/main.js", ...all, "--out", out], {
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

/** A world that answers at once, unless it loops for ever or ends its process. */
const looping = join(folder, "looping.ts");
const isolated = ["--plugin", looping, "--env", "looping", "--env.limits.isolate"];

beforeAll(() => {
  writeFileSync(
    looping,
    `import { defineEnv, definePlugin, numberedTasks, taskLists } from "pawl";
     import { z } from "zod";
     const lists = taskLists("looping", { train: numberedTasks("train", 5, "wait") });
     const forEver = () => { for (;;); };
     export default definePlugin({ environments: [defineEnv({
       name: "looping", summary: "loops for ever in some of its tasks", options: z.strictObject({}),
       open: () => ({
         ...lists, name: "looping", stepLimit: 3, maxReturn: 1,
         expert: (env) => (env.goal === "train/3" ? forEver() : "go on"),
         create() {
           let id = "";
           let steps = 0;
           return {
             get goal() { return id; }, taskType: "wait",
             reset(task) { id = task.id; steps = 0; return "Wait."; },
             step(action) {
               steps += 1;
               if (id === "train/1" && steps === 2) forEver();
               if (id === "train/2" && steps === 2) process.exit(3);
               return { observation: "step " + steps, reward: 0.5, done: steps === 2, info: { valid: true, success: steps === 2 } };
             },
             admissibleActions: () => ["go on"],
             clone() { throw new Error("not needed"); },
           };
         },
       }),
     })] });`,
  );
});

/** Isolated worlds of this test that run; where there is no /proc, none are seen. */
const worlds = (): readonly string[] =>
  (existsSync("/proc") ? readdirSync("/proc") : []).filter((id) => {
    try {
      const [words, environment] = ["cmdline", "environ"].map((name) =>
        readFileSync(`/proc/${id}/${name}`, "utf8"),
      );
      return words!.includes("world-worker") && environment!.includes(folder);
    } catch {
      return false;
    }
  });

it("is interrupted in its own process, although it never gives up the processor", async () => {
  const { code, text } = await evaluate(join(folder, "isolated"), [
    ...isolated,
    ...["--env.limits.step-seconds", "2", "--split", "train"],
  ]);
  expect(text).toMatch(/^all +2 +100\.0 % .* 3$/m);
  expect(text).toContain("1 × a step took longer than env.limits.stepSeconds, 2 s");
  expect(text).toContain("1 × the world ended its process, with 3");
  expect(text).toContain("1 × a teacher took longer than 2 s");
  expect(code).toBe(0);
});

it.runIf(isWhole)(
  "eats memory without end, and only its own episode is broken, whatever it fills",
  async () => {
    const meals = [
      "for (;;) kept.push({ held: [kept.length] });",
      // These end the whole process if they run in a thread of it, whatever its limits.
      "for (;;) kept.push(1);",
      "for (;;) kept.push(new Array(1e6).fill(0));",
      // Outside the heap.
      "for (;;) kept.push(Buffer.alloc(2 ** 22, 1));",
    ];
    const eater = join(folder, "eater.ts");
    const world = readFileSync(looping, "utf8")
      .replaceAll("looping", "eater")
      .replace(
        "const forEver = () => { for (;;); };",
        `const kept = []; const meals = [${meals.map((eat) => `() => { ${eat} }`).join(", ")}];`,
      )
      .replace(
        'if (id === "train/1" && steps === 2) forEver();',
        "if (steps === 2) meals[id.at(-1)]?.();",
      )
      .replace('if (id === "train/2" && steps === 2) process.exit(3);', "")
      .replace('env.goal === "train/3" ? forEver() : "go on"', '"go on"');
    expect(world).not.toMatch(/forEver|exit/);
    writeFileSync(eater, world);
    const out = join(folder, "eaten");
    const { code, text } = await evaluate(out, [
      ...["--plugin", eater, "--env", "eater", "--split", "train"],
      ...["--env.limits.isolate", "--env.limits.isolated-memory", "300"],
    ]);
    const errors = gunzipSync(readFileSync(join(out, "episodes.jsonl.gz")))
      .toString()
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
      .map(({ task, error }) => [task.id, error]);
    const tooMuch = expect.stringContaining(
      "the world took more than env.limits.isolatedMemory, 300 MB",
    );
    expect(Object.fromEntries(errors), text).toEqual({
      ...Object.fromEntries(meals.map((_, at) => [`train/${at}`, tooMuch])),
      "train/4": undefined,
    });
    expect(text).toMatch(/^all +1 +100\.0 % .* 4$/m);
    expect(text).toContain("4 × the world took more than env.limits.isolatedMemory, 300 MB");
    expect(text).not.toMatch(/FATAL|Last few GCs|^\s+at /m);
    expect(code).toBe(0);
  },
  240_000,
);

it("leaves no process behind when its run is killed, although it never stops by itself", async () => {
  const out = join(folder, "killed");
  const { code } = await evaluate(out, [...isolated, "--split", "train"], "SIGKILL");
  expect(code).toBeNull();
  await vi.waitFor(() => expect(worlds()).toEqual([]), { timeout: 20_000, interval: 200 });
});

it("plays the same episodes as in this process, and keeps the contract", async () => {
  const episodes = async (name: string, ...isolate: readonly string[]) => {
    const out = join(folder, name);
    const args = ["--policy", "random", "--groups", "2", "--group-size", "2", "--step-limit", "5"];
    const { code, stderr } = await runCli(["rollout", ...args, ...isolate, "--out", out]);
    expect(code, stderr).toBe(0);
    return gunzipSync(readFileSync(join(out, "episodes.jsonl.gz"))).toString();
  };
  expect(await episodes("apart", "--env.limits.isolate")).toBe(await episodes("here"));
  const checked = await runCli(["env", "check", "--env.limits.isolate"]);
  expect(checked.stdout).toContain("✓ clones exactly");
  expect(checked.stdout).toContain("✓ lets its expert solve every task");
  expect(checked.code, checked.stdout).toBe(0);
});

it.each([
  ["play", ["play", "--env.limits.isolate"], "pawl play looks into worlds in its own process"],
  [
    "the verifier",
    ["wm", "eval", "verifier", "--env.limits.isolate", "--policy", "random"],
    "the verifier looks into worlds in its own process",
  ],
  [
    "a limit without isolation",
    ["rollout", "--env.limits.isolated-memory", "500"],
    "isolatedMemory holds for isolated worlds: add env.limits.isolate",
  ],
  [
    "worlds that answer later",
    ["rollout", "--plugin", plugin, "--env", "hang", "--env.limits.isolate"],
    "worlds of hang answer later and are interrupted anyway",
  ],
])("isolation is refused by name: %s", async (_, args, reason) => {
  const { code, stderr } = await runCli(args);
  expect(stderr).toMatch(new RegExp(`env\\.limits\\.(isolate: )?${reason}`));
  expect(code).toBe(1);
});
