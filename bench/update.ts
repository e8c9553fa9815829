/**
 * Seconds of a whole PaW update with the paper's ALFWorld settings: 128 episodes whose worlds run
 * in this process, a model on an engine server, and HTTP between them.
 *
 *   PAWL_PYTHON=… ALFWORLD_DATA=… npm run bench -- update --model FOLDER [--max-tokens 100] \
 *     [--step-limit 50] [--modes acting,after]
 *
 * Modes say when the reference scores, and are measured one after another: while the policy acts and
 * nothing is sampled (`acting`, the default), or after acting (`after`). The first mode's fields are
 * `update_…`, those of the other `update_MODE_…`. `update_score_s` is what is left of scoring when
 * acting is over. With fewer than the recipe's 50 steps, `update_of_50_steps_s` extrapolates: all
 * seconds times 50 / steps, for every phase grows with the steps.
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
import { type MetricsLine, readMetrics } from "../src/runs/metrics-file.js";
import { packageFolder } from "../src/version.js";

const PHASES = ["rollout", "score", "prepare", "learn"] as const;
/** When the reference scores: flags of the run. */
const MODES = { acting: {}, after: { "score-while-acting": "false" } } as const;
type Mode = keyof typeof MODES;

/**
 * Runs updates on a server: a short one that compiles everything, and one that counts for each mode.
 */
export async function main(args: readonly string[]): Promise<Readonly<Record<string, number>>> {
  const { values: options } = parseArgs({
    args: [...args],
    options: {
      model: { type: "string" },
      groups: { type: "string", default: "16" },
      "step-limit": { type: "string", default: "50" },
      "max-tokens": { type: "string", default: "100" },
      modes: { type: "string", default: "acting" },
    },
  });
  if (options.model === undefined)
    throw new Error("expected --model FOLDER, with config.json and a tokenizer");
  const modes = options.modes.split(",").map(modeOf);
  const python = await findTorchPython(process.env);
  const folder = mkdtempSync(join(tmpdir(), "pawl-update-"));
  const model = join(folder, "model");
  copyModel(options.model, model);

  /** The metrics of one update. */
  const update = async (url: string, name: string, mode: Mode, steps: string) => {
    const out = join(folder, name);
    const flags = {
      config: join(packageFolder(), "recipes", "paper-alfworld.ts"),
      engine: url,
      "model.start": "served",
      // The second is never the last: after its last update a run saves the model, which would take
      // long here.
      updates: "2",
      "checkpoint-every": "2",
      groups: options.groups,
      "step-limit": steps,
      "max-tokens": options["max-tokens"],
      "evaluation.every": "0",
      // Measured at the first update and every tenth: most updates have none.
      "gradients.every": "0",
      ...MODES[mode],
      out,
    };
    const stopped = new AbortController();
    const run = runChild(["train", ...Object.entries(flags).map(([k, v]) => `--${k}=${v}`)], {
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
    const found = new Map<Mode, MetricsLine>();
    const place = { checkpoints: join(folder, "checkpoints"), host: "127.0.0.1", port: 0 };
    const server = await startTorchServer(python, { model, nproc: 1, ...place }, process.env, say);
    try {
      await update(server.url, "warm-up", modes[0]!, "3");
      for (const mode of modes)
        found.set(mode, await update(server.url, mode, mode, options["step-limit"]));
    } finally {
      await server.stop();
    }
    const episodes = paper.groupSize * Number(options.groups);
    const fields = modes.map((mode, i) =>
      fieldsOf(found.get(mode)!, i === 0 ? "update" : `update_${mode}`),
    );
    return Object.assign({ update_episodes: episodes }, ...fields);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function modeOf(name: string): Mode {
  if (!Object.hasOwn(MODES, name))
    throw new Error(`--modes: expected some of ${Object.keys(MODES).join(", ")}, found "${name}"`);
  return name as Mode;
}

/** What is reported of an update. */
function fieldsOf(line: MetricsLine, prefix: string): Readonly<Record<string, number>> {
  const seconds = PHASES.map((phase) => [phase, line[`seconds.${phase}`]!] as const);
  const all = seconds.reduce((sum, [, time]) => sum + time, 0);
  const steps = line["train.steps"]!;
  return {
    [`${prefix}_s`]: rounded(all),
    ...Object.fromEntries(seconds.map(([phase, time]) => [`${prefix}_${phase}_s`, rounded(time)])),
    [`${prefix}_of_${paper.stepLimit}_steps_s`]: rounded((all * paper.stepLimit) / steps),
    [`${prefix}_steps_per_episode`]: steps,
    [`${prefix}_response_tokens`]: line["train.responseTokens"]!,
    [`${prefix}_tokens`]: line["train.tokens"]!,
    [`${prefix}_mismatch_mean`]: line["mismatch.mean"]!,
    [`${prefix}_kl`]: line["policy.kl"] ?? 0,
    // The share of the actions that the reference had scored when acting was over.
    ...(line["pace.scored"] !== undefined && { [`${prefix}_scored`]: line["pace.scored"] }),
  };
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
