import { tinyConfig } from "@pawl/training/testing.js";
import { worldTexts } from "@pawl/training/world-text.js";
import { describe, expect, it } from "vitest";
import type { Engine } from "../engine/engine.js";
import type { Env, Environment, RemoteEnv } from "../envs/env.js";
import { DEFAULT_LIMITS as LIMITS } from "../envs/limits.js";
import { openEnvironment } from "../envs/open.js";
import { createRandom, mixSeed } from "../random.js";
import { type Episode, ownSteps } from "../rollout/episode.js";
import { startEpisode } from "../rollout/episode-run.js";
import { type PromptStyle, promptOptions, promptStyle } from "../text/prompt.js";
import type { Tokenizer } from "../text/tokenizer.js";
import { buildTokenizer } from "../text/tokenizer-builder.js";
import { transitionsOf } from "../update/transitions.js";
import { createActor } from "./actor.js";
import { branchingSteps, checkBranching } from "./branching.js";

const rooms = openEnvironment({ name: "household", rooms: 1, receptacles: 4, objects: 3 });

const tokenizers = new Map<string, Tokenizer>();
async function tokenizerOf(style: string, draft: PromptStyle): Promise<Tokenizer> {
  const known = tokenizers.get(style);
  if (known !== undefined) return known;
  const built = buildTokenizer(await worldTexts(rooms, draft), { chat: style === "chat" });
  tokenizers.set(style, built);
  return built;
}

/** An actor whose model says what the seed of a decision says. */
async function acting(environment: Environment, changes: object = {}, prompt: object = {}) {
  const described = promptOptions().parse({ style: "compact", history: "all", ...prompt });
  const draft = promptStyle(environment.prompt, described);
  const tokenizer = await tokenizerOf(described.style, draft);
  const style = promptStyle(environment.prompt, described, tokenizer);
  const words = ["look", "inventory", "go to shelf 1", "go to sink 1", "dance"];
  const asked: number[][] = [];
  const sample: Engine["sample"] = async (requests) =>
    requests.map(({ seed, prompt }) => {
      asked.push(Array.from(prompt));
      const random = createRandom(mixSeed(seed ?? 0, "say"));
      const tokens = [...tokenizer.encode(words[random.int(words.length)]!), tokenizer.endId!];
      const logprobs = tokens.map(() => -3 * random.next());
      return [{ tokens, logprobs, stopReason: "stop" }];
    });
  const capabilities = { vocabularySize: tokenizer.vocabularySize, maxContext: 4096 };
  const engine = { capabilities, sample } as unknown as Engine;
  const config = tinyConfig({
    ...{ groups: 2, groupSize: 6, stepLimit: 6, advantage: { name: "tree" } },
    rollout: { branch: { points: 2 } },
    ...changes,
  });
  const onEpisodes = async () => undefined;
  const actor = createActor({ engine, environment, tokenizer, style, onEpisodes }, config);
  const { groups } = await actor.draw(0);
  await actor.end();
  return { groups, asked, config };
}

/** The same rooms, behind a wait; what they say may depend on how often they were asked. */
function remote(
  answer: (world: Env, action: string, reset: number) => ReturnType<Env["step"]> | Promise<never>,
): Environment {
  let resets = 0;
  const create = (): RemoteEnv => {
    const world = rooms.create() as Env;
    let number = 0;
    return {
      get goal() {
        return world.goal;
      },
      get taskType() {
        return world.taskType;
      },
      initialContext: () => world.initialContext?.(),
      async reset(task, seed) {
        number = resets++;
        return world.reset(task, seed);
      },
      step: async (action) => answer(world, action, number),
      clone: () => Promise.reject(new Error("never asked for")),
      close: async () => undefined,
    };
  };
  return { ...rooms, create };
}

const branchesIn = (episodes: readonly Episode[]) =>
  episodes.flatMap((episode) => (episode.branch === undefined ? [] : [episode]));

describe.each([
  ["compact", {}],
  ["chat", { style: "chat", history: undefined }],
])("branches in the style %s", (_, prompt) => {
  it("share the steps before, in the same world, and go on from there", async () => {
    const { groups, asked } = await acting(rooms, {}, prompt);
    for (const { episodes } of groups) {
      expect(episodes.map(({ attempt }) => attempt)).toEqual([0, 1, 2, 3, 4, 5]);
      expect(branchesIn(episodes)).toHaveLength(4);
      for (const episode of branchesIn(episodes)) {
        const { from, step } = episode.branch!;
        const trunk = episodes[from]!;
        expect(episode.steps.slice(0, step)).toEqual(trunk.steps.slice(0, step));
        // The tokens before the action are those that the trunk had there.
        const startOf = ({ sequence }: (typeof trunk.steps)[number]) =>
          sequence!.ids.slice(0, sequence!.spans.find(({ kind }) => kind === "action")!.start);
        expect(startOf(episode.steps[step]!)).toEqual(startOf(trunk.steps[step]!));
        expect(episode.seed).toBe(trunk.seed);
      }
      // From its seed, every episode's actions lead to what it saw.
      for (const { task, seed, steps, firstObservation, return: earned } of episodes) {
        const world = rooms.create() as Env;
        expect(world.reset(task, seed)).toBe(firstObservation);
        const results = steps.map(({ action }) => world.step(action));
        expect(results.map(({ observation }) => observation)).toEqual(
          steps.map(({ observation }) => observation),
        );
        expect(results.reduce((sum, { reward }) => sum + reward, 0)).toBe(earned);
      }
    }
    // A shared step is sampled once and learnt once.
    const played = groups.flatMap(({ episodes }) => episodes.flatMap(ownSteps));
    expect(asked).toHaveLength(played.length);
    expect(transitionsOf(groups).map(({ sequence }) => sequence)).toEqual(
      played.map(({ sequence }) => sequence),
    );
  });
});

