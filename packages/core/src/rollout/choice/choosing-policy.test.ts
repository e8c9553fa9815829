import { describe, expect, it } from "vitest";
import type { ActingEngine, Sample, SampleRequest } from "../../engine/engine.js";
import { isRemote } from "../../envs/env.js";
import { openEnvironment } from "../../envs/open.js";
import {
  appendObservation,
  appendResponse,
  encodeResponse,
  stepPrompt,
} from "../../text/encode.js";
import { promptStyle } from "../../text/prompt.js";
import { buildTokenizer } from "../../text/tokenizer-builder.js";
import type { Episode } from "../episode.js";
import { enginePolicy } from "../policies/engine.js";
import type { Situation } from "../policy.js";
import { rollout } from "../rollout.js";
import { type Choosing, choosingPolicy, noCost } from "./choosing-policy.js";
import { CUT, exactForesight, modelForesight, ownForesight } from "./foresight.js";
import { createKnowledge } from "./knowledge.js";
import { refusalReader } from "./refusals.js";

const environment = openEnvironment({ name: "household", rooms: 1, receptacles: 4, objects: 3 });
const style = promptStyle(environment.prompt, { style: "compact", history: "all" });
const tasks = environment.tasks("train").slice(0, 1);
const world = environment.create();
if (isRemote(world)) throw new Error("the household is a world in this process");
const first = world.reset(tasks[0]!);
const [go] = world.admissibleActions!().filter((action) => action.startsWith("go to"));
const wrong = "take mug 9 from shelf 9";
const answer = world.clone().step(go!).observation;
const refusal = world.clone().step(wrong).observation;
const tokenizer = buildTokenizer([world.goal, first, go!, wrong, answer, refusal]);

const write = (text: string, end: string): readonly number[] => [
  ...tokenizer.encode(text, { plain: true }),
  ...tokenizer.encode(end),
];
const sampleOf = (tokens: readonly number[], logprob = -0.01): Sample => ({
  tokens,
  logprobs: tokens.map(() => logprob),
  stopReason: "stop",
});

/** An engine that says these actions, and knows what follows them; the requests it was given. */
function actor(actions: readonly string[], model?: string) {
  const asked: SampleRequest[] = [];
  const capabilities = { vocabularySize: tokenizer.vocabularySize, maxContext: 4096 };
  const engine = {
    capabilities,
    sample: async (requests: readonly SampleRequest[]) => {
      asked.push(...requests);
      return requests.map(({ prompt, maxTokens, count = 1 }) => {
        const ids = Array.from(prompt);
        const from = ids.lastIndexOf(tokenizer.id("<|see|>")!) + 1;
        if (ids.at(-1) === tokenizer.id("<|do|>"))
          return actions.slice(0, count).map((action) => sampleOf(write(action, "<|see|>")));
        const isWrong = tokenizer.decode(ids.slice(0, from)).endsWith(`${wrong}<|see|>`);
        const said = write(model ?? (isWrong ? refusal : answer), "<|do|>");
        return [sampleOf(said.slice(ids.length - from).slice(0, maxTokens))];
      });
    },
  } as unknown as ActingEngine;
  const acting = { engine, tokenizer, style, sampling: { maxTokens: 10, temperature: 1 } };
  return { asked, acting };
}

const reader = refusalReader(
  Array.from({ length: 20 }, (_, i) => [
    { observation: refusal, valid: false },
    { observation: i % 2 ? answer : "You take mug 1 from shelf 1.", valid: true },
  ]).flat(),
);

async function firstEpisode(
  { acting }: ReturnType<typeof actor>,
  {
    candidates = 3,
    beta = 2,
    foresight,
  }: Partial<Pick<Choosing, "candidates" | "beta" | "foresight">>,
) {
  const cost = noCost();
  const policy = choosingPolicy(
    acting,
    { candidates, beta, foresight, whiteSpace: "collapse" },
    cost,
  );
  const [group] = await rollout({
    environment,
    policy,
    style,
    tasks,
    groupSize: 1,
    seed: 0,
    stepLimit: 1,
  });
  return { episode: group!.episodes[0]!, cost };
}

/** As much of an answer as tells. */
const opening = (text: string): string =>
  `${tokenizer.decode(write(text, "").slice(0, 2)).trim()}${CUT}`;
