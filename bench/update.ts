/**
 * Seconds of a whole PaW update with the paper's ALFWorld settings: 128 episodes whose worlds run
 * in this process, a model on an engine server, and HTTP between them.
 *
 *   PAWL_PYTHON=… ALFWORLD_DATA=… npm run bench -- update --model FOLDER [--max-tokens 100] \
 *     [--step-limit 50] [--modes acting,after,overlap]
 *
 * Modes are measured one after another. The reference scores while the policy acts and nothing is
 * sampled (`acting`, the default), or after acting (`after`); or a second server on the same GPU acts
 * for the next update meanwhile (`overlap`: the second update of a run, by the clock; NVIDIA's MPS lets
 * both servers compute at the same time). The first mode's fields are `update_…`, those of the others
 * `update_MODE_…`. `update_score_s` is what is left of scoring when acting is over. With fewer than
 * the recipe's 50 steps, `update_of_50_steps_s` extrapolates: all
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
import { type MetricsLine, readMetrics } from "@pawl/core/runs/metrics-file.js";
import { packageFolder } from "@pawl/core/version.js";
import { findTorchPython, startTorchServer } from "@pawl/pawl/cli/torch-server.js";
import { runChild } from "@pawl/studies/child.js";
import paper from "../recipes/paper-alfworld.js";

const PHASES = ["rollout", "score", "prepare", "learn"] as const;
/** Flags of the run, and which of its updates counts. */
const MODES = {
  acting: { flags: {}, counts: 0 },
  after: { flags: { "score-while-acting": "false" }, counts: 0 },
  overlap: { flags: { overlap: "1" }, counts: 1 },
} as const;
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

  /** The metrics of the update that counts, and its seconds by the clock, if another came before. */
  const update = async (servers: Servers, name: string, mode: Mode, steps: string) => {
    const out = join(folder, name);
    const { flags: own, counts } = MODES[mode];
    const updates = counts + 3;
    const flags = {
      config: join(packageFolder(), "recipes", "paper-alfworld.ts"),
      engine: servers.engine,
      ...(mode === "overlap" && { "engine.sampler": servers.sampler! }),
      "model.start": "served",
      // Neither the one that counts nor the one that is stopped is the last: after its last update a
      // run saves the model, which would take long here.
      updates: String(updates),
      "checkpoint-every": String(updates),
      groups: options.groups,
      "step-limit": steps,
      "max-tokens": options["max-tokens"],
      "evaluation.every": "0",
      // Measured at the first update and every tenth: most updates have none.
      "gradients.every": "0",
      ...own,
      out,
    };
    const stopped = new AbortController();
    const ended: number[] = [];
    const run = runChild(["train", ...Object.entries(flags).map(([k, v]) => `--${k}=${v}`)], {
      program: join(packageFolder(), "dist", "lib", "main.js"),
      signal: stopped.signal,
      onLine: (line) => {
        say(line);
        const done = Number(/update (\d+)\/\d+ · reward/.exec(line)?.[1]);
        if (done > 0) ended.push(performance.now());
        if (done > counts) stopped.abort();
      },
    });
    await run.catch((error: unknown) => {
      if (!stopped.signal.aborted) throw error;
    });
    const line = readMetrics(join(out, "metrics.jsonl"), say).find(
      ({ update }) => update === counts,
    )!;
    say(JSON.stringify(line));
    // One more may have ended before the run was stopped.
    const before = ended[counts - 1];
    return before === undefined ? { line } : { line, seconds: (ended[counts]! - before) / 1000 };
  };

  try {
    const found = new Map<Mode, Measured>();
    const place = { checkpoints: join(folder, "checkpoints"), host: "127.0.0.1", port: 0 };
    const start = () => startTorchServer(python, { model, nproc: 1, ...place }, process.env, say);
    const started = [await start()];
    try {
      if (modes.includes("overlap")) started.push(await start());
      const [engine, sampler] = started.map(({ url }) => url);
      const servers = { engine: engine!, sampler };
      const kinds = new Set(modes.map((mode) => (mode === "overlap" ? mode : modes[0]!)));
      for (const mode of kinds) await update(servers, `warm-up-${mode}`, mode, "3");
      for (const mode of modes)
        found.set(mode, await update(servers, mode, mode, options["step-limit"]));
    } finally {
      await Promise.all(started.map((server) => server.stop()));
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

/** An engine server, and one that samples for it. */
interface Servers {
  readonly engine: string;
  readonly sampler: string | undefined;
}

/** An update, and its seconds by the clock, if there was one before it. */
interface Measured {
  readonly line: MetricsLine;
  readonly seconds?: number;
}

/** What is reported of an update. */
function fieldsOf(
  { line, seconds: whole }: Measured,
  prefix: string,
): Readonly<Record<string, number>> {
  const seconds = PHASES.map((phase) => [phase, line[`seconds.${phase}`]!] as const);
  const all = whole ?? seconds.reduce((sum, [, time]) => sum + time, 0);
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
    ...(line["pace.overlapped"] !== undefined && {
      [`${prefix}_overlapped_s`]: rounded(line["pace.overlapped"]),
    }),
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
