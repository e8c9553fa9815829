/** How an agent of the quick recipe plays for records of its own play: arguments of `pawl rollout`. */
import { quick } from "../../recipes/quick.js";

export const OWN_PLAY = [
  ...Object.entries(quick.env).flatMap(([name, value]) => [
    name === "name" ? "--env" : `--env.${name}`,
    String(value),
  ]),
  ...["--prompt.style", quick.prompt.style, "--prompt.history", quick.prompt.history],
  ...["--step-limit", String(quick.stepLimit), "--max-tokens", String(quick.maxTokens)],
  ...["--temperature", "1", "--groups", "600", "--group-size", "1", "--engine.threads", "1"],
];
