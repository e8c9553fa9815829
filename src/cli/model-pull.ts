import { z } from "zod";
import { ConfigError } from "../config/config-error.js";
import { fetchModel } from "../models/fetch-model.js";
import { defineCommand, exitCodes } from "./command.js";
import { fetchingOf } from "./fetching.js";
import { note, print } from "./io.js";
import { requireModel } from "./model-name.js";

/** `pawl model pull`: a model of the hub, here. */
export const modelPull = defineCommand({
  name: "model pull",
  summary: "fetch a model of the Hugging Face hub into the cache that Python shares",
  positionals: "ID",
  details:
    "ID is OWNER/NAME, OWNER/NAME@REVISION, or OWNER/NAME/FILE.gguf. Fetches configuration, tokenizer and weights, no\npickle and no code. HF_HOME, HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE mean what they mean to Hugging Face's tools.",
  options: () => z.strictObject({}),
  examples: [
    ["pawl model pull HuggingFaceTB/SmolLM2-135M-Instruct", "then --model.start takes the same id"],
    ["HF_TOKEN=hf_… pawl model pull OWNER/PRIVATE@v2", "a private model, at a tag"],
  ],
  async run({ positionals, io, signal }) {
    const name = requireModel("model pull", positionals);
    const fetched = await fetchModel(name, fetchingOf(io, signal));
    if (fetched === undefined)
      throw new ConfigError(
        `${name} is not a model of the hub: expected OWNER/NAME, OWNER/NAME@REVISION or OWNER/NAME/FILE.gguf`,
      );
    const { revision } = fetched.origin;
    if (revision !== undefined) note(io, `${name} is here, commit ${revision}`);
    print(io, fetched.folder);
    return exitCodes.done;
  },
});
