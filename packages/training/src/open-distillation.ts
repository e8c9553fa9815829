/** The teacher of on-policy distillation, as the settings name it and as a run keeps it. */
import { join } from "node:path";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { vocabularyOf } from "@pawl/core/constraint/vocabulary.js";
import type { Engine } from "@pawl/core/engine/engine.js";
import { UserError } from "@pawl/core/errors.js";
import { sealFolder } from "@pawl/core/runs/checksums.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import type { FetchOptions } from "@pawl/models/model-origin.js";
import type { TrainConfig } from "./config.js";
import { engineFor, isRemote } from "./engines.js";
import { type ModelStart, type OpenModel, openModel } from "./open-model.js";
import { findModel, TOKENIZER } from "./saved-model.js";

/** The folder of a run that keeps its teacher. */
const TEACHER = "teacher";

type Config = Pick<TrainConfig, "distillation" | "engine" | "temperature">;

/** The policy that it is to teach. */
interface Student {
  readonly engine: Pick<Engine, "capabilities">;
  readonly tokenizer: Tokenizer;
}

/** The engine that a run's teacher is computed on, with the adapters of the run that trained it. */
function engineOf({ distillation, engine }: Config, recorded?: TrainConfig["engine"]) {
  const { address: here, threads, model } = engine;
  const at = distillation.engine ?? here;
  return engineFor(recorded, {
    address: at,
    ...(!isRemote({ address: at }) && threads !== undefined && { threads }),
    ...(distillation.engine === undefined && model !== undefined && { model }),
  });
}

/** Opens the teacher of a new run, and keeps a copy in its folder; undefined if there is none. */
export async function openTeacher(
  config: Config,
  student: Student,
  folder: string,
): Promise<Engine | undefined> {
  const { teacher } = config.distillation;
  if (teacher === undefined) return undefined;
  const kept = join(folder, TEACHER);
  const found = teacher === "served" ? undefined : await findModel(teacher);
  const start: ModelStart = found
    ? { folder: found.weights, tokenizer: found.tokenizer }
    : { served: true };
  const open = await openModel({
    start,
    engine: engineOf(config, found?.config?.engine),
    needs: { temperatures: config.temperature !== 1 },
    servedFolder: kept,
  });
  return checked(open, config, student, async ({ engine }) => {
    if (found !== undefined) await engine.save(kept, { optimizer: false, merged: true });
    sealFolder(kept);
  });
}

/** Opens the teacher that a run keeps; undefined if it has none. */
export async function reopenTeacher(
  config: Config,
  student: Student,
  folder: string,
): Promise<Engine | undefined> {
  if (config.distillation.teacher === undefined) return undefined;
  const start = { folder: join(folder, TEACHER), tokenizer: join(folder, TOKENIZER) };
  return checked(await openModel({ start, engine: engineOf(config) }), config, student);
}

/** The model's engine, if it can teach this policy. */
async function checked(
  model: OpenModel,
  config: Config,
  student: Student,
  ready: (model: OpenModel) => Promise<void> = async () => undefined,
): Promise<Engine> {
  try {
    refuseStranger(model, config, student);
    await ready(model);
    return model.engine;
  } catch (error) {
    await model.engine.dispose();
    throw error;
  }
}

/** Throws if the teacher cannot read what the policy writes. */
function refuseStranger(
  { engine, tokenizer }: OpenModel,
  { distillation: { teacher } }: Config,
  student: Student,
): void {
  const refuse = (why: string): never => {
    throw new ConfigError(
      `distillation.teacher ${teacher}: ${why}; name another teacher, or leave distillation.teacher out`,
    );
  };
  if (vocabularyOf(tokenizer).key !== vocabularyOf(student.tokenizer).key)
    refuse("its tokens are not those of the policy, so it cannot score them");
  const [most, needed] = [engine.capabilities.maxContext, student.engine.capabilities.maxContext];
  if (most < needed)
    refuse(`it reads ${most} tokens, and what the policy reads and writes may have ${needed}`);
}

/** The weights of a teacher that is computed in this process, and whether adapters stand beside them. */
export interface TeacherHere {
  readonly folder: string;
  readonly adapters: boolean;
}

/**
 * Refuses, before there is a run, a teacher that is not there. Returns one that is computed here; of a
 * run that goes on, the one that its folder keeps.
 */
export async function checkTeacher(
  { distillation, engine }: Pick<TrainConfig, "distillation" | "engine">,
  { run, ...fetching }: FetchOptions & { readonly run?: string | undefined } = {},
): Promise<TeacherHere | undefined> {
  const { teacher } = distillation;
  if (teacher === undefined || teacher === "served") return undefined;
  const isHere = !isRemote({ address: distillation.engine ?? engine.address });
  if (run !== undefined)
    return isHere ? { folder: join(run, TEACHER), adapters: false } : undefined;
  try {
    const { weights, config } = await findModel(teacher, fetching);
    const adapters = config !== undefined && !isRemote(config.engine) && config.engine.loraRank > 0;
    return isHere ? { folder: weights, adapters } : undefined;
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    throw new ConfigError(`distillation.teacher: ${error.message}`);
  }
}

/** Throws if settings ask for a teacher that cannot be opened. */
export function checkDistillation({
  distillation,
  engine,
}: Pick<TrainConfig, "distillation" | "engine">): void {
  const { teacher } = distillation;
  if (teacher === "served" && !isRemote({ address: distillation.engine ?? engine.address }))
    throw new ConfigError(
      "distillation.teacher served: the embedded engine has no model of its own; name a run or a folder, or an engine server with distillation.engine http://…",
    );
}
