import { existsSync, readdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { writeFolderAtomically } from "@pawl/core/files/atomic-file.js";
import { writeError } from "@pawl/core/files/io-error.js";
import { parseHubName } from "@pawl/models/fetch-model.js";
import { uploadFolder } from "@pawl/models/hub/hub-client.js";
import { z } from "zod";
import { writeModelFolder } from "../publish/model-folder.js";
import { defineCommand, exitCodes } from "./command.js";
import { note, print, warn } from "./io.js";

/** `pawl push`: a trained model to the Hugging Face hub. */
export const push = defineCommand({
  name: "push",
  summary: "publish a trained model on the Hugging Face hub, with a card of how it was made",
  positionals: "RUN OWNER/NAME",
  details:
    "Uploads the model in Hugging Face's layout, its tokenizer, a model card from the run and from evaluations (--cards),\nthe run's settings and its TensorBoard files. The key is read from HF_TOKEN and neither recorded nor shown.\n--dry-run writes the folder and sends nothing.",
  options: () =>
    z.strictObject({
      cards: z
        .array(z.string())
        .default([])
        .describe("evaluations to publish with it: runs of pawl eval, or their card.json"),
      adapter: z
        .boolean()
        .default(false)
        .describe("publish the LoRA adapter alone, not the merged model"),
      base: z
        .string()
        .refine((name) => parseHubName(name) !== undefined, { error: "expected OWNER/NAME" })
        .optional()
        .describe("model of the hub that it was trained from (default: the run's start model)"),
      license: z
        .string()
        .min(1)
        .optional()
        .describe("license for the card, such as apache-2.0 (default: none is stated)"),
      private: z.boolean().default(false).describe("make a new repository private"),
      engine: z
        .url({ protocol: /^https?$/ })
        .optional()
        .describe("URL of the engine server that has the weights (default: the run's)"),
      dryRun: z.boolean().default(false).describe("write the folder to --out and upload nothing"),
      out: z.string().min(1).optional().describe("with --dry-run: folder to write, new or empty"),
    }),
  examples: [
    ["pawl push runs/first me/house-agent --cards runs/first-eval", "model, card and figures"],
    ["pawl push runs/first me/house-agent --dry-run --out page", "look at it before"],
    ["pawl push runs/lora me/agent-lora --adapter --private", "the adapter alone"],
  ],
  ownDryRun: true,
  async run({ config, positionals, io, signal }) {
    const { private: isPrivate, dryRun, out, ...chosen } = config;
    const [source, repo] = positionals;
    if (source === undefined || repo === undefined)
      throw new ConfigError("pawl push needs a run and a name: pawl push RUN OWNER/NAME");
    const name = parseHubName(repo);
    if (name === undefined || name.repo !== repo)
      throw new ConfigError(`pawl push: expected a name such as me/house-agent, got "${repo}"`);
    if (dryRun !== (out !== undefined))
      throw new ConfigError(
        dryRun
          ? "--dry-run: say where to write with --out FOLDER"
          : "--out: it is only for --dry-run; an upload leaves nothing behind",
      );
    const onProblem = (message: string): void => warn(io, message);
    const publication = { ...chosen, source, repo, onProblem };
    if (out !== undefined) {
      if (isPrivate)
        throw new ConfigError("--private: with --dry-run no repository is made; leave it out");
      if (existsSync(out) && readdirSync(out).length > 0)
        throw new ConfigError(`--out: ${out} is not empty; name a new folder`);
      if (existsSync(out)) await rm(out, { recursive: true });
      await writeFolderAtomically(out, (folder) => writeModelFolder(folder, publication)).catch(
        (error: unknown) => {
          throw writeError(error, out);
        },
      );
      print(io, `${out} holds what would be uploaded to ${repo}`);
      return exitCodes.done;
    }
    const folder = await mkdtemp(join(tmpdir(), "pawl-push-"));
    try {
      await writeModelFolder(folder, publication).catch((error: unknown) => {
        throw writeError(error, folder);
      });
      note(io, `uploading to ${repo}`);
      const title = `Upload ${source.split(/[\\/]/).filter(Boolean).at(-1)} with Pawl`;
      const options = { repo, folder, title, isPrivate, environment: io.env, signal };
      print(io, `${source} is now at ${await uploadFolder(options)}`);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
    return exitCodes.done;
  },
});