const chosenIn = ({ steps }: Episode) => steps[0]!.candidates!.find(({ chosen }) => chosen)!.action;

describe("choosing", () => {
  it("takes what most samples agree on, and records what it was chosen from", async () => {
    const { episode, cost } = await firstEpisode(actor([go!, wrong, wrong]), {});
    expect(episode.steps[0]).toMatchObject({
      action: wrong,
      valid: false,
      candidates: [
        { action: wrong, votes: 2, score: Math.log(2), chosen: true },
        { action: go, votes: 1, score: 0 },
      ],
    });
    expect(cost).toMatchObject({ steps: 1, contested: 1, read: 0, sampled: 0 });
    expect(cost.candidates).toBeGreaterThan(cost.acted);
  });

  it("leaves what it foresees to be refused, and says what the world would have answered", async () => {
    const player = actor([go!, wrong, wrong]);
    const foresight = modelForesight(ownForesight(player.acting), reader, { whole: true });
    const { episode, cost } = await firstEpisode(player, { foresight });
    const [refused, taken] = episode.steps[0]!.candidates!;
    expect(chosenIn(episode)).toBe(go);
    expect(refused).toMatchObject({
      ...{ action: wrong, predicted: refusal, truth: { valid: false } },
    });
    expect(refused!.refused).toBeGreaterThan(0.8);
    expect(taken).toMatchObject({ action: go, predicted: answer, truth: { valid: true } });
    expect(taken!.refused).toBeLessThan(0.2);
    expect(cost.sampled).toBe(write(refusal, "<|do|>").length + write(answer, "<|do|>").length);
    const knowledge = createKnowledge();
    knowledge.add(episode);
    expect(knowledge.result()).toMatchObject({
      candidates: 2,
      recall: 1,
      falseAlarms: 0,
      exact: 1,
    });
  });

  it("is only as good as the model: one that foresees the same for all leaves it to the votes", async () => {
    const player = actor([go!, wrong, wrong], answer);
    const foresight = modelForesight(ownForesight(player.acting), reader, { whole: true });
    const { episode } = await firstEpisode(player, { foresight });
    expect(chosenIn(episode)).toBe(wrong);
    const knowledge = createKnowledge();
    knowledge.add(episode);
    expect(knowledge.result()).toMatchObject({
      refused: 0.5,
      recall: 0,
      falseAlarms: 0,
      exact: 0.5,
      answers: [{ from: 0.8, candidates: 2, happened: 0.5 }],
    });
  });

  it("predicts no more than tells, where no answers are wanted, and finds the same", async () => {
    const candidatesOf = async (whole: boolean, some: typeof reader) => {
      const player = actor([go!, wrong, wrong]);
      const foresight = modelForesight(ownForesight(player.acting), some, { whole });
      const { episode, cost } = await firstEpisode(player, { foresight });
      return { candidates: episode.steps[0]!.candidates!, cost };
    };
    const all = await candidatesOf(true, reader);
    const some = await candidatesOf(false, reader);
    expect(some.candidates.map(({ refused }) => refused)).toEqual(
      all.candidates.map(({ refused }) => refused),
    );
    expect(some.candidates.map(({ predicted }) => predicted)).toEqual(
      [refusal, answer].map(opening),
    );
    expect(some.cost.sampled).toBe(4);
    // What does not tell is predicted to its end, and its opening is read once more.
    const vague = refusalReader(
      Array.from({ length: 20 }, (_, i) => ({ observation: "Maybe.", valid: i % 2 === 0 })),
    );
    const more = await candidatesOf(false, vague);
    expect(more.candidates).toEqual((await candidatesOf(true, vague)).candidates);
    expect(more.cost.sampled).toBe(all.cost.sampled);
    expect(more.cost.read).toBe(2 * all.cost.read + 4);
  });

  it("tries candidates on copies of the world, which stays as it is", async () => {
    const { episode } = await firstEpisode(actor([go!, wrong, wrong]), {
      foresight: exactForesight,
    });
    expect(chosenIn(episode)).toBe(go);
    expect(episode.steps).toMatchObject([{ valid: true, observation: answer }]);
    const knowledge = createKnowledge();
    knowledge.add(episode);
    expect(knowledge.result()).toBeUndefined();
  });

  it("asks nothing where all candidates are the same, or cannot be read", async () => {
    const same = actor([go!, go!, go!]);
    const own = modelForesight(ownForesight(same.acting), reader);
    const { episode, cost } = await firstEpisode(same, { foresight: own });
    expect(same.asked).toHaveLength(1);
    expect(cost).toMatchObject({ contested: 0, sampled: 0 });
    expect(episode.steps[0]!.candidates).toEqual([
      { action: go, votes: 3, score: Math.log(3), chosen: true },
    ]);
    const unreadable = actor(["", "", go!]);
    const foresight = modelForesight(ownForesight(unreadable.acting), reader);
    const chosen = await firstEpisode(unreadable, { foresight });
    expect(unreadable.asked).toHaveLength(2);
    expect(chosen.episode.steps[0]).toMatchObject({ action: go, valid: true });
  });

  it("with one candidate acts as the policy without it", async () => {
    const player = actor([go!]);
    const { episode } = await firstEpisode(player, { candidates: 1 });
    const policy = enginePolicy(player.acting);
    const [group] = await rollout({
      environment,
      policy,
      style,
      tasks,
      groupSize: 1,
      seed: 0,
      stepLimit: 1,
    });
    const { candidates: _, ...step } = episode.steps[0]!;
    expect({ ...step, prompt: undefined }).toEqual({
      ...group!.episodes[0]!.steps[0],
      prompt: undefined,
    });
  });
});

