/** How the world of the quick recipe is played for records: arguments of `pawl rollout`. */
import { quick } from "../../recipes/quick.js";

/** Its world, and how it is shown. */
export const QUICK_WORLD = [
  ...Object.entries(quick.env).flatMap(([name, value]) => [
    name === "name" ? "--env" : `--env.${name}`,
    String(value),
  ]),
  ...["--prompt.style", quick.prompt.style, "--prompt.history", quick.prompt.history],
  ...["--step-limit", String(quick.stepLimit)],
];

/** How an agent of the recipe plays in it. */
export const OWN_PLAY = [
  ...[...QUICK_WORLD, "--max-tokens", String(quick.maxTokens)],
  ...["--temperature", "1", "--groups", "600", "--group-size", "1", "--engine.threads", "1"],
];
