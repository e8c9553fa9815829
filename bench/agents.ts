/**
 * Many agents at once, compared with the same work through the engine directly.
 *
 *   npm run build && npm run bench -- agents [--sessions 128] [--turns 10] [--repetitions 5] [--masks]
 *
 * Every agent holds a conversation of its own with the tiny model: a message of 12 words, an answer
 * of up to 32 tokens, and so on. The agents do not wait for each other. The same prompts are then
 * given to the engine directly, a turn of all conversations at a time, which is the best that it can
 * do: no HTTP, no chat template, nothing to wait for. Rounds are interleaved and medians compared.
 *
 *   serve_ratio   against `pawl serve model` in a process of its own; its clients run here
 *   sdk_ratio     against the AI SDK's `generateText` in this process
 *
 * With `--masks`, every answer is held to a schema, here and there.
 *
 * `processor` ratios compare the seconds of processors instead, with those of the clients: other
 * work on the machine distorts them less.
 *
 * Every answer is checked: its session must have recorded it in its place, after what this agent
 * said, and its log-probabilities must be those that the engine gives to this conversation.
 * `same_answers` is the share that is equal to the engine's own; rounding may change a few, because
 * batches differ.
 */
import "@pawl/models/no-telemetry.js";
import { strict as assert } from "node:assert";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual, parseArgs } from "node:util";
import { pawlModel } from "@pawl/agents/ai-sdk-model.js";
import type { CallRecord, SessionRecord } from "@pawl/agents/endpoint/session-record.js";
import { createSession } from "@pawl/agents/session.js";
import { vocabularyOf } from "@pawl/core/constraint/vocabulary.js";
import type { Engine, SampleRequest } from "@pawl/core/engine/engine.js";
import { createScheduler } from "@pawl/core/rollout/scheduler.js";
import type { Constraint } from "@pawl/core/text/constraint.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import { buildTokenizer } from "@pawl/core/text/tokenizer-builder.js";
import { createEmbeddedEngine } from "@pawl/engine-cpu/embedded-engine.js";
import { generateText, type ModelMessage, wrapLanguageModel } from "ai";
import { interleave, machine, median, THREADS } from "./peer/side.js";

const MAX_TOKENS = 32;
const MAX_CONTEXT = 1024;
const words = Array.from({ length: 160 }, (_, i) => `word${i}`);

/** What agent `i` says in a turn; no other agent says it, nor this one in another turn. */
function saying(i: number, turn: number): string {
  const pick = (at: number) => words[(i * 31 + turn * 7 + at * (1 + (i % 13))) % words.length]!;
  return `${i} ${turn} ${Array.from({ length: 10 }, (_, at) => pick(at)).join(" ")}`;
}
const seedOf = (i: number, turn: number): number => 1000 * i + turn;

/** What answers are held to with `--masks`. */
const schema = {
  type: "object",
  properties: { text: { type: "string" } },
  required: ["text"],
  additionalProperties: false,
} as const;
const constraint: Constraint = { json: schema };

/** One agent's conversation: what was read and sampled in each turn. */
type Turns = readonly Pick<CallRecord, "prompt_token_ids" | "token_ids" | "logprobs">[];

interface Work {
  readonly engine: Engine;
  readonly tokenizer: Tokenizer;
  readonly sessions: number;
  readonly turns: number;
  readonly masks: boolean;
}

/** `pawl serve model` in a process of its own. */
async function startServer(folder: string) {
  const cli = fileURLToPath(new URL("../dist/lib/main.js", import.meta.url));
  const args = ["serve", "model", folder, "--name", "tiny", "--port", "0"];
  const child = spawn(process.execPath, [cli, ...args, "--engine.threads", String(THREADS)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const line = await new Promise<string>((resolve, reject) => {
    child.stdout.setEncoding("utf8").once("data", resolve);
    child.on("exit", () => reject(new Error("pawl serve model ended; run npm run build first")));
  });
  return {
    url: /http:\S+(?=\/v1)/.exec(line)![0],
    /** Of all its threads, by the kernel's count of hundredths. */
    processorSeconds: () => {
      const fields = readFileSync(`/proc/${child.pid}/stat`, "utf8").split(") ")[1]!.split(" ");
      return (Number(fields[11]) + Number(fields[12])) / 100;
    },
    stop: async () => {
      child.kill("SIGTERM");
      await ended;
    },
  };
}

const agent = new Agent({ keepAlive: true });

/** Calls the server; a small client, because it shares the cores with the server. */
function ask<T>(method: string, url: string, body?: unknown): Promise<T> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json" };
    const asked = request(url, { method, agent, headers }, (reply) => {
      const chunks: Buffer[] = [];
      reply.on("data", (chunk: Buffer) => chunks.push(chunk));
      reply.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        if (reply.statusCode === 200) resolve(JSON.parse(text) as T);
        else reject(new Error(`${method} ${url}: ${reply.statusCode} ${text}`));
      });
    });
    asked.on("error", reject);
    asked.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