describe("asking for what follows an action", () => {
  const worldTools = openEnvironment({ name: "desk", level: "easy" });
  const speaker = buildTokenizer([world.goal, first, go!, answer], { chat: true });
  it.each([
    ["compact", environment, tokenizer],
    ["full", environment, speaker],
    ["chat", environment, speaker],
    ["chat", worldTools, speaker],
  ] as const)(
    "in the style %s goes up to where the answer begins",
    (name, { prompt, ...of }, tokens) => {
      const asked = promptStyle(prompt, { style: name });
      const env = of.create();
      if (isRemote(env)) throw new Error("a world in this process");
      const observation = env.reset(of.tasks("train")[0]!);
      const [action] = env.admissibleActions!();
      const tools = env.tools?.();
      const view = {
        goal: env.goal,
        firstObservation: observation,
        observation,
        steps: [],
        index: 0,
      };
      const pieces = asked.render({ ...view, admissible: undefined, tools });
      const { sequence } = stepPrompt(tokens, asked, () => pieces, undefined, tools);
      const response = asked.format(action!);
      const answered = appendResponse(sequence, { ids: encodeResponse(tokens, asked, response) });
      const {
        prompt: promptOf,
        ends,
        known,
      } = ownForesight({
        engine: {} as ActingEngine,
        tokenizer: tokens,
        style: asked,
      });
      const situation = { observation, tools } as unknown as Situation;
      const question = { situation, action: action!, response, answered };
      const ids = promptOf(question);
      const next = env.step(action!).observation;
      const followed = appendObservation(answered, tokens, asked, next, false, { response, tools });
      const seen = followed.spans.findLast(({ kind }) => kind === "observation")!;
      const begins = followed.spans.find(
        ({ kind, start }) => kind === "observation" && start >= answered.ids.length,
      )!;
      expect(ids).toEqual(followed.ids.slice(0, begins.start));
      expect(ends).toContain(followed.ids[seen.end - 1]);
      expect(known!(question)).toBe(sequence.ids.length);
    },
  );
});

describe("how a world refuses", () => {
  it("is known by the opening, whatever the numbers are", () => {
    const read = refusalReader([
      ...Array.from({ length: 30 }, (_, i) => ({ observation: `You see box ${i}.`, valid: true })),
      ...Array.from({ length: 10 }, (_, i) => ({
        observation: `You hold no mug ${i}.`,
        valid: false,
      })),
    ]);
    expect(read.base).toBeCloseTo(11 / 42);
    expect(read.chance("You hold no mug 999")).toBeGreaterThan(0.9);
    expect(read.chance("You see")).toBeLessThan(0.05);
    expect(read.chance("Something else")).toBeCloseTo(read.base, 1);
  });
});
