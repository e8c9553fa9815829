import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { createEndpoint } from "@pawl/agents/endpoint/server.js";
import type { SessionRecord } from "@pawl/agents/endpoint/session-record.js";
import { createSession } from "@pawl/agents/session.js";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { mixSeed } from "@pawl/core/random.js";
import { createScheduler } from "@pawl/core/rollout/scheduler.js";
import { engineChoice } from "@pawl/training/engines.js";
import type { OpenModel } from "@pawl/training/open-model.js";
import { z } from "zod";
import { type Call, defineCommand, exitCodes } from "./command.js";
import { type Io, print, warn } from "./io.js";
import { aborted, close, listen } from "./listen.js";
import { MODEL_NAMES, requireModel } from "./model-name.js";
import { openByName } from "./open-by-name.js";
import { host, KEY_VARIABLE, keyFile, port, serveKey } from "./serve-key.js";

const count = z.int().min(1);
const options = z.strictObject({
  host,
  port,
  name: z.string().min(1).optional().describe("model name that clients give (default: of MODEL)"),
  maxTokens: count.default(512).describe("maximum length of an answer in tokens"),
  temperature: z
    .number()
    .min(0)
    .default(1)
    .describe("sampling temperature if a request does not say (0: greedy)"),
  seed: z.int().min(0).default(0).describe("random seed"),
  keyFile,
  out: z.string().optional().describe("JSONL file to which sessions are appended when they end"),
  maxSessions: count.default(1024).describe("maximum number of open sessions"),
  maxCalls: count.default(1024).describe("maximum number of calls of a session"),
  maxRequests: count.default(512).describe("maximum number of calls answered at once"),
  idleMinutes: z
    .number()
    .positive()
    .max(10_000)
    .default(30)
    .describe("minutes after which an unused session ends"),
  engine: engineChoice,
});

type ServeOptions = z.output<typeof options>;

/** `pawl serve model`: a model behind OpenAI's API, with recorded sessions. */
export const serveModel = defineCommand({
  name: "serve model",
  summary: "serve a model to agents and other clients of OpenAI's API, and record sessions",
  positionals: "MODEL",
  details: `${MODEL_NAMES}\nClients use http://HOST:PORT/v1, or http://HOST:PORT/sessions/ID/v1 to be recorded. Beyond loopback, they must send\na key (docs/serve-model.md).`,
  options: () => options,
  examples: [
    ["pawl serve model runs/…", "a trained model at http://127.0.0.1:8000/v1"],
    ["pawl serve model SmolLM2.gguf --name gpt-4o", "for an agent whose model name is fixed"],
    ["pawl serve model runs/… --out sessions.jsonl", "keep what agents and the model said"],
    [
      `${KEY_VARIABLE}=… pawl serve model runs/… --host 0.0.0.0`,
      "reachable from other machines, with a key",
    ],
  ],
  async run(call) {
    const { config, positionals, io, signal } = call;
    const name = requireModel("serve model", positionals);
    const key = serveKey(config, io);
    const folder = mkdtempSync(join(tmpdir(), "pawl-serve-"));
    try {
      const model = await openByName(name, folder, config.engine, { io, signal });
      try {
        await serve(model, config.name ?? basename(resolve(name)), key, call);
      } finally {
        await model.engine.dispose();
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
    return exitCodes.done;
  },
});

async function serve(
  { engine, tokenizer }: OpenModel,
  name: string,
  key: string | undefined,
  { config, io, signal }: Call<ServeOptions>,
): Promise<void> {
  if (!tokenizer.hasChatTemplate)
    throw new ConfigError(
      `${name} has no chat template, so it cannot hold a conversation: serve an instruction-tuned model, or train one with --prompt.style chat`,
    );
  const { out, maxTokens, temperature, seed, maxSessions, maxCalls, maxRequests, idleMinutes } =
    config;
  const embedded = engine.capabilities.name === "embedded";
  const { maxContext, constraints } = engine.capabilities;
  // A server of its own batches what comes, and a slice would cost a round trip.
  const sampler = createScheduler(engine, {
    pace: "served",
    ...(!embedded && { sliceTokens: Number.POSITIVE_INFINITY }),
  });
  let answered = 0;
  const endpoint = createEndpoint({
    model: name,
    tokenizer,
    maxContext,
    key,
    limits: { maxSessions, maxRequests, idleMs: 60_000 * idleMinutes },
    createSession: (id, own) =>
      createSession({
        ...{ sampler, tokenizer, maxContext, constraints, sampling: { maxTokens, temperature } },
        callLimit: maxCalls,
        seed: own ?? (id === undefined ? mixSeed(seed, answered++) : mixSeed(seed, "session", id)),
      }),
    ...(out !== undefined && { onSession: (record) => append(out, record, io) }),
    onFault: (error) => warn(io, `a call failed: ${(error as Error).message}`),
  });
  const { host } = await listen(endpoint.server, config.port, config.host);
  print(io, `${name} at http://${host}/v1; Ctrl-C stops it`);
  await aborted(signal);
  endpoint.stop();
  await close(endpoint.server);
}

/** A disk that is full must not end the episodes of others. */
function append(file: string, record: SessionRecord, io: Io): void {
  try {
    appendFileSync(file, `${JSON.stringify(record)}\n`);
  } catch (error) {
    warn(io, `session ${record.id} could not be written: ${(error as Error).message}`);
  }
}
