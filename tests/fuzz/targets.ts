/** What is fuzzed: readers of files and messages that others write, each with good inputs to start from. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseCompletionRequest } from "@pawl/agents/endpoint/completion-request.js";
import { refusalOf } from "@pawl/agents/endpoint/refusal.js";
import { readConfigFile } from "@pawl/core/config/config-file.js";
import { parseFlags, resolveConfig } from "@pawl/core/config/resolve.js";
import { settingsOf } from "@pawl/core/config/settings.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { findEnvKind } from "@pawl/core/envs/registry.js";
import { replayFile } from "@pawl/core/envs/replay.js";
import { UserError } from "@pawl/core/errors.js";
import { ExpressionError } from "@pawl/core/objectives/expression.js";
import { parseObjective } from "@pawl/core/objectives/expression-parse.js";
import { checkRun } from "@pawl/core/runs/check-run.js";
import { openRecordWriter, readRecords } from "@pawl/core/runs/record-file.js";
import { createRun, openRun } from "@pawl/core/runs/run-folder.js";
import { createTokenizer } from "@pawl/core/text/tokenizer.js";
import { buildTokenizer } from "@pawl/core/text/tokenizer-builder.js";
import { parseAnswer, parseCall } from "@pawl/core/text/tool-calls.js";
import { numbersOf, tensorSchema } from "@pawl/engine-remote/remote/wire.js";
import { ggufConfig } from "@pawl/models/gguf/gguf-config.js";
import { openGguf } from "@pawl/models/gguf/gguf-file.js";
import { ggufBytes, tinyModel } from "@pawl/models/gguf/gguf-testing.js";
import { ggufTokenizer } from "@pawl/models/gguf/gguf-tokenizer.js";
import { parseIndex } from "@pawl/models/weights/checkpoint.js";
import { parseModelConfig } from "@pawl/models/weights/config-json.js";
import { openSafetensors, readTensor } from "@pawl/models/weights/safetensors.js";
import { trainConfig } from "@pawl/training/config.js";
import { readDataSets } from "@pawl/worldmodel/dataset.js";
import { importChat } from "@pawl/worldmodel/sharegpt.js";
import { createProblems } from "@pawl/worldmodel/trajectory.js";
import { shedGame } from "@pawl/worlds/alfworld/fixtures/shed.js";
import { parseGame } from "@pawl/worlds/alfworld/game.js";
import { openCorpus } from "@pawl/worlds/retrieval/corpus.js";
import { put, type Target, text } from "./target.js";
import { wireTargets } from "./wire-targets.js";
import { worldTargets } from "./world-targets.js";

/** JSON, or nothing to read. */
function json(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    throw new UserError("not JSON");
  }
}

const schema = trainConfig(findEnvKind("household"));
const settings = {
  groups: 2,
  env: { name: "household", rooms: 1 },
  objective: { kl: 0.1 },
  updates: 3,
};
const chat = [
  {
    conversations: [
      { from: "human", value: "You are in a room. Your task is to: look.\nAction: look" },
      { from: "gpt", value: "You see a lamp." },
    ],
    system: "be a world",
  },
];
const ignore = (): void => undefined;
const step = {
  prompt: [],
  response: "look",
  action: "look",
  observation: "a lamp",
  valid: true,
  wellFormed: true,
  reward: 0,
};
const episode = {
  task: { id: "train/0", type: "pick" },
  ...{ group: 0, attempt: 0, seed: 1, policy: "expert", goal: "look", firstObservation: "a room" },
  ...{ steps: [step, step], return: 1, success: true, stop: "done" },
};

/** A small run as it is on disk. */
function runIn(folder: string): string {
  const path = join(folder, "run");
  rmSync(path, { recursive: true, force: true });
  const run = createRun({ folder: path, kind: "rollout", seed: 0, config: settings }, ignore);
  for (let group = 0; group < 3; group++) run.recordEpisodes([{ ...episode, group } as never]);
  run.recordMetrics({ update: 0, "train.return": 1 });
  run.finish("done");
  return path;
}

const fileOfRun = (name: string): (() => readonly Buffer[]) => {
  return () => {
    const folder = mkdtempSync(join(tmpdir(), "pawl-fuzz-"));
    try {
      return [readFileSync(join(runIn(folder), name))];
    } finally {
      rmSync(folder, { recursive: true });
    }
  };
};

/** Reads a run in which one file is damaged. */
const runWith =
  (name: string) =>
  (bytes: Buffer, folder: string): void => {
    const run = runIn(folder);
    put(run, name, bytes);
    const opened = openRun(run, ignore);
    opened.metrics();
    for (const _ of opened.episodes());
    checkRun(run);
  };

/** Damage never costs the records around it, and never keeps a file from being written to. */
function records(bytes: Buffer, folder: string): void {
  const path = put(folder, "records.gz", bytes);
  const before = [...readRecords(path, ignore)].length;
  const writer = openRecordWriter(path, ignore);
  writer.append([{ last: true }]);
  writer.close();
  const problems: string[] = [];
  const after = [...readRecords(path, ({ message }) => problems.push(message))];
  if (after.length !== before + 1 || problems.length > 0)
    throw new Error(`${before} records became ${after.length}: ${problems.join("; ")}`);
}

const tokenizer = () => buildTokenizer(["look at the lamp 1", "take the mug 2 from the desk 1"]);

