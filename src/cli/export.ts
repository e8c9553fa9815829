import { z } from "zod";
import { ConfigError } from "../config/config-error.js";
import { exportModel } from "../train/export.js";
import { findSavedModel } from "../train/saved-model.js";
import { defineCommand, exitCodes } from "./command.js";
import { print } from "./io.js";

/** `pawl export`: a trained model for other programs. */
export const exportCommand = defineCommand({
  name: "export",
  summary: "write a trained model as a plain checkpoint for other programs",
  positionals: "MODEL",
  details: [
    "MODEL is a run folder (its latest checkpoint), a folder inside a run, or a model folder. Writes config.json,",
    "model.safetensors in 32 bits and the tokenizer, as read by transformers, vLLM and SGLang: an adapter",
    "(engine.loraRank) is merged into the weights, a critic is left out, and weights on an engine server are",
    "fetched from it.",
  ].join("\n"),
  options: () =>
    z.strictObject({
      out: z.string().min(1).optional().describe("output folder, new or empty"),
      engine: z
        .url({ protocol: /^https?$/ })
        .optional()
        .describe("URL of the engine server that has the weights (default: the run's)"),
    }),
  examples: [
    ["pawl export runs/… --out agent", "the trained agent, for vllm serve agent"],
    ["pawl export runs/…/checkpoints/000050 --out agent", "the agent after 50 updates"],
    ["pawl export runs/… --out agent --engine http://gpu:8001", "from a server that moved"],
  ],
  async run({ config, positionals, io }) {
    const [folder] = positionals;
    if (folder === undefined || config.out === undefined)
      throw new ConfigError(
        "pawl export needs a model and an output folder: pawl export MODEL --out FOLDER",
      );
    const model = findSavedModel(folder);
    const engine = config.engine === undefined ? {} : { address: config.engine };
    await exportModel(model, config.out, engine);
    print(io, `${model.weights} is now a plain model in ${config.out}`);
    return exitCodes.done;
  },
});
