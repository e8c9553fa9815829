import { existsSync, readdirSync } from "node:fs";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { requireDiskSpace, writeFolderAtomically } from "@pawl/core/files/atomic-file.js";
import { fetchGguf } from "@pawl/models/fetch-model.js";
import { readGgufModel, writeGgufModel } from "@pawl/models/gguf/gguf-convert.js";
import { openGguf } from "@pawl/models/gguf/gguf-file.js";
import { exportModel } from "@pawl/training/export.js";
import { findModel } from "@pawl/training/saved-model.js";
import { z } from "zod";
import { defineCommand, exitCodes } from "./command.js";
import { fetchingOf } from "./fetching.js";
import { print } from "./io.js";
import { MODEL_NAMES, requireModel } from "./model-name.js";

/** `pawl model convert`: any model in Hugging Face's layout. */
export const modelConvert = defineCommand({
  name: "model convert",
  summary: "write a model in Hugging Face layout, for transformers, vLLM and other programs",
  positionals: "MODEL",
  details: `${MODEL_NAMES}\nWrites config.json, model.safetensors in 32 bits, and the tokenizer. A model\non an engine server is written by pawl export.`,
  options: () =>
    z.strictObject({
      out: z.string().min(1).optional().describe("output folder, new or empty"),
      keepOutput: z
        .boolean()
        .default(false)
        .describe("keep a GGUF file's output matrix, even if it is the embedding quantised again"),
    }),
  examples: [["pawl model convert SmolLM2.Q4_1.gguf --out smollm2", "for transformers"]],
  async run({ config, positionals, io, signal }) {
    const name = requireModel("model convert", positionals);
    const { out, keepOutput } = config;
    if (out === undefined)
      throw new ConfigError("pawl model convert needs an output folder: --out FOLDER");
    if (name === "served")
      throw new ConfigError(
        "a server's own model has no folder here: name the run that trained it, or use pawl export RUN --engine URL",
      );
    if (existsSync(out) && readdirSync(out).length > 0)
      throw new ConfigError(`--out: ${out} is not empty; name a new folder`);
    const fetching = fetchingOf(io, signal);
    const gguf = await fetchGguf(name, fetching);
    if (gguf === undefined) {
      if (keepOutput)
        throw new ConfigError(
          `--keep-output is for GGUF files, and ${name} is none: its matrices are kept as they are`,
        );
      await exportModel(await findModel(name, fetching), out);
    } else {
      const model = await readGgufModel(openGguf(gguf), { tie: !keepOutput });
      if (model.tied !== undefined)
        print(io, `${model.tied} (--keep-output would keep them apart)`);
      await requireDiskSpace(out, model.bytes, `the 32-bit weights of ${gguf}`);
      await writeFolderAtomically(out, (temporary) => writeGgufModel(model, temporary));
    }
    print(io, `${name} is now in Hugging Face layout in ${out}`);
    return exitCodes.done;
  },
});
