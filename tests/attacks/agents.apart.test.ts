import "@pawl/pawl/cli/all-worlds.js";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { readManifest } from "@pawl/core/runs/manifest.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "pawl-attacks-agents-"));
/** Machines that run these tests may be busy. */
const PATIENCE_MS = 180_000;
const SHORT_SECONDS = 6;
const started: ChildProcess[] = [];
afterAll(() => {
  for (const child of started) child.kill("SIGKILL");
  rmSync(folder, { recursive: true });
});

interface Ended {
  readonly code: number | null;
  readonly said: string;
  readonly run: string;
}

/** How an agent is trained. */
interface Training {
  readonly groups?: number;
  readonly seconds?: number;
  /** Sees what was printed so far. */
  readonly onSay?: (text: string, child: ChildProcess) => void;
}

/** Trains the agent of a module for one update. */
async function trained(
  name: string,
  module: string,
  { groups = 1, seconds = 600, onSay = () => undefined }: Training = {},
): Promise<Ended> {
  const file = join(folder, `${name}.mjs`);
  const ai = JSON.stringify(import.meta.resolve("ai"));
  const zod = JSON.stringify(import.meta.resolve("zod"));
  writeFileSync(file, `import * as ai from ${ai};\nimport { z } from ${zod};\n${module}`);
  const run = join(folder, name);
  const child = spawn(process.execPath, [
    ...["dist/lib/main.js", "train", "--agent", file, "--out", run, "--engine.threads", "1"],
    ...["--updates", "1", "--groups", `${groups}`, "--group-size", "2", "--max-tokens", "4"],
    ...["--model.max-context", "256", "--evaluation.every", "0", "--gradients.every", "0"],
    ...["--env.limits.episode-seconds", `${seconds}`],
  ]);
  started.push(child);
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (more: Buffer) => {
      said += String(more);
      onSay(said, child);
    });
  const code = await new Promise<number | null>((resolve) => {
    child.once("close", resolve);
  });
  return { code, said, run };
}

const agent = (run: string, tasks = ["only"], callLimit = 3): string =>
  `export default {
  tasks: { train: ${JSON.stringify(tasks.map((id) => ({ id, prompt: `go ${id}` })))} },
  callLimit: ${callLimit},
  texts: ["go"],
  reward: () => 1,
  run: async (task, model, signal) => { ${run} },
};
`;

/** How an episode ends, and the sentence that says why. */
interface Expected {
  readonly stop: Episode["stop"];
  readonly return: number;
  readonly error?: RegExp;
}
const solved: Expected = { stop: "done", return: 1 };
const outOfCalls: Expected = { stop: "step-limit", return: 0 };
const failed = (error: RegExp): Expected => ({ stop: "done", return: 0, error });
const broken = (error: RegExp): Expected => ({ stop: "broken", return: 0, error });

const ASK = "await ai.generateText({ model, prompt: task.prompt });";
const forEver = (call: string): string => `for (;;) try { ${call} } catch {}`;
const wait = (ms: number): string => `await new Promise((resolve) => setTimeout(resolve, ${ms}));`;

