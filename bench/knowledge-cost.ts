/**
 * What choosing before acting costs, with the agent in examples/try-start in the household, on the
 * embedded engine.
 *
 *   npm run bench -- knowledge-cost [--rounds 5] [--tasks 64] [--threads 1]
 *
 * Ways of acting take turns on the same tasks of test_unseen. The first round only warms up. Processor
 * time, which other programs change less than time, is all threads'.
 *
 * `self` predicts no more of an answer than tells, as to find β; `whole` all of it, as it is recorded.
 *
 *   WAY_tokens      tokens that the model reads per step ÷ those of acting: all but the last of a sample,
 *                   which only the next step reads. What was read for an earlier step counts once, and
 *                   so does what several samples of a prompt begin with, and predictions: none of it is
 *                   computed again
 *   WAY_cpu         processor seconds per step ÷ those of acting
 *   WAY_s           the same by the clock
 */
import { cpus, loadavg } from "node:os";
import { parseArgs } from "node:util";
import type { ActingEngine } from "@pawl/core/engine/engine.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { findEnvKind } from "@pawl/core/envs/registry.js";
import {
  type ChoiceCost,
  choosingPolicy,
  noCost,
} from "@pawl/core/rollout/choice/choosing-policy.js";
import {
  exactForesight,
  type Foresight,
  modelForesight,
  ownForesight,
} from "@pawl/core/rollout/choice/foresight.js";
import { refusalReader } from "@pawl/core/rollout/choice/refusals.js";
import type { Episode, Group } from "@pawl/core/rollout/episode.js";
import { enginePolicy } from "@pawl/core/rollout/policies/engine.js";
import type { Policy } from "@pawl/core/rollout/policy.js";
import { rollout } from "@pawl/core/rollout/rollout.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { evaluationTasks } from "@pawl/core/train/evaluate.js";
import { trainConfig } from "@pawl/training/config.js";
import { openModel } from "@pawl/training/open-model.js";
import { findModel } from "@pawl/training/saved-model.js";
import { quick } from "../recipes/quick.js";

const START = "examples/try-start";
const WAYS = ["acting", "vote", "self", "whole", "exact"] as const;
type Way = (typeof WAYS)[number];

/** Seconds of all threads, and by the clock. */
interface Spent {
  readonly cpu: number;
  readonly clock: number;
}

async function timed<T>(work: () => Promise<T>): Promise<readonly [T, Spent]> {
  const [used, from] = [process.cpuUsage(), performance.now()];
  const result = await work();
  const { user, system } = process.cpuUsage(used);
  return [result, { cpu: (user + system) / 1e6, clock: (performance.now() - from) / 1000 }];
}

/** Tokens by what stands before them: each once, whoever has it. */
interface Beginnings extends Map<number, Beginnings> {}

/** Adds tokens, and says how many were not there. */
function add(to: Beginnings, ids: ArrayLike<number>): number {
  let [place, added] = [to, 0];
  for (const id of Array.from(ids)) {
    const next = place.get(id);
    if (next === undefined) added += 1;
    place = next ?? place.set(id, new Map()).get(id)!;
  }
  return added;
}

/**
 * An engine that tells how many tokens it reads besides the prompts of actions: what samples, or
 * predictions in one state, begin with once.
 */
function counting<E extends ActingEngine>(engine: E, onComputed: (tokens: number) => void): E {
  let acted: readonly ArrayLike<number>[] = [];
  return {
    ...engine,
    async sample(...asked: Parameters<E["sample"]>) {
      const [requests, options] = asked;
      const samples = await engine.sample(requests, options);
      const isPrediction = requests[0]?.continued === "branch";
      if (!isPrediction) acted = requests.map(({ prompt }) => prompt);
      const known: Beginnings = new Map();
      for (const prompt of acted) add(known, prompt);
      requests.forEach(({ prompt }, i) => {
        onComputed(add(known, prompt));
        const before = Array.from(prompt);
        for (const { tokens } of samples[i]!)
          onComputed(add(known, [...before, ...tokens.slice(0, -1)]));
      });
      return samples;
    },
  };
}

const median = (numbers: readonly number[]): number =>
  [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)]!;
