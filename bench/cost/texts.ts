/**
 * How long prompts and observations of an environment are, and what a step of it costs: episodes of the
 * random policy, with prompts as in the papers (`full`, two steps of history). Four characters count
 * as a token.
 */
import { existsSync } from "node:fs";
import { GAMES, officialDataThere, unpacked } from "../../src/envs/alfworld/fixtures/official.js";
import type { Environment } from "../../src/envs/env.js";
import { openEnvironment } from "../../src/envs/open.js";
import { chooseTasks } from "../../src/rollout/config.js";
import { randomPolicy } from "../../src/rollout/policies/random.js";
import type { Policy } from "../../src/rollout/policy.js";
import { rollout } from "../../src/rollout/rollout.js";
import { promptStyle } from "../../src/text/prompt.js";

/** Means over all steps. */
export interface Texts {
  readonly environment: string;
  readonly prompt: number;
  readonly observation: number;
  /** The most steps that an episode may have. */
  readonly steps: number;
  /** Seconds of processor time per step, prompts included. */
  readonly step: number;
}

const EPISODES = 64;
const CHARACTERS_PER_TOKEN = 4;
const WEBSHOP = "../shared/data/webshop";

/** The environments of which the data are there, or that need none. */
function environments(): readonly Environment[] {
  const shop = existsSync(WEBSHOP) ? { data: WEBSHOP } : {};
  return [
    openEnvironment({ name: "household" }),
    openEnvironment({ name: "desk" }),
    openEnvironment({ name: "webshop", ...shop }),
    openEnvironment({ name: "textworld" }),
    openEnvironment({ name: "search" }),
    ...(officialDataThere ? [openEnvironment({ name: "alfworld", data: unpacked(GAMES) })] : []),
  ];
}

/** Plays every environment. */
export async function measureTexts(): Promise<readonly Texts[]> {
  const found: Texts[] = [];
  for (const environment of environments()) found.push(await textsOf(environment, randomPolicy()));
  return found;
}

async function textsOf(environment: Environment, policy: Policy): Promise<Texts> {
  const style = promptStyle(environment.prompt, { style: "full", history: 2 });
  const play = (seed: number) => {
    const split = environment.splits[0]!;
    const tasks = chooseTasks(environment, { split, groups: EPISODES / 8, seed });
    return rollout({ environment, policy, style, tasks, groupSize: 8, seed });
  };
  await play(1);
  const before = process.cpuUsage();
  const steps = (await play(0)).flatMap(({ episodes }) => episodes).flatMap((one) => one.steps);
  let [prompt, observation] = [0, 0];
  for (const step of steps) {
    prompt += step.prompt.reduce((sum, { text }) => sum + text.length, 0);
    observation += step.observation.length;
  }
  const { user, system } = process.cpuUsage(before);
  const tokens = (characters: number) =>
    Math.round(characters / steps.length / CHARACTERS_PER_TOKEN);
  return {
    environment: environment.name,
    prompt: tokens(prompt),
    observation: tokens(observation),
    steps: environment.stepLimit,
    step: Number(((user + system) / 1e6 / steps.length).toPrecision(2)),
  };
}