interface Completion {
  readonly choices: readonly [
    { readonly message: { readonly role: "assistant"; readonly content: string } },
  ];
}

/** Seconds in which all agents finish through the server; `keep` is told of every conversation. */
async function served(
  { sessions, turns, tokenizer, masks }: Work,
  url: string,
  round: number,
  keep: (i: number, turns: Turns) => void,
): Promise<number> {
  const response_format = { type: "json_schema", json_schema: { name: "text", schema } };
  const begin = performance.now();
  const heard = await Promise.all(
    Array.from({ length: sessions }, async (_, i) => {
      const messages: object[] = [];
      const answers: string[] = [];
      for (let turn = 0; turn < turns; turn++) {
        messages.push({ role: "user", content: saying(i, turn) });
        const { choices } = await ask<Completion>(
          "POST",
          `${url}/sessions/${round}-${i}/v1/chat/completions`,
          {
            ...{ model: "tiny", messages, max_tokens: MAX_TOKENS, seed: seedOf(i, turn) },
            ...(masks && { response_format }),
          },
        );
        messages.push(choices[0].message);
        answers.push(choices[0].message.content);
      }
      return answers;
    }),
  );
  const seconds = (performance.now() - begin) / 1000;
  for (const [i, answers] of heard.entries()) {
    const { calls } = await ask<SessionRecord>("DELETE", `${url}/sessions/${round}-${i}`);
    assert.deepEqual(
      calls.map(({ answer }) => answer.content),
      answers,
    );
    assert.deepEqual(
      calls.map(({ parent }) => parent),
      [null, ...Array(turns - 1).keys()],
    );
    calls.forEach(({ messages, prompt_token_ids: prompt }, turn) => {
      assert.equal(messages.at(-1)!.content, saying(i, turn));
      assert.ok(tokenizer.decode(prompt).includes(`<|user|>${saying(i, turn)}<|end|>`));
    });
    keep(i, calls);
  }
  return seconds;
}

/** Seconds in which all agents finish through the AI SDK. */
async function throughSdk({ engine, tokenizer, sessions, turns, masks }: Work): Promise<number> {
  const sampler = createScheduler(engine, { pace: "served" });
  const begin = performance.now();
  await Promise.all(
    Array.from({ length: sessions }, async (_, i) => {
      const sampling = { maxTokens: MAX_TOKENS };
      const options = { sampler, tokenizer, maxContext: MAX_CONTEXT, seed: i, sampling };
      const held = pawlModel(createSession({ ...options, constraints: masks }));
      // What is cut off would be an error of `Output.object`, so the model is asked for JSON itself.
      const model = masks
        ? wrapLanguageModel({
            model: held,
            middleware: {
              specificationVersion: "v3",
              transformParams: async ({ params }) => ({
                ...params,
                responseFormat: { type: "json", schema },
              }),
            },
          })
        : held;
      const messages: ModelMessage[] = [];
      for (let turn = 0; turn < turns; turn++) {
        messages.push({ role: "user", content: saying(i, turn) });
        const { response } = await generateText({ model, messages, seed: seedOf(i, turn) });
        messages.push(...response.messages);
      }
      assert.equal(held.session.calls.length, turns);
      held.session.calls.forEach(({ messages: said }, turn) => {
        assert.equal(said.at(-1)!.content, saying(i, turn));
      });
    }),
  );
  return (performance.now() - begin) / 1000;
}

/** Seconds that the engine needs for the same prompts; `keep` is told how many answers are equal. */
async function directly(
  { engine, tokenizer, turns, masks }: Work,
  conversations: readonly Turns[],
  keep: (same: number) => void,
): Promise<number> {
  const stop = tokenizer.endIds.map((id) => [id]);
  const begin = performance.now();
  const answers: (readonly number[])[][] = conversations.map(() => []);
  for (let turn = 0; turn < turns; turn++) {
    const requests = conversations.map((conversation, i): SampleRequest => {
      const { prompt_token_ids: prompt } = conversation[turn]!;
      const held = masks ? { constraint } : {};
      return {
        prompt,
        maxTokens: MAX_TOKENS,
        stop,
        continued: true,
        seed: seedOf(i, turn),
        ...held,
      };
    });
    for (const [i, [sample]] of (await engine.sample(requests)).entries())
      answers[i]!.push(sample!.tokens);
  }
  const seconds = (performance.now() - begin) / 1000;
  const same = conversations.flatMap((conversation, i) =>
    conversation.filter(({ token_ids: ids }, turn) => isDeepStrictEqual(ids, answers[i]![turn])),
  );
  keep(same.length / (turns * conversations.length));
  return seconds;
}

