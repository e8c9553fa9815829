import { ConfigError } from "@pawl/core/config/config-error.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { leftOutNotice } from "@pawl/core/trust/secret-settings.js";
import { GGUF_WEIGHTS } from "@pawl/models/gguf/gguf-export.js";
import { exportGguf, exportModel } from "@pawl/training/export.js";
import { findSavedModel } from "@pawl/training/saved-model.js";
import { z } from "zod";
import {
  exportEpisodes,
  type FormatName,
  formatLines,
  formatNames,
} from "../exports/export-run.js";
import { sourceOf } from "../exports/source.js";
import { defineCommand, exitCodes } from "./command.js";
import { number } from "./format.js";
import { type Io, print, warn } from "./io.js";

/** A model in one file, by the format of its weights. */
const GGUF_FORMATS = GGUF_WEIGHTS.map((weights) => `gguf-${weights}` as const);

const isEpisodeFormat = (to: string): to is FormatName => formatNames.some((name) => name === to);

/** `pawl export`: a trained model, or a run's episodes, for other programs. */
export const exportCommand = defineCommand({
  name: "export",
  summary: "write a trained model or recorded episodes for other programs",
  positionals: "RUN",
  details: [
    "By default the model of RUN, a run or model folder: config.json, model.safetensors in 32 bits and the tokenizer, as",
    "transformers, vLLM and SGLang read them. Adapters are merged, and weights on an engine server fetched. With",
    "--to gguf-f16 or gguf-q8_0 (16 or 8 bits a weight) the same in one GGUF file, for llama.cpp and Ollama: pretrained",
    "models, since llama.cpp cannot split words as tokenizers from scratch do. With other formats, the recorded episodes",
    "of a run:",
    ...formatLines.map((line) => `  ${line}`),
  ].join("\n"),
  options: () =>
    z.strictObject({
      to: z
        .enum(["model", ...GGUF_FORMATS, ...formatNames])
        .default("model")
        .describe("what to write"),
      out: z
        .string()
        .min(1)
        .optional()
        .describe("output: a new or empty folder, or a new file where the format is one file"),
      solved: z.boolean().default(false).describe("only episodes that reached their goal"),
      engine: z
        .url({ protocol: /^https?$/ })
        .optional()
        .describe("URL of the engine server that has the weights (default: the run's)"),
    }),
  examples: [
    ["pawl export runs/… --out agent", "the trained agent, for vllm serve agent"],
    ["pawl export runs/…/checkpoints/000050 --out agent", "the agent after 50 updates"],
    ["pawl export runs/… --out agent --engine http://gpu:8001", "from a server that moved"],
    ["pawl export runs/… --to gguf-q8_0 --out agent.gguf", "for llama-server -m agent.gguf"],
    ["pawl export runs/… --to parquet --out episodes.parquet", "its episodes, for pandas"],
    ["pawl export runs/… --to inspect --out logs/run.eval", "for inspect view --log-dir logs"],
    ["pawl export runs/… --to sharegpt --solved --out sft.jsonl", "to fine-tune on what worked"],
  ],
  // Records are read without anybody's code; a model's settings may need it.
  plugins: (args) => (/(^| )--to[= ](?!model|gguf)/.test(args.join(" ")) ? "none" : "load"),
  async run({ config, positionals, io }) {
    const [folder] = positionals;
    const { to, out, solved, engine } = config;
    if (folder === undefined || out === undefined)
      throw new ConfigError(
        "pawl export needs a run or a model and an output: pawl export RUN --out FOLDER, or pawl export RUN --to FORMAT --out FILE",
      );
    if (isEpisodeFormat(to)) {
      if (engine !== undefined)
        throw new ConfigError(`--engine: it has weights, and --to ${to} writes episodes`);
      return writeEpisodes(folder, to, out, solved, io);
    }
    if (solved)
      throw new ConfigError("--solved: it chooses episodes, and a model is written: name --to");
    const model = findSavedModel(folder);
    const weights = GGUF_WEIGHTS.find((one) => to === `gguf-${one}`);
    const choice = engine === undefined ? {} : { address: engine };
    if (weights === undefined) await exportModel(model, out, choice);
    else await exportGguf(model, out, weights, choice);
    print(io, `${model.weights} is now a ${weights === undefined ? "plain" : to} model in ${out}`);
    return exitCodes.done;
  },
});

async function writeEpisodes(
  folder: string,
  format: FormatName,
  out: string,
  solved: boolean,
  io: Io,
): Promise<number> {
  const run = openRun(folder, (message) => warn(io, message));
  if (run.active) warn(io, `${folder} is being written: what is recorded so far is exported`);
  const leftOut = leftOutNotice(folder, run.manifest.config);
  // Of the formats, this one has the settings.
  if (format === "inspect" && leftOut !== undefined) warn(io, leftOut);
  const source = sourceOf(run, (episode) => !solved || episode.success);
  const count = await exportEpisodes(source, format, out);
  if (count === 0)
    warn(io, `${folder} has no ${solved ? "solved " : ""}episodes: ${out} holds none`);
  print(io, `${number(count)} episodes of ${folder} are in ${out}, for ${format}`);
  return exitCodes.done;
}