/** All targets by name. */
export const targets: Readonly<Record<string, Target>> = {
  ...wireTargets,
  "config-files": {
    inputs: () => text(settings, "groups: 2\nenv:\n  name: household\n# note\nlist: [1, 2]\n"),
    async run(bytes, folder) {
      const name = bytes.length % 2 === 0 ? "c.yaml" : "c.json";
      const content = await readConfigFile(put(folder, name, bytes));
      resolveConfig(schema, { layers: [{ path: name, content }], flags: [] });
    },
  },
  "command-lines": {
    inputs: () =>
      text("--groups\0 2\0--env\0household", "--no-quick\0--objective.kl=1\0x", "--env.rooms\0-1"),
    run(bytes) {
      const { flags } = parseFlags(bytes.toString().split("\0"), settingsOf(schema));
      resolveConfig(schema, { layers: [], flags });
    },
  },
  records: { inputs: fileOfRun("episodes.jsonl.gz"), run: records },
  "run-episodes": { inputs: fileOfRun("episodes.jsonl.gz"), run: runWith("episodes.jsonl.gz") },
  "run-manifest": { inputs: fileOfRun("manifest.json"), run: runWith("manifest.json") },
  "run-metrics": { inputs: fileOfRun("metrics.jsonl"), run: runWith("metrics.jsonl") },
  traces: {
    inputs: () =>
      text(
        `${JSON.stringify({ task: "train/0", seed: 0, steps: [{ action: "look", observation: "x" }] })}\n`,
      ),
    run: (bytes, folder) =>
      replayFile(openEnvironment({ name: "household" }), put(folder, "traces.jsonl", bytes)),
  },
  "chat-files": {
    inputs: () =>
      text(chat, `${JSON.stringify(chat[0])}\n`, [{ messages: [{ role: "user", content: "x" }] }]),
    run: (bytes) => importChat(bytes.toString(), "chat.json", createProblems()),
  },
  "data-sets": {
    inputs: () =>
      text(`${JSON.stringify({ env: "household", task: "train/0", goal: "look", steps: [] })}\n`),
    run: (bytes, folder) => readDataSets([put(folder, "data.jsonl", bytes)], createProblems()),
  },
  corpora: {
    inputs: () => text('{"id": "1", "contents": "Oak\\nA tree."}\n{"id": 2, "contents": "Lamp"}\n'),
    run(bytes, folder) {
      openCorpus(put(folder, "corpus.jsonl", bytes));
    },
  },
  "alfworld-games": {
    inputs: () => text(shedGame()),
    run: (bytes) => parseGame("game.tw-pddl", bytes.toString()),
  },
  ...worldTargets,
  tokenizers: {
    inputs: () => text(tokenizer().files.tokenizer),
    run(bytes) {
      const made = createTokenizer({ tokenizer: bytes.toString() });
      made.decode(made.encode("take the mug 2").slice(0, 100));
    },
  },
  safetensors: {
    inputs() {
      const header = Buffer.from(
        JSON.stringify({ a: { dtype: "F32", shape: [2, 2], data_offsets: [0, 16] } }),
      );
      const length = Buffer.alloc(8);
      length.writeUInt32LE(header.length);
      return [Buffer.concat([length, header, Buffer.alloc(16)])];
    },
    async run(bytes, folder) {
      const file = await openSafetensors(put(folder, "model.safetensors", bytes));
      for (const name of file.tensors.keys()) await readTensor(file, name);
    },
  },
  gguf: {
    inputs() {
      const { metadata, tensors } = tinyModel() as unknown as { metadata: never; tensors: never };
      return [ggufBytes(metadata, tensors)];
    },
    run(bytes, folder) {
      const file = openGguf(put(folder, "model.gguf", bytes));
      ggufConfig(file, undefined);
      ggufTokenizer(file);
    },
  },
  "model-configs": {
    inputs: () =>
      text({
        architectures: ["LlamaForCausalLM"],
        hidden_size: 16,
        num_hidden_layers: 2,
        num_attention_heads: 4,
        vocab_size: 40,
        intermediate_size: 24,
        max_position_embeddings: 64,
      }),
    run: (bytes) => parseModelConfig(json(bytes), "config.json"),
  },
  "weight-indexes": {
    inputs: () => text({ weight_map: { a: "model-1.safetensors" } }),
    run: (bytes) => parseIndex(bytes.toString(), "index"),
  },
  expressions: {
    inputs: () =>
      text({
        loss: { op: "mul", x: { op: "input", name: "a" }, y: { op: "exp", x: { op: "logprob" } } },
        metrics: { kl: { op: "const", value: 1 } },
      }),
    run(bytes) {
      try {
        parseObjective(json(bytes));
      } catch (error) {
        // What a caller turns into its own words.
        if (!(error instanceof ExpressionError)) throw error;
      }
    },
  },
  "chat-requests": {
    inputs: () =>
      text({
        model: "m",
        messages: [{ role: "user", content: "hi" }],
        tools: [{ type: "function", function: { name: "f", parameters: {} } }],
        stream: true,
        temperature: 1,
      }),
    run(bytes) {
      try {
        parseCompletionRequest(json(bytes));
      } catch (error) {
        // What a server says to a client.
        if (refusalOf(error) === undefined) throw error;
      }
    },
  },
  "engine-answers": {
    inputs: () =>
      text(
        { data: [1, 2.5], dtype: "float32", shape: [2] },
        { base64: "AACAPw==", dtype: "float32", shape: [1] },
      ),
    run(bytes) {
      const parsed = tensorSchema.safeParse(json(bytes));
      if (parsed.success) numbersOf(parsed.data);
    },
  },
  "tool-calls": {
    inputs: () =>
      text(
        '<think>x</think><tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>',
        '{"name": "f", "parameters": {}}',
      ),
    run(bytes) {
      for (const form of ["hermes", "llama3"] as const) {
        parseAnswer(bytes.toString(), form as never);
        parseCall(bytes.toString(), form as never, []);
      }
    },
  },
};