/** Whether the model gives every answer of these conversations the recorded log-probabilities. */
async function checkLogprobs(
  { engine, masks }: Work,
  conversations: readonly Turns[],
): Promise<void> {
  const scored = await engine.forward(
    conversations.map((turns) => {
      const { prompt_token_ids: prompt, token_ids: tokens } = turns.at(-1)!;
      const constraints = turns.map(({ prompt_token_ids: { length: start }, token_ids: ids }) => {
        return { start, end: start + ids.length, constraint };
      });
      return { ids: [...prompt, ...tokens], ...(masks && { constraints }) };
    }),
  );
  for (const [i, turns] of conversations.entries())
    for (const { prompt_token_ids: prompt, logprobs } of turns)
      for (const [at, logprob] of logprobs.entries())
        assert.ok(Math.abs(logprob - scored[i]!.logprobs[prompt.length + at]!) < 1e-4);
}

/** Runs everything. */
export async function main(args: readonly string[]): Promise<Record<string, number | string>> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      sessions: { type: "string", default: "128" },
      turns: { type: "string", default: "10" },
      repetitions: { type: "string", default: "5" },
      masks: { type: "boolean", default: false },
    },
  });
  const [sessions, turns] = [Number(values.sessions), Number(values.turns)];
  const load = loadavg()[0]!;
  const folder = mkdtempSync(join(tmpdir(), "pawl-bench-agents-"));
  const tokenizer = buildTokenizer([words.join(" "), [...Array(sessions).keys()].join(" ")], {
    chat: true,
  });
  const { vocabularySize } = tokenizer;
  const engine = await createEmbeddedEngine({
    model: { preset: "tiny", vocabularySize, maxContext: MAX_CONTEXT },
    threads: THREADS,
  });
  engine.useVocabulary?.(() => vocabularyOf(tokenizer));
  await engine.save(folder, { optimizer: false });
  await tokenizer.save(folder);
  const server = await startServer(folder);
  try {
    const work = { engine, tokenizer, sessions, turns, masks: values.masks };
    const conversations: Turns[] = [];
    const processor: Record<"served" | "direct" | "sdk", number[]> = {
      served: [],
      direct: [],
      sdk: [],
    };
    /** Notes the processor time of some work, here and in the server. */
    const timed = async (name: keyof typeof processor, run: () => Promise<number>) => {
      const [here, there] = [process.cpuUsage(), server.processorSeconds()];
      const seconds = await run();
      const { user, system } = process.cpuUsage(here);
      processor[name].push((user + system) / 1e6 + server.processorSeconds() - there);
      return seconds;
    };
    let [round, same] = [0, 1];
    const sides = {
      served: () =>
        served(work, server.url, round++, (i, heard) => {
          conversations[i] = heard;
        }),
      direct: () =>
        directly(work, conversations, (share) => {
          same = Math.min(same, share);
        }),
      sdk: () => throughSdk(work),
    };
    const seconds = await interleave(
      {
        served: () => timed("served", sides.served),
        direct: () => timed("direct", sides.direct),
        sdk: () => timed("sdk", sides.sdk),
      },
      Number(values.repetitions),
    );
    await checkLogprobs(work, conversations);
    const tokens = conversations.flat().reduce((sum, turn) => sum + turn.token_ids.length, 0);
    const digits = (x: number, count = 2) => Number(x.toFixed(count));
    // The first round warms up.
    const spent = (name: keyof typeof processor) => median(processor[name].slice(1));
    return {
      serve_ratio: digits(seconds.direct / seconds.served),
      sdk_ratio: digits(seconds.direct / seconds.sdk),
      serve_processor_ratio: digits(spent("direct") / spent("served")),
      sdk_processor_ratio: digits(spent("direct") / spent("sdk")),
      same_answers: digits(same, 4),
      sessions,
      turns,
      tokens,
      direct_tokens_per_s: Math.round(tokens / seconds.direct),
      served_tokens_per_s: Math.round(tokens / seconds.served),
      sdk_tokens_per_s: Math.round(tokens / seconds.sdk),
      machine: machine(),
      load: digits(load, 1),
      repetitions: Number(values.repetitions),
    };
  } finally {
    await server.stop();
    await engine.dispose();
    rmSync(folder, { recursive: true });
  }
}