const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);
const rounded = (value: number): number => Number(value.toPrecision(3));

/** Tokens of the episodes, each once. */
const tokensOf = (episodes: readonly Episode[]): number =>
  sum(episodes.map(({ steps }) => steps.at(-1)?.sequence?.ids.length ?? 0));

export async function main(args: readonly string[] = []): Promise<object> {
  const { values: options } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: "string", default: "5" },
      tasks: { type: "string", default: "64" },
      threads: { type: "string", default: "1" },
    },
  });
  const config = trainConfig(findEnvKind(quick.env.name)).parse({
    ...quick,
    model: { start: START },
    engine: { threads: Number(options.threads) },
    warmStart: { episodes: 0 },
  });
  const environment = openEnvironment({ ...quick.env });
  const { weights, tokenizer: files } = await findModel(START);
  const start = { folder: weights, tokenizer: files };
  const { engine, tokenizer } = await openModel({ start, engine: config.engine });
  const style = promptStyle(environment.prompt, config.prompt, tokenizer);
  let computed = 0;
  const acting = {
    engine: counting(engine, (tokens) => {
      computed += tokens;
    }),
    tokenizer,
    style,
    sampling: { maxTokens: config.maxTokens, temperature: 1 },
  };
  const tasks = evaluationTasks(environment, "test_unseen", { tasks: Number(options.tasks) });
  const play = (policy: Policy): Promise<readonly Group[]> =>
    rollout({
      ...{ environment, policy, style, tasks, groupSize: 1, seed: 0 },
      stepLimit: quick.stepLimit,
    });
  const rounds = Array.from({ length: Number(options.rounds) + 1 }, (_, round) => round);

  const seen = (await play(enginePolicy(acting))).flatMap(({ episodes }) => episodes);
  const reader = refusalReader(seen.flatMap(({ steps }) => steps));
  const own = (whole: boolean): Foresight =>
    modelForesight(ownForesight(acting), reader, { whole });
  const policyOf = (way: Way, cost: ChoiceCost): Policy => {
    if (way === "acting") return enginePolicy(acting);
    const foresight: Foresight | undefined = {
      vote: undefined,
      self: own(false),
      whole: own(true),
      exact: exactForesight,
    }[way];
    const choosing = { candidates: 8, beta: 0.5, foresight, whiteSpace: environment.whiteSpace };
    return choosingPolicy(acting, choosing, cost);
  };
  /** Tokens and seconds of a step. */
  const measure = async (way: Way) => {
    const cost = noCost();
    computed = 0;
    const [groups, spent] = await timed(() => play(policyOf(way, cost)));
    const episodes = groups.flatMap((group) => group.episodes);
    const steps = sum(episodes.map((episode) => episode.steps.length));
    const acted = way === "acting" ? computed : cost.acted - cost.steps;
    return {
      tokens: (tokensOf(episodes) - acted + computed) / steps,
      cpu: spent.cpu / steps,
      clock: spent.clock / steps,
    };
  };
  const ways: Record<string, number> = {};
  const played: Record<Way, Awaited<ReturnType<typeof measure>>>[] = [];
  for (const round of rounds) {
    const measured = {} as (typeof played)[number];
    // In turns, so that nobody always goes first.
    for (const at of WAYS.keys()) {
      const way = WAYS[(at + round) % WAYS.length]!;
      measured[way] = await measure(way);
    }
    if (round > 0) played.push(measured);
  }
  for (const way of WAYS.slice(1))
    for (const [name, of] of [
      ["tokens", "tokens"],
      ["cpu", "cpu"],
      ["s", "clock"],
    ] as const)
      ways[`${way}_${name}`] = rounded(median(played.map((one) => one[way][of] / one.acting[of])));

  await engine.dispose();
  return {
    ...ways,
    acting_tokens: rounded(median(played.map(({ acting: one }) => one.tokens))),
    acting_ms: rounded(1000 * median(played.map(({ acting: one }) => one.cpu))),
    machine: `${cpus().length} × ${cpus()[0]!.model}, Node ${process.version}, ${options.threads} threads`,
    load: rounded(loadavg()[0]!),
    rounds: Number(options.rounds),
  };
}
