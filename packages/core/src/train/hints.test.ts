import { tinyConfig } from "@pawl/training/testing.js";
import { worldTexts } from "@pawl/training/world-text.js";
import { expect, it } from "vitest";
import { computeAdvantages } from "../advantages/advantages.js";
import type { Engine } from "../engine/engine.js";
import type { Env, Environment, RemoteEnv, Task } from "../envs/env.js";
import { openEnvironment } from "../envs/open.js";
import { createRandom, mixSeed } from "../random.js";
import { type Group, ownSteps } from "../rollout/episode.js";
import { promptOptions, promptStyle } from "../text/prompt.js";
import { buildTokenizer } from "../text/tokenizer-builder.js";
import { transitionsOf } from "../update/transitions.js";
import { createActor } from "./actor.js";
import { createCurriculum } from "./curriculum.js";
import { checkHints } from "./hints.js";

const rooms = openEnvironment({
  ...{ name: "household", rooms: 1, receptacles: 4, objects: 3 },
  families: ["pick"],
});

const inner = new WeakMap<object, Env>();
/** The same rooms, in worlds that answer later, and are repeated. */
const remote: Environment = {
  ...rooms,
  expert: (env) => rooms.expert!(inner.get(env)!),
  create(): RemoteEnv {
    const world = rooms.create() as Env;
    const later: RemoteEnv = {
      get goal() {
        return world.goal;
      },
      get taskType() {
        return world.taskType;
      },
      initialContext: () => world.initialContext?.(),
      reset: async (task, seed) => world.reset(task, seed),
      step: async (action) => world.step(action),
      clone: () => Promise.reject(new Error("never asked for")),
      close: async () => undefined,
    };
    inner.set(later, world);
    return later;
  },
};

const style = promptStyle(
  rooms.prompt,
  promptOptions().parse({ style: "compact", history: "all" }),
);
const tokenizer = buildTokenizer(await worldTexts(rooms, style));

/** The groups of an update after these, by a model that says what the seeds of its decisions say. */
async function played(environment: Environment, changes: object, before: readonly Group[] = []) {
  const sample: Engine["sample"] = async (requests) =>
    requests.map(({ seed }) => {
      const random = createRandom(mixSeed(seed ?? 0, "say"));
      const words = ["look", "inventory", "dance"];
      const tokens = [...tokenizer.encode(words[random.int(3)]!), tokenizer.endId!];
      const logprobs = tokens.map(() => -3 * random.next());
      return [{ tokens, logprobs, stopReason: "stop" }];
    });
  const capabilities = { vocabularySize: tokenizer.vocabularySize, maxContext: 4096 };
  const config = tinyConfig({
    ...{ groups: 3, groupSize: 4, stepLimit: 20, maxTokens: 12 },
    curriculum: { rate: 0.5, hints: "expert" },
    ...changes,
  });
  const actor = createActor(
    {
      engine: { capabilities, sample } as unknown as Engine,
      ...{ environment, tokenizer, style, onEpisodes: async () => undefined },
      recorded: [{ update: 0, groups: before }],
    },
    config,
  );
  const { groups } = await actor.draw(1);
  await actor.end();
  return { groups, config };
}

const first = await played(rooms, {});

it("no group begins with a hint before a task has failed", () => {
  const { groups } = first;
  expect(groups.flatMap(({ episodes }) => episodes.flatMap(({ hint }) => hint ?? []))).toEqual([]);
});

