/**
 * Seconds of a whole PaW update with the paper's ALFWorld settings: 128 episodes whose worlds run
 * in this process, a model on an engine server, and HTTP between them.
 *
 *   PAWL_PYTHON=… ALFWORLD_DATA=… npm run bench -- update --model FOLDER [--max-tokens 100] \
 *     [--step-limit 50]
 *
 * FOLDER has config.json and the tokenizer files. Without weights the model is random, which is
 * enough to measure speed: no episode ends before the step limit, and each response has the maximum
 * length.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import paper from "../recipes/paper-alfworld.js";
import { runChild } from "../src/bench/child.js";
import { findTorchPython, startTorchServer } from "../src/cli/torch-server.js";
import { readMetrics } from "../src/runs/metrics-file.js";
import { packageFolder } from "../src/version.js";

const PHASES = ["rollout", "score", "prepare", "measure", "learn"] as const;

/**
 * Runs two updates on one server: a short one that compiles everything, and the one that counts.
 */
export async function main(args: readonly string[]): Promise<Readonly<Record<string, number>>> {
  const { values: options } = parseArgs({
    args: [...args],
    options: {
      model: { type: "string" },
      groups: { type: "string", default: "16" },
      "step-limit": { type: "string", default: "50" },
      "max-tokens": { type: "string", default: "100" },
    },
  });
  if (options.model === undefined)
    throw new Error("expected --model FOLDER, with config.json and a tokenizer");
  const python = await findTorchPython(process.env);
  const folder = mkdtempSync(join(tmpdir(), "pawl-update-"));
  const model = join(folder, "model");
  copyModel(options.model, model);
  const place = { checkpoints: join(folder, "checkpoints"), host: "127.0.0.1", port: 0 };
  const server = await startTorchServer(python, { model, nproc: 1, ...place }, process.env, say);
  const update = async (name: string, steps: string): Promise<Readonly<Record<string, number>>> => {
    const out = join(folder, name);
    const flags = {
      config: join(packageFolder(), "recipes", "paper-alfworld.ts"),
      engine: server.url,
      "model.start": "served",
      // The second is never the last: after its last update a run saves the model, which would take
      // long here.
      updates: "2",
      "checkpoint-every": "2",
      groups: options.groups,
      "step-limit": steps,
      "max-tokens": options["max-tokens"],
      "evaluation.every": "0",
      out,
    };
    const stopped = new AbortController();
    const run = runChild(["train", ...Object.entries(flags).flatMap(([k, v]) => [`--${k}`, v])], {
      program: join(packageFolder(), "dist", "lib", "main.js"),
      signal: stopped.signal,
      onLine: (line) => {
        say(line);
        if (line.includes("update 1/2")) stopped.abort();
      },
    });
    await run.catch((error: unknown) => {
      if (!stopped.signal.aborted) throw error;
    });
    const line = readMetrics(join(out, "metrics.jsonl"), say).at(-1)!;
    say(JSON.stringify(line));
    return line;
  };
  try {
    await update("warm-up", "3");
    const line = await update("update", options["step-limit"]);
    const seconds = PHASES.map((phase) => [phase, line[`seconds.${phase}`]!] as const);
    return {
      update_s: rounded(seconds.reduce((sum, [, time]) => sum + time, 0)),
      ...Object.fromEntries(seconds.map(([phase, time]) => [`update_${phase}_s`, rounded(time)])),
      update_episodes: paper.groupSize * Number(options.groups),
      update_steps_per_episode: line["train.steps"]!,
      update_response_tokens: line["train.responseTokens"]!,
      update_tokens: line["train.tokens"]!,
      update_mismatch_mean: line["mismatch.mean"]!,
    };
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const say = (line: string): void => void process.stderr.write(`${line}\n`);
const rounded = (value: number): number => Number(value.toFixed(1));

/**
 * Copies a model folder and gives every id a text. Qwen's output matrix has more rows than its
 * tokenizer has tokens; a trained model never samples those, but one with random weights does.
 */
function copyModel(from: string, to: string): void {
  cpSync(from, to, { recursive: true });
  const { vocab_size: size } = JSON.parse(readFileSync(join(to, "config.json"), "utf8"));
  const file = join(to, "tokenizer.json");
  const tokenizer = JSON.parse(readFileSync(file, "utf8"));
  const known = new Set<number>([
    ...Object.values<number>(tokenizer.model.vocab),
    ...tokenizer.added_tokens.map(({ id }: { id: number }) => id),
  ]);
  for (let id = 0; id < size; id++) {
    if (known.has(id)) continue;
    const never = { single_word: false, lstrip: false, rstrip: false, normalized: false };
    tokenizer.added_tokens.push({ id, content: `<|unused ${id}|>`, special: true, ...never });
  }
  writeFileSync(file, JSON.stringify(tokenizer));
}