/** What a user's program does in one of its tasks, and what becomes of the episode. */
const programs: Readonly<Record<string, readonly [string, Expected]>> = {
  "asks once": [ASK, solved],
  "asks for ever, whatever it is told": [forEver(ASK), outOfCalls],
  "asks the session itself for ever": [
    forEver('await model.session.ask({ messages: [{ role: "user", content: task.prompt }] });'),
    outOfCalls,
  ],
  "asks streams for ever": [
    forEver("await ai.streamText({ model, prompt: task.prompt, onError() {} }).consumeStream();"),
    outOfCalls,
  ],
  "asks nonsense for ever": [
    `${ASK} ${forEver("await model.session.ask({ messages: [] });")}`,
    broken(/after it was refused 100 times: expected one message or more/),
  ],
  "asks for ever for what is not supported": [
    `${ASK} ${forEver('await model.doGenerate({ prompt: [{ role: "user", content: [{ type: "text", text: "go" }] }], toolChoice: { type: "required" } });')}`,
    broken(/after it was refused 100 times: .*tool/i),
  ],
  "asks for ever with a call that is aborted": [
    `${ASK} ${forEver("await ai.generateText({ model, prompt: 'go', abortSignal: AbortSignal.abort() });")}`,
    broken(/after it was refused 100 times: /),
  ],
  "starts two calls and awaits one": [
    `const other = ai.generateText({ model, prompt: "go on" }); ${ASK}`,
    solved,
  ],
  "starts a call and awaits none": [`${ASK} ai.generateText({ model, prompt: "go on" });`, solved],
  "starts a call that fails, and awaits another": [
    `model.session.ask({ messages: [] }); ${ASK}`,
    broken(/^expected one message or more/),
  ],
  "lets a rejected promise float": [
    `${ASK} Promise.reject(new Error("floating"));`,
    broken(/^floating$/),
  ],
  "rejects with something that is no error": [
    `${ASK} Promise.reject("a word"); ${wait(50)}`,
    broken(/^a word$/),
  ],
  "throws what cannot be read": [
    `${ASK} throw { toString() { throw new Error("not even this"); } };`,
    broken(/^an error that cannot be read$/),
  ],
  "lets it float": [
    `${ASK} Promise.reject(Object.create(null)); ${wait(50)}`,
    broken(/^an error that cannot be read$/),
  ],
  "throws in a timer": [
    `setTimeout(() => { throw new Error("in a timer"); }, 1); ${ASK} ${wait(50)}`,
    broken(/^in a timer$/),
  ],
  "throws in the next tick": [
    `process.nextTick(() => { throw new Error("in a tick"); }); ${ASK}`,
    broken(/^in a tick$/),
  ],
  "throws in a listener": [
    `signal.addEventListener("abort", () => { throw new Error("nobody waits"); }); ${ASK}`,
    solved,
  ],
  "throws in timers after its end": [
    `${ASK} setInterval(() => { throw new Error("much later"); }, 5);`,
    solved,
  ],
  "asks for an object that the model cannot write": [
    "await ai.generateObject({ model, prompt: task.prompt, schema: z.object({ a: z.number() }) });",
    failed(/^No object generated/),
  ],
  "reads an output that is none": [
    `const output = ai.Output.object({ schema: z.object({ a: z.number() }) });
     return (await ai.generateText({ model, prompt: task.prompt, output })).output;`,
    failed(/^No (object|output) generated/),
  ],
  "throws that there is no such tool": [
    `${ASK} throw new ai.NoSuchToolError({ toolName: "fly" });`,
    failed(/unavailable tool 'fly'/),
  ],
  "throws that a tool's input is invalid, as a cause": [
    `${ASK} const cause = new ai.InvalidToolInputError({ toolName: "look", toolInput: "{", cause: new Error("x") });
     throw new Error("the tool failed", { cause });`,
    failed(/^the tool failed$/),
  ],
  "lets such an error float": [
    `${ASK} Promise.reject(new ai.NoSuchToolError({ toolName: "fly" }));`,
    failed(/unavailable tool 'fly'/),
  ],
  "throws an error of its own": [`${ASK} JSON.parse("{");`, broken(/JSON/)],
  "gives the SDK a prompt that is none": [
    `${ASK} await ai.generateText({ model, messages: [{ role: "nobody" }] });`,
    broken(/[Ii]nvalid prompt|messages/),
  ],
  "blames another model": [
    `${ASK} throw new ai.NoObjectGeneratedError({ message: "the judge is mute", response: { modelId: "judge" } });`,
    broken(/^the judge is mute$/),
  ],
};

/** The same with programs that take longer than they may. */
const slow: typeof programs = {
  "asks once": [ASK, solved],
  "never returns": [`${ASK} await new Promise(() => {});`, broken(/episodeSeconds, 6 s,/)],
  "wakes up again and again, and never asks": [
    `${ASK} for (;;) { ${wait(20)} }`,
    broken(/episodeSeconds, 6 s,/),
  ],
  "never asks": [wait(1_000_000), broken(/episodeSeconds, 6 s,/)],
};