it("repeats the steps in worlds that answer later, with the same episodes", async () => {
  const here = await acting(rooms);
  const there = await acting(remote((world, action) => world.step(action)));
  expect(JSON.stringify(there.groups) === JSON.stringify(here.groups)).toBe(true);
});

it("goes back to the start of an episode too", async () => {
  const { groups, config } = await acting(rooms);
  const [episode] = groups[0]!.episodes;
  const style = promptStyle(rooms.prompt, { style: "compact" });
  const run = await startEpisode({
    ...{ environment: rooms, style, task: episode!.task, group: 0, attempt: 9, seed: 1 },
    ...{ fork: { episode: episode!, step: 0 }, stepLimit: config.stepLimit! },
    ...{ invalidActionLimit: 9, policy: "test" },
  });
  expect(run.situation()).toMatchObject({ index: 0, observation: episode!.firstObservation });
  await run.close();
});

it("breaks the branch whose world takes too long, and no other", async () => {
  // The first branch is the fifth world: two groups of two trunks come before.
  const slow = remote((world, action, reset) =>
    reset === 4 ? new Promise<never>(() => undefined) : world.step(action),
  );
  const limited = { ...slow, limits: { ...LIMITS, stepSeconds: 0.05 } };
  const { groups } = await acting(limited);
  const stops = groups.flatMap(({ episodes }) => episodes.map(({ stop }) => stop));
  expect(stops.map((stop, at) => (stop === "broken" ? at : -1)).filter((at) => at >= 0)).toEqual([
    2,
  ]);
});

it("gives up on a world that does not repeat itself, by name", async () => {
  let said = 0;
  const odd = remote((world, action) => {
    const result = world.step(action);
    return { ...result, observation: `${result.observation} (${said++})` };
  });
  const more = acting(odd, { groups: 2, groupSize: 6 });
  await expect(more).rejects.toThrow(/rollout\.branch: the world does not repeat itself/);
});

describe("where an episode is left", () => {
  const task = { id: "train/0", split: "train", type: "test" };
  const steps = [0.9, 0.1, 0.4, 0.2, 0.4].map((q, t) => ({
    ...{ prompt: [], response: "", action: "", wellFormed: true, observation: "", reward: 0 },
    valid: t !== 3,
    sequence: { ids: [1, 2], spans: [], logprobs: [Math.log(q)] },
  }));
  const left = (options: { points: number; choose?: "entropy" | "refused" }) =>
    branchingSteps({ steps, stop: "done", task }, { choose: "entropy", ...options });

  it("is at the highest entropies, of equal ones the earlier, never at the start", () => {
    expect(left({ points: 1 })).toEqual([2]);
    expect(left({ points: 2 })).toEqual([2, 4]);
    expect(left({ points: 9 })).toEqual([1, 2, 3, 4]);
  });

  it("is before the first refused action first", () => {
    expect(left({ points: 1, choose: "refused" })).toEqual([3]);
    expect(left({ points: 2, choose: "refused" })).toEqual([2, 3]);
  });

  it("is nowhere in one that broke, and cannot be told without log-probabilities", () => {
    const how = { points: 1, choose: "entropy" } as const;
    expect(branchingSteps({ steps, stop: "broken", task }, how)).toEqual([]);
    const bare = steps.map(({ sequence: _, ...step }) => step);
    expect(() => branchingSteps({ steps: bare, stop: "done", task }, how)).toThrow(
      /rollout\.branch: .* without log-probabilities/,
    );
  });
});

it("refuses by name what cannot branch", () => {
  const check =
    (changes: object, environment: Environment = rooms) =>
    () =>
      checkBranching(
        tinyConfig({ groupSize: 6, advantage: { name: "tree" }, ...changes }),
        environment,
      );
  const branch = (points: number, width = 2) => ({ rollout: { branch: { points, width } } });
  expect(check(branch(2))).not.toThrow();
  expect(check({ advantage: { name: "grpo" } })).not.toThrow();
  expect(check({})).toThrow(/advantage tree: no episode branches off another/);
  expect(check(branch(2, 4))).toThrow(/its 6 branches does not fit into a group of 6: raise.* 7/);
  expect(check(branch(3))).toThrow(/are 4, and a group of 6 .*set groupSize to 8/);
  expect(check({ ...branch(2), advantage: { name: "grpo" } })).toThrow(/set advantage tree/);
  expect(() => tinyConfig(branch(2, 1))).toThrow(/width/);
  const rollout = { pace: "own", stragglerSeconds: 1, stragglers: "carry", branch: { points: 2 } };
  expect(check({ rollout })).toThrow(/let stragglers break/);
  const bare = remote(() => Promise.reject(new Error())).create() as { clone?: unknown };
  delete bare.clone;
  expect(check(branch(2), { ...rooms, create: () => bare as RemoteEnv })).toThrow(
    /neither copied nor repeated/,
  );
  const played = { ...rooms, policy: () => undefined };
  expect(check(branch(2), { ...played, repeatable: true } as Environment)).not.toThrow();
  expect(check(branch(2), played)).toThrow(/played by a program whose calls are not all recorded/);
});
