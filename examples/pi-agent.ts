/**
 * A coding agent from npm, unchanged: pi (MIT) is pointed at the model by its own settings, works in
 * a folder of its own, and is rewarded by the task's test.
 *
 *     npm install --prefix pi --ignore-scripts @mariozechner/pi-coding-agent@0.73.1
 *     PI=pi npx pawl train --agent examples/pi-agent.ts --model.start MODEL
 *
 * What the model writes is written and run as you: train it in a container.
 */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { defineAgent, sessionEndpoint } from "pawl";

const run = promisify(execFile);

interface Coding {
  readonly id: string;
  /** The function to write in a file of this name, in words, and what must hold. */
  readonly asks: string;
  readonly test: string;
}

const tasks: readonly Coding[] = [
  { id: "add", asks: "add(a, b) returns the sum", test: "add(2, 3) === 5" },
  { id: "double", asks: "double(n) returns twice n", test: "double(4) === 8" },
  { id: "first", asks: "first(list) returns its first entry", test: "first([7, 8]) === 7" },
  { id: "shout", asks: "shout(text) returns it in upper case", test: "shout('a') === 'A'" },
  { id: "even", asks: "even(n) says whether n is even", test: "even(2) && !even(3)" },
];

/** What pi reads from its folder. */
const settings = (baseUrl: string, apiKey: string, model: string): string =>
  JSON.stringify({
    providers: {
      pawl: {
        ...{ baseUrl, apiKey, api: "openai-completions" },
        compat: { supportsDeveloperRole: false, supportsReasoningEffort: false },
        models: [{ id: model, contextWindow: 131_072, maxTokens: 4096 }],
      },
    },
  });

/** The tokens that pi was told it received: every answer of the model says how many it has. */
const tokensIn = (events: string): number =>
  events
    .split("\n")
    .filter((line) => line.startsWith('{"type":"message_end"'))
    .map((line) => JSON.parse(line).message.usage?.output ?? 0)
    .reduce((sum: number, tokens: number) => sum + tokens, 0);

export default defineAgent({
  name: "pi",
  tasks: { train: tasks.slice(0, 4), test: tasks.slice(4) },
  callLimit: 4,
  async run({ id, asks, test }: Coding, { session }, signal) {
    const folder = await mkdtemp(join(tmpdir(), "pi-"));
    const { baseURL, apiKey, model, close } = await sessionEndpoint(session, signal);
    try {
      await writeFile(join(folder, "models.json"), settings(baseURL, apiKey, model));
      const cli = "node_modules/@mariozechner/pi-coding-agent/dist/cli.js";
      const flags = "--offline --no-session -ne -ns -np -nc --no-themes --mode json -t write";
      const prompt = `Write ${id}.js, a CommonJS module that exports one function: ${asks}.`;
      const running = run(
        process.execPath,
        [
          ...[resolve(process.env.PI ?? "pi", cli), ...flags.split(" ")],
          ...["--provider", "pawl", "--model", model, "-p", prompt],
        ],
        { cwd: folder, signal, env: { ...process.env, PI_CODING_AGENT_DIR: folder } },
      );
      // It reads what is piped to it before it begins.
      running.child.stdin?.end();
      const { stdout } = await running.catch(({ stdout = "" }: { stdout?: string }) => ({
        stdout,
      }));
      signal.throwIfAborted();
      const code = await readFile(join(folder, `${id}.js`), "utf8").catch(() => undefined);
      const check = `const ${id} = require("./${id}.js"); process.exit(${test} ? 0 : 1)`;
      const passes = await run(process.execPath, ["-e", check], { cwd: folder, timeout: 10_000 })
        .then(() => true)
        .catch(() => false);
      return { tokens: tokensIn(stdout), code, passes };
    } finally {
      close();
      await rm(folder, { recursive: true, force: true });
    }
  },
  reward({ result, calls }) {
    const { code, passes } = result as { readonly code?: string; readonly passes: boolean };
    if (passes) return { reward: 1, why: "the test passes" };
    if (code !== undefined) return { reward: 0.5, why: "the file is there, its test fails" };
    const called = calls.some(({ answer }) => answer.calls.length > 0);
    return called
      ? { reward: 0.2, why: "a tool was called, no file is there" }
      : { reward: 0, why: "no tool was called" };
  },
});
