/** Text of an environment to train a tokenizer on: from experts, random actions and mistakes. */
import { textsOf } from "@pawl/agents/agent.js";
import { isAgentEnvironment } from "@pawl/agents/agent-environment.js";
import { closeWorld } from "@pawl/core/envs/bounded-env.js";
import { EnvError, type Environment } from "@pawl/core/envs/env.js";
import { expertPolicy } from "@pawl/core/rollout/policies/config.js";
import { epsilonPolicy, randomPolicy } from "@pawl/core/rollout/policies/random.js";
import type { Policy } from "@pawl/core/rollout/policy.js";
import { play } from "@pawl/core/rollout/rollout.js";
import type { PromptStyle } from "@pawl/core/text/prompt.js";

const TASKS = 300;
/**
 * In every fifth action one word is replaced, because errors about invalid actions have their own
 * words.
 */
const MISTAKE_EVERY = 5;
/** Of how many worlds the texts are kept. */
const KEPT = 8;
const kept = new Map<string, readonly string[]>();

/**
 * The texts of a run's world. Those of made-up worlds are kept: a program that trains several times in one world would
 * play the same 600 episodes each time.
 */
export async function textsForRun(
  {
    env,
    prompt,
  }: {
    readonly env: object;
    readonly prompt: { readonly template?: string | undefined };
  },
  environment: Environment,
  style: PromptStyle,
): Promise<readonly string[]> {
  // The file of a template may change.
  if (environment.madeUp !== true || prompt.template !== undefined)
    return worldTexts(environment, style);
  const key = JSON.stringify([env, prompt]);
  const texts = kept.get(key) ?? (await worldTexts(environment, style));
  // Moved to the end, so that the first one is the least recently used.
  kept.delete(key);
  kept.set(key, texts);
  if (kept.size > KEPT) kept.delete(kept.keys().next().value!);
  return texts;
}

/** The texts of some hundred episodes: prompts, actions and observations, piece by piece. */
export async function worldTexts(
  environment: Environment,
  style: PromptStyle,
  most = TASKS,
): Promise<readonly string[]> {
  if (isAgentEnvironment(environment)) return textsOf(environment.agent);
  const texts = new Set<string>();
  const tasks = environment.tasks(environment.splits[0]!).slice(0, most);
  const teacher = environment.expert ?? environment.seeker;
  const listed = await listsActions(environment);
  // A mistake may do harm in a world that is not made up, where nobody lists what can be done.
  const strays = listed || environment.madeUp === true;
  const players = [
    ...(listed ? [mistaken(randomPolicy())] : []),
    ...(teacher === undefined
      ? []
      : [expertPolicy(teacher)].map((one) => (strays ? epsilonPolicy(one, 0.2) : one))),
  ];
  if (players.length === 0)
    throw new EnvError(
      `${environment.name} neither lists its admissible actions nor has a teacher (expert or seeker), so there is no text to make the tokens of a model from scratch from: give it one of them, or start from a model with --model.start FOLDER`,
    );
  for (const policy of players) {
    await play({
      environment,
      style,
      policy,
      tasks,
      groupSize: 1,
      seed: 0,
      onEpisode({ steps }) {
        // Where prompts continue one another, the last one contains the others.
        for (const { prompt } of style.continuing ? steps.slice(-1) : steps)
          for (const { text } of prompt) texts.add(text);
        for (const { response, observation } of steps) texts.add(response).add(observation);
      },
    });
  }
  return [...texts];
}

async function listsActions(environment: Environment): Promise<boolean> {
  const probe = environment.create();
  // One that cannot be closed is left behind, as in rollouts.
  await closeWorld(probe).catch(() => undefined);
  return probe.admissibleActions !== undefined;
}

/** A policy that sometimes repeats an earlier action, or half of one. */
function mistaken(policy: Policy): Policy {
  return {
    ...policy,
    name: `mistaken ${policy.name}`,
    async act(situations, signal) {
      const replies = await policy.act(situations, signal);
      return replies.map((reply, i) => {
        const { seed, steps, format } = situations[i]!;
        if (seed % MISTAKE_EVERY !== 0 || steps.length === 0) return reply;
        const earlier = steps[seed % steps.length]!.action;
        return {
          response: format(seed % 2 === 0 ? earlier : earlier.split(" ").slice(0, -1).join(" ")),
        };
      });
    },
  };
}
