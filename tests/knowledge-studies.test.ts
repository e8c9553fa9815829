/** What the studies of knowledge at work add to worlds, prompts and records. */
import { readFileSync } from "node:fs";
import { isRemote } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { teacherPolicy } from "@pawl/core/rollout/policies/config.js";
import { rollout } from "@pawl/core/rollout/rollout.js";
import { encodePrompt } from "@pawl/core/text/encode.js";
import { promptStyle, promptText } from "@pawl/core/text/prompt.js";
import { buildTokenizer } from "@pawl/core/text/tokenizer-builder.js";
import { imitationSequences } from "@pawl/core/train/sft.js";
import { afterAll, beforeAll, expect, it } from "vitest";
import * as changed from "../bench/changed.js";
import * as knowledge from "../bench/knowledge.js";
import { shuffledObservations } from "../bench/little-data.js";
import {
  openingOf,
  registerStating,
  STATING,
  type Statement,
  statedIn,
  statingTeacher,
} from "../bench/shared/foretelling.js";

const settings = { rooms: 1, receptacles: 4, objects: 3, families: ["pick", "look"] };
const environment = openEnvironment({ name: "household", ...settings });

beforeAll(registerStating);

async function shown(statement: Statement, style: ReturnType<typeof promptStyle>, count = 8) {
  const teacher = teacherPolicy(environment, "seeker", 0.3);
  const groups = await rollout({
    ...{ environment, style, groupSize: 1, seed: 1, stepLimit: 10 },
    policy: statingTeacher(teacher, style, statement),
    tasks: environment.tasks("train").slice(0, count),
  });
  return groups.flatMap(({ episodes }) => episodes);
}

it("the pages have the tables of their recorded runs", () => {
  const table = knowledge.writtenPart(knowledge.readStudy());
  expect(readFileSync(knowledge.PAGE, "utf8")).toContain(table);
  const worlds = changed.writtenPart(changed.readResults());
  expect(readFileSync(changed.PAGE, "utf8")).toContain(worlds);
});

it("a loose switch works the second time in a row, in copies too", () => {
  const task = environment.tasks("train").find(({ type }) => type === "look")!;
  const plain = environment.create();
  if (isRemote(plain)) throw new Error("a world in this process");
  const env = changed.changedWorld(plain);
  env.reset(task);
  const lamp = env.admissibleActions!()
    .find((action) => /^go to \w*lamp /.test(action))!
    .slice(6);
  const [go, on] = [`go to ${lamp}`, `switch on ${lamp}`];
  expect(env.step(on).info.valid).toBe(false);
  env.step(go);
  const off = `The ${lamp} is off. You hold nothing.`;
  expect(env.step(on)).toMatchObject({ observation: off, info: { valid: true } });
  const copy = env.clone();
  expect(env.step(on).observation).toBe(`The ${lamp} is on now. You hold nothing.`);
  copy.step("look");
  expect(copy.step(on).observation).toBe(off);
  expect(copy.step(on).observation).toBe(`The ${lamp} is on now. You hold nothing.`);
});

it.each([STATING, "chat"])(
  "in the style %s a teacher states how the world will answer",
  async (name) => {
    const style = promptStyle(environment.prompt, { style: name as "chat", history: "all" });
    const episodes = await shown("foretell", style);
    const steps = episodes.flatMap((episode) => episode.steps);
    expect(steps.length).toBeGreaterThan(20);
    for (const { response, action, observation } of steps) {
      expect(statedIn(response).statement).toBe(openingOf(observation));
      expect(style.parse(response)).toEqual({ action, wellFormed: true });
      expect(style.format(action, statedIn(response).statement)).toBe(response);
    }
    const [first] = await shown("recall", style, 1);
    expect(statedIn(first!.steps[1]!.response).statement).toBe(
      openingOf(first!.steps[0]!.observation),
    );
    const [silent] = await shown("act", style, 1);
    for (const { response, action } of silent!.steps) expect(response).toBe(action);
  },
);

it("an episode with statements is one sequence, whose responses are learnt with them", async () => {
  const style = promptStyle(environment.prompt, { style: STATING as "compact", history: "all" });
  const [episode] = await shown("foretell", style, 1);
  const texts = episode!.steps.flatMap((step) => [promptText(step.prompt), step.response]);
  const tokenizer = buildTokenizer([...texts, ...episode!.steps.map((step) => step.observation)]);
  const learnt = { observationWeight: 0, randomActions: true };
  const sequences = imitationSequences(episode!, { tokenizer, style }, learnt);
  expect(sequences).toHaveLength(1);
  const [{ ids, targets }] = sequences as [(typeof sequences)[0]];
  const said = Array.from(ids).filter((_, at) => targets![at] === 1);
  const responses = episode!.steps.map(({ response }) => `${response}<|see|>`);
  expect(tokenizer.decode(said).replace(/\s+/g, "")).toBe(responses.join("").replace(/\s+/g, ""));
  expect(encodePrompt(tokenizer, style, episode!.steps[1]!.prompt).ids).toEqual(
    Array.from(ids).slice(0, encodePrompt(tokenizer, style, episode!.steps[1]!.prompt).ids.length),
  );
});

it("shuffles what followed actions, and shows prompts as they would have been", async () => {
  const style = promptStyle(environment.prompt, { style: "compact", history: "all" });
  const episodes = await shown("act", style);
  const mixed = shuffledObservations(episodes, style, 0);
  const seen = (some: readonly Episode[]) =>
    some.flatMap(({ steps }) => steps.map(({ observation }) => observation));
  expect([...seen(mixed)].sort()).toEqual([...seen(episodes)].sort());
  expect(seen(mixed)).not.toEqual(seen(episodes));
  mixed.forEach(({ steps, goal }, e) => {
    expect(steps.map(({ action }) => action)).toEqual(
      episodes[e]!.steps.map(({ action }) => action),
    );
    const text = promptText(steps.at(-1)!.prompt);
    expect(text).toContain(goal);
    for (const { observation } of steps.slice(0, -1)) expect(text).toContain(observation);
  });
  expect(shuffledObservations(episodes, style, 0)).toEqual(mixed);
});

afterAll(() => environment.close?.());
