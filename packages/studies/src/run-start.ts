/** The models that a setting's runs start from: a warm start, a given model, or RWML from either. */
import { cpSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { UserError } from "@pawl/core/errors.js";
import { writeError } from "@pawl/core/files/io-error.js";
import { isRemote } from "@pawl/training/engines.js";
import {
  findSavedModel,
  REFERENCE,
  type SavedModel,
  TOKENIZER,
} from "@pawl/training/saved-model.js";
import { type Claim, claim } from "./claim.js";
import type { Start } from "./matrix.js";
import {
  type EvaluationSize,
  type JobResult,
  readResult,
  trainingFolder,
  writeResult,
} from "./result-file.js";
import { evaluate, type JobOptions, onEngine, timed, train } from "./run-job.js";
import { MODEL, startWeights, weightFiles, weightsDigest } from "./start-weights.js";

/** How to make starts. */
export interface StartOptions extends JobOptions {
  /** A run or model to start from instead of a warm start. */
  readonly from?: string | undefined;
  readonly threads: number;
}

/** What a start's folder is for. */
export function startClaim({ folder, config, rwml }: Start, evaluation: EvaluationSize): Claim {
  if (rwml === undefined) return { folder, settings: config, evaluation };
  // The other settings are the warm start's.
  const { env: _, prompt: __, model: ___, engine: ____, evaluation: _____, ...own } = rwml;
  return { folder, settings: { ...config, rwml: own }, evaluation };
}

/** Refuses a --start that contradicts a start that is already there, or that cannot be one. */
export function checkGiven(starts: readonly Start[], from: string): void {
  const warm = starts.filter(({ rwml }) => rwml === undefined);
  const own = warm.find(({ name, folder }) => name !== "" && readResult(folder) === undefined);
  if (own !== undefined)
    throw new ConfigError(
      `--start: the arm ${own.name} needs a warm start of its own, which ${from} cannot give: leave out --start, or copy the folder ${own.folder} from where it was trained`,
    );
  const base = warm.filter(({ name }) => name === "");
  if (base.length > 1)
    throw new ConfigError(
      `--start: one model cannot be the start of ${base.length} settings (${base.map(({ setting }) => setting).join(", ")}); name one setting`,
    );
  const [start] = base;
  if (start === undefined || readResult(start.folder) === undefined) return;
  const began = startWeights(start.folder);
  if (began !== undefined && weightsDigest(findSavedModel(from).weights) !== began)
    throw new ConfigError(
      `--start: the runs in ${start.folder} began with other weights than ${from}: leave out --start, or choose another --out`,
    );
}

/** Makes a start, unless already done. */
export async function runStart(start: Start, options: StartOptions): Promise<JobResult> {
  const { folder, setting, name } = start;
  const { evaluation, threads } = options;
  claim(startClaim(start, evaluation));
  const done = readResult(folder);
  if (done !== undefined) return done;
  // The runs that start from it may be on other servers, so its weights are needed here.
  const placed = onEngine(start.config, await options.engine?.());
  const engine = { ...placed.engine, threads, copy: isRemote(placed.engine) };
  const config = { ...placed, engine };
  const model = join(folder, MODEL);
  const training = await timed(async () => {
    if (start.rwml !== undefined) {
      await train("rwml", folder, { ...start.rwml, engine }, options);
      copyModel(findSavedModel(trainingFolder(folder)), model);
    } else if (options.from === undefined || name !== "") {
      await train("train", folder, config, options);
      const run = trainingFolder(folder);
      copyModel({ weights: join(run, REFERENCE), tokenizer: join(run, TOKENIZER) }, model);
    } else copyModel(findSavedModel(options.from), model);
  });
  const asked = { folder, model, config, seed: config.seed, size: evaluation };
  const evaluated = await timed(() => evaluate(asked, options));
  const phases = { training: training.seconds, evaluation: evaluated.seconds };
  const weights = weightsDigest(model)!;
  const what = { setting, ...(name !== "" && { start: name }), weights, evaluation };
  return writeResult(folder, { ...what, splits: evaluated.value, phases });
}

/** Copies weights and tokenizer into one folder, which is renamed once it has both. */
function copyModel({ weights, tokenizer }: Pick<SavedModel, "weights" | "tokenizer">, to: string) {
  if (weightFiles(weights).length === 0)
    throw new UserError(
      `${weights} holds no model.safetensors: its weights are on the server that trained it; pawl export copies them, or train it with --engine.copy`,
    );
  const temporary = `${to}.tmp`;
  rmSync(temporary, { recursive: true, force: true });
  try {
    mkdirSync(temporary, { recursive: true });
    for (const [folder, files] of [
      [weights, /^((adapter_)?config\.json|(adapter_)?model.*\.(safetensors|json))$/],
      [tokenizer, /^(tokenizer.*\.json|chat_template\.jinja)$/],
    ] as const) {
      for (const name of readdirSync(folder).filter((file) => files.test(file)))
        cpSync(join(folder, name), join(temporary, name), { dereference: true });
    }
    rmSync(to, { recursive: true, force: true });
    renameSync(temporary, to);
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true });
    throw writeError(error, to);
  }
}
