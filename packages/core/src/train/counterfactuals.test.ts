import { worldTexts } from "@pawl/training/world-text.js";
import { describe, expect, it } from "vitest";
import type { ActingEngine } from "../engine/engine.js";
import { type Env, type Environment, isRemote } from "../envs/env.js";
import { openEnvironment } from "../envs/open.js";
import { type PawSettings, pawOptions } from "../objectives/paw-options.js";
import { createRandom, mixSeed } from "../random.js";
import { enginePolicy } from "../rollout/policies/engine.js";
import { rollout } from "../rollout/rollout.js";
import { promptStyle } from "../text/prompt.js";
import { buildTokenizer } from "../text/tokenizer-builder.js";
import { positionsOf } from "../update/transitions.js";
import { checkCounterfactuals, counterfactualsOf } from "./counterfactuals.js";

const environment = openEnvironment({ name: "household", rooms: 1, receptacles: 4, objects: 3 });
const style = promptStyle(environment.prompt, { style: "compact", history: "all" });
const pawOf = (changes: PawSettings = {}) =>
  pawOptions().parse({ loss: "ce", alpha: 1, counterfactual: 3, ...changes });

/** Groups played by a model that says what its seed says: some of it is refused everywhere. */
async function play() {
  const tokenizer = buildTokenizer(await worldTexts(environment, style));
  const words = ["look", "inventory", "go to shelf 1", "go to sink 1", "take mug 9 from sink 1"];
  const engine = {
    capabilities: { vocabularySize: tokenizer.vocabularySize, maxContext: 4096 },
    sample: async (requests: Parameters<ActingEngine["sample"]>[0]) =>
      requests.map(({ seed }) => {
        const random = createRandom(mixSeed(seed ?? 0, "say"));
        const said = tokenizer.encode(words[random.int(words.length)]!, { plain: true });
        const tokens = [...said, tokenizer.id("<|see|>")!];
        return [{ tokens, logprobs: tokens.map(() => -random.next()), stopReason: "stop" }];
      }),
  } as unknown as ActingEngine;
  const sampling = { maxTokens: 10, temperature: 1 };
  const groups = await rollout({
    ...{ environment, style, groupSize: 4, seed: 2, stepLimit: 5 },
    policy: enginePolicy({ engine, tokenizer, style, sampling }),
    tasks: environment.tasks("train").slice(0, 3),
  });
  return { groups, setup: { environment, style, tokenizer, maxTokens: 4096, seed: 7 } };
}

/** The world of an episode before a step. */
function worldBefore(
  {
    task,
    seed,
    steps,
  }: { task: Parameters<Env["reset"]>[0]; seed: number; steps: readonly { action: string }[] },
  step: number,
): Env {
  const world = environment.create();
  if (isRemote(world)) throw new Error("the household is a world in this process");
  world.reset(task, seed);
  for (const { action } of steps.slice(0, step)) world.step(action);
  return world;
}

describe("counterfactuals", () => {
  it("are what other actions of the group bring in a state, half of them refused", async () => {
    const { groups, setup } = await play();
    const found = await counterfactualsOf(groups, pawOf(), setup);
    expect(found.length).toBeGreaterThan(6);
    expect(found.filter(({ valid }) => valid)).toHaveLength(found.length / 2);
    for (const g of groups.keys())
      expect(found.filter(({ group }) => group === g).length).toBeLessThanOrEqual(6);
    for (const { group, episode, sequence, valid } of found) {
      const source = groups[group]!.episodes[episode]!;
      const { actionStart, actionEnd, observationStart, observationEnd } = positionsOf(sequence);
      const at = source.steps.findIndex(
        ({ sequence: own }) => positionsOf(own!).actionStart === actionStart,
      );
      const text = (from: number, to: number) =>
        setup.tokenizer.decode(sequence.ids.slice(from, to)).trim();
      // The state is the step's, token for token; the action is another one.
      expect(sequence.ids.slice(0, actionStart)).toEqual(
        source.steps[at]!.sequence!.ids.slice(0, actionStart),
      );
      const action = text(actionStart, actionEnd - 1);
      expect(action).not.toBe(source.steps[at]!.action);
      const { observation, info } = worldBefore(source, at).step(action);
      expect(info.valid).toBe(valid);
      expect(text(observationStart, observationEnd)).toContain(observation.trim());
    }
  });

  it("follow from the seed, and from nothing else", async () => {
    const { groups, setup } = await play();
    const twice = [1, 2].map(() => counterfactualsOf(groups, pawOf(), setup));
    expect(await twice[0]).toEqual(await twice[1]);
    const other = await counterfactualsOf(groups, pawOf(), { ...setup, seed: 8 });
    expect(other).not.toEqual(await twice[0]);
  });

  it("are none where nothing is learnt of the world, or they do not fit", async () => {
    const { groups, setup } = await play();
    for (const paw of [{ counterfactual: 0 }, { loss: "off" as const }, { lambda: 0 }])
      expect(await counterfactualsOf(groups, pawOf(paw), setup)).toEqual([]);
    expect(await counterfactualsOf(groups, pawOf(), { ...setup, maxTokens: 8 })).toEqual([]);
  });

  it.each<readonly [string, PawSettings, Partial<Environment>]>([
    ["full entropies", { entropy: "full" }, {}],
    ["leave paw.targets", { targets: "shuffled" }, {}],
    ["leave paw.targets", { until: "x" }, {}],
    [
      "worlds of far cannot be copied",
      {},
      { name: "far", create: () => ({ close: async () => undefined }) as never },
    ],
  ])("are refused: %s", (message, changes, world) => {
    expect(() => checkCounterfactuals(pawOf(changes), { ...environment, ...world })).toThrow(
      message,
    );
    const none = pawOf({ ...changes, counterfactual: 0 });
    expect(() => checkCounterfactuals(none, { ...environment, ...world })).not.toThrow();
  });
});