describe("an ordinary agent can neither hang nor end a run: it breaks its own episode", () => {
  describe.each([
    ["one program among others", programs, 600],
    ["a program that takes too long", slow, SHORT_SECONDS],
  ])("%s", (name, own, seconds) => {
    let ended: Ended;
    let episodes: readonly Episode[];
    beforeAll(async () => {
      const cases = Object.entries(own).map(
        ([id, [program]]) => `case ${JSON.stringify(id)}: { ${program} return; }`,
      );
      const tasks = Object.keys(own);
      const module = agent(`switch (task.id) { ${cases.join("\n")} }`, tasks);
      ended = await trained(name, module, { groups: tasks.length, seconds });
      episodes = [...openRun(ended.run, () => undefined).episodes()];
    }, PATIENCE_MS);

    it.each(Object.entries(own))("%s", (id, [, { error, ...expected }]) => {
      const attempts = episodes.filter(({ task }) => task.id === `train/${id}`);
      expect(attempts, ended.said).toHaveLength(2);
      for (const episode of attempts) {
        expect(episode, episode.error).toMatchObject(expected);
        if (error === undefined) expect(episode).not.toHaveProperty("error");
        else expect(episode.error).toMatch(error);
      }
    });

    it("the run ends by itself, and the other episodes are learnt from", () => {
      expect(ended.code, ended.said).toBe(0);
      expect(readManifest(ended.run).status).toBe("done");
      const [line] = readFileSync(join(ended.run, "metrics.jsonl"), "utf8")
        .trim()
        .split("\n")
        .slice(-1);
      const metrics = JSON.parse(line!) as Record<string, number>;
      const lost = Object.values(own).filter(([, { stop }]) => stop === "broken").length;
      expect(metrics["train.broken"]).toBe(2 * lost);
      // Those that failed, too: every token that they sampled.
      const sampled = episodes
        .filter(({ stop }) => stop !== "broken")
        .flatMap(({ steps }) => steps.flatMap(({ sequence }) => sequence!.spans))
        .filter(({ kind }) => kind === "action");
      expect(metrics["policy.tokens"]).toBe(
        sampled.reduce((sum, { start, end }) => sum + end - start, 0),
      );
      expect(ended.said).not.toContain("Node.js v");
    });
  });

  describe.concurrent("the only program", () => {
    it.each([
      ["SIGINT", "that never returns", `console.log("here"); await new Promise(() => {});`],
      ["SIGTERM", "that never returns", `console.log("here"); await new Promise(() => {});`],
      [
        "SIGINT",
        "that catches whatever ends its calls",
        `console.log("here"); ${forEver("await ai.generateText({ model, prompt: 'go', abortSignal: signal });")}`,
      ],
    ] as const)(
      "%s ends a program %s",
      async (signal, what, program) => {
        let isSent = false;
        const { code, said, run } = await trained(
          `${signal} ${what.replaceAll(" ", "-")}`,
          agent(program, ["only"], 1_000_000),
          {
            onSay(text, child) {
              if (isSent || !text.includes("here")) return;
              isSent = true;
              child.kill(signal);
            },
          },
        );
        expect(code, said).toBe(130);
        expect(readManifest(run).status).toBe("interrupted");
      },
      PATIENCE_MS,
    );

    it.each([
      [
        "while they are played",
        `let begin;
         new Promise((resolve) => { begin = resolve; }).then(() => { throw new Error("from nowhere"); });
         ${agent(`begin(); ${ASK} await new Promise(() => {});`)}`,
      ],
      [
        "before the first",
        `setTimeout(() => { throw new Error("from nowhere"); }, 1);\n${agent(ASK)}`,
      ],
    ])(
      "an error that belongs to no episode ends the run with a sentence and a final status, %s",
      async (when, module) => {
        const { code, said, run } = await trained(`nowhere ${when}`.replaceAll(" ", "-"), module);
        expect(code, said).toBe(1);
        expect(said).toContain("outside of all episodes, and nobody caught it: from nowhere (at ");
        expect(said).not.toContain("Node.js v");
        expect(readManifest(run)).toMatchObject({
          status: "failed",
          error: expect.stringContaining("from nowhere"),
        });
      },
      PATIENCE_MS,
    );
  });
});