it("groups of tasks that fail begin where the teacher left, all in the same state", async () => {
  const { groups, config } = await played(rooms, {}, first.groups);
  const curriculum = createCurriculum(rooms, config);
  curriculum.see(0, first.groups);
  for (const { task, episodes } of groups) {
    const { hint, steps, seed } = episodes[0]!;
    expect(curriculum.hint(task)).toBeGreaterThan(0.3);
    const alone = teacherSteps(task, seed);
    expect(hint).toBe(Math.floor(curriculum.hint(task) * alone.length));
    expect(steps.slice(0, hint).map(({ action }) => action)).toEqual(alone.slice(0, hint));
    for (const episode of episodes) {
      expect(episode).toMatchObject({ hint, seed });
      expect(episode.branch).toBeUndefined();
      expect(episode.steps.length).toBeLessThanOrEqual(20);
      expect(ownSteps(episode).every(({ sequence }) => sequence !== undefined)).toBe(true);
      // From its seed, its actions lead to what it saw.
      const world = rooms.create() as Env;
      world.reset(task, episode.seed);
      for (const { action, valid, observation } of episode.steps)
        if (valid) expect(world.step(action).observation).toBe(observation);
    }
  }
  // A teacher's steps are nobody's to learn, and say nothing about the policy.
  const learnt = transitionsOf(groups);
  expect(learnt.every(({ step, source }) => step >= source.hint!)).toBe(true);
  for (const name of ["grpo", "rloo", "gigpo"] as const) {
    const { advantages } = computeAdvantages(groups, { name });
    for (const [g, { episodes }] of groups.entries())
      for (const [e, { hint, steps }] of episodes.entries()) {
        expect(advantages[g]![e]).toHaveLength(steps.length);
        expect(advantages[g]![e]!.slice(0, hint)).toEqual(new Array(hint).fill(0));
      }
  }
});

/** The teacher's actions in a task. */
function teacherSteps(task: Task, seed: number): readonly string[] {
  const world = rooms.create() as Env;
  world.reset(task, seed);
  const actions: string[] = [];
  for (let done = false; !done; ) {
    const action = rooms.expert!(world);
    actions.push(action);
    done = world.step(action).done;
  }
  return actions;
}

it("repeats the teacher's steps in worlds that answer later, with the same episodes", async () => {
  const here = await played(rooms, {}, first.groups);
  const there = await played(remote, {}, first.groups);
  expect(there.groups.map(({ episodes }) => episodes.map(({ hint }) => hint))).toEqual(
    here.groups.map(({ episodes }) => episodes.map(({ hint }) => hint)),
  );
  expect(JSON.stringify(there.groups) === JSON.stringify(here.groups)).toBe(true);
});

it("a group whose teacher fails begins with its task, and no other", async () => {
  const whole = await played(rooms, {}, first.groups);
  const lost = whole.groups[1]!.episodes[0]!;
  const { groups } = await played(
    {
      ...rooms,
      expert(env) {
        if (env.goal === lost.goal) throw new Error("no idea");
        return rooms.expert!(env);
      },
    },
    {},
    first.groups,
  );
  for (const [g, { episodes }] of groups.entries())
    for (const [e, episode] of episodes.entries()) {
      if (episode.goal === lost.goal) expect(episode.hint).toBeUndefined();
      else expect(episode).toEqual(whole.groups[g]!.episodes[e]);
    }
  expect(groups.some(({ episodes }) => episodes[0]!.hint !== undefined)).toBe(true);
});

it("trees grow from where the hint ended", async () => {
  const { groups } = await played(
    rooms,
    { advantage: { name: "tree" }, rollout: { branch: { points: 1 } } },
    first.groups,
  );
  for (const { episodes } of groups) {
    const { hint = 0 } = episodes[0]!;
    expect(hint).toBeGreaterThan(0);
    expect(episodes.map((episode) => episode.hint)).toEqual([hint, hint, hint, hint]);
    for (const { branch } of episodes.slice(2)) expect(branch!.step).toBeGreaterThan(hint);
  }
  const { advantages } = computeAdvantages(groups, { name: "tree" });
  for (const [g, { episodes }] of groups.entries())
    for (const [e, { hint, branch }] of episodes.entries()) {
      const from = branch?.step ?? hint!;
      expect(advantages[g]![e]!.slice(0, from)).toEqual(new Array(from).fill(0));
    }
});

it("refuses hints that nobody can give, by name", () => {
  const check = (curriculum: object, environment: Partial<Environment> = {}, rollout = {}) =>
    checkHints(tinyConfig({ curriculum, rollout }), { ...rooms, ...environment });
  const hints = { rate: 0.5, hints: "expert" };
  check({});
  check(hints);
  expect(() => check({ hints: "expert" })).toThrow(/curriculum.hints expert: .*curriculum.rate/);
  expect(() => check(hints, { expert: undefined })).toThrow(/has no expert: name another teacher/);
  const carry = { pace: "own", stragglerSeconds: 1, stragglers: "carry" };
  expect(() => check(hints, {}, carry)).toThrow(/let stragglers break/);
  const create = () => Object.assign(remote.create(), { clone: undefined }) as RemoteEnv;
  expect(() => check(hints, { create })).toThrow(/neither copied nor repeated/);
});
