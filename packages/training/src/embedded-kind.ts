/** The embedded engine: ONNX Runtime in this process. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { POINTER_FILE } from "@pawl/core/engine/engine.js";
import { createEmbeddedEngine } from "@pawl/engine-cpu/embedded-engine.js";
import { weightFiles } from "@pawl/models/weights/checkpoint.js";
import { LORA_ALPHA, LORA_TARGETS, type LoraOptions } from "@pawl/models/weights/lora.js";
import { z } from "zod";
import type { EngineKind, EngineOptions } from "./engine-kind.js";

export const embeddedKind: EngineKind = {
  address: z.literal("embedded"),
  help: "embedded (this process)",
  isRemote: false,
  async open(options, model, { seed = 0, valueHead = false }) {
    const { threads } = options;
    refuseRemoteOnly(options);
    if ("served" in model)
      throw new ConfigError(
        "model.start served: the embedded engine has no model of its own; name a preset or a folder, or an engine server with --engine http://…",
      );
    if ("folder" in model) refusePointer(model.folder);
    const lora = loraOf(options);
    return createEmbeddedEngine({
      model,
      seed,
      valueHead,
      ...(threads && { threads }),
      ...(lora && { lora }),
    });
  },
};

function loraOf({ loraRank, loraAlpha, loraTargets }: EngineOptions): LoraOptions | undefined {
  if (loraRank === 0) return undefined;
  return { rank: loraRank, alpha: loraAlpha ?? LORA_ALPHA, targets: loraTargets ?? LORA_TARGETS };
}

function refuseRemoteOnly({ model, copy }: EngineOptions): void {
  const given = [
    ...(model === undefined ? [] : ["engine.model"]),
    ...(copy ? ["engine.copy"] : []),
  ];
  if (given.length > 0)
    throw new ConfigError(
      `${given.join(", ")}: only engine servers have this setting; name one with --engine http://…, or leave it out`,
    );
}

function refusePointer(folder: string): void {
  if (existsSync(join(folder, POINTER_FILE)) && weightFiles(folder).length === 0)
    throw new ConfigError(
      `${folder}: its weights are on the engine server they were trained on; name that server with --engine http://… (a teacher's with --distillation.engine http://…)`,
    );
}
