/** What a run trains and the memory it needs, known from a model's shape before it is opened. */
import { join } from "node:path";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { UserError } from "@pawl/core/errors.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import { leastMemory, memoryHere, memoryNeeds } from "@pawl/models/model-memory.js";
import { parseModelConfig } from "@pawl/models/weights/config-json.js";
import { LORA_TARGETS, trainedSpecs } from "@pawl/models/weights/lora.js";
import type { ModelConfig } from "@pawl/models/weights/model-config.js";
import { tensorSpecs } from "@pawl/models/weights/tensor-names.js";
import type { TrainConfig } from "./config.js";
import { isRemote } from "./engines.js";
import type { ModelStart } from "./open-model.js";

/** The sizes of a run in the embedded engine; memory in bytes, estimated. */
export interface SizePlan {
  readonly parameters: number;
  readonly trained: number;
  /** Whether that is adapters on frozen weights. */
  readonly adapters: boolean;
  readonly memory: number;
  readonly here: number;
}

/** The sizes of a run that starts from a folder; undefined where the engine is a server's, or says what is wrong. */
export function sizePlan(
  start: ModelStart,
  { engine }: Pick<TrainConfig, "engine">,
): SizePlan | undefined {
  const config = isRemote(engine) || !("folder" in start) ? undefined : shapeOf(start.folder);
  if (config === undefined) return undefined;
  const { loraRank: rank, loraTargets: targets = LORA_TARGETS } = engine;
  const isWhole = ({ optional }: { readonly optional?: boolean }) => !optional;
  const parameters = countOf(tensorSpecs(config).filter(isWhole));
  const trained =
    rank === 0 ? parameters : countOf(trainedSpecs(config, false, { rank, alpha: 1, targets }));
  const { train, lora } = memoryNeeds(config, parameters);
  const adapters = rank > 0;
  return { parameters, trained, adapters, memory: rank === 0 ? train : lora, here: memoryHere() };
}

/** Refuses a run that cannot fit, whatever its settings, with what would. */
export function requireMemory({ parameters, trained, adapters, here }: SizePlan): void {
  const least = leastMemory(parameters, trained);
  if (least <= here) return;
  const frozen = !adapters && leastMemory(parameters, 0) * 1.1 < here;
  const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`;
  throw new ConfigError(
    `model.start: training ${(trained / 1e6).toFixed(0)} of ${(parameters / 1e6).toFixed(0)} million parameters takes at least ${gigabytes(least)} of memory, and there are ${gigabytes(here)} here: ${frozen ? "train adapters (--engine.lora-rank 16), " : ""}take a smaller model, or train on an engine server (--engine http://…, docs/gpu.md)`,
  );
}

function shapeOf(folder: string): ModelConfig | undefined {
  const file = join(folder, "config.json");
  try {
    return parseModelConfig(JSON.parse(readRegularText(file)), file);
  } catch (error) {
    if (error instanceof UserError || error instanceof SyntaxError || isSystemError(error))
      return undefined;
    throw error;
  }
}

const isSystemError = (error: unknown): boolean => error instanceof Error && "code" in error;

const countOf = (specs: readonly { readonly shape: readonly number[] }[]): number =>
  specs.reduce((sum, { shape }) => sum + shape.reduce((all, size) => all * size, 1), 0);
