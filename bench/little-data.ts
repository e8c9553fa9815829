/**
 * With few demonstrations, is a start that has first learnt observations better, and is it what they
 * say of the world (docs/results/warm-starts.md, "Little data")?
 *
 *   npm run bench -- little-data                    prints the page's tables, from bench/little-data.json
 *   npm run bench -- little-data --write            writes them into the page
 *   npm run bench -- little-data --run [--seeds 0,1,2,3,4] [--demonstrations 25,50,100] [--jobs 2]
 *                                [--arms actions,more,observations,shuffled] [--out runs/little-data]
 *                                                   makes what is missing there, one thread each, and reads
 *                                                   what is there into bench/little-data.json
 *   npm run bench -- little-data --run --world alfworld --model smollm2 --engine URL
 *                                                   the same in ALFWorld, with a model folder and an engine
 *                                                   server; it wants runs/teacher (recipes/alfworld-smollm2.ts)
 *
 * On 16 cores: --run --jobs 16. `--run --rehearse` is the same in minutes, to see that the commands work.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { createRandom, mixSeed } from "@pawl/core/random.js";
import type { Episode, Step } from "@pawl/core/rollout/episode.js";
import { readMetrics } from "@pawl/core/runs/metrics-file.js";
import { createRun, openRun } from "@pawl/core/runs/run-folder.js";
import { type PromptStyle, promptStyle } from "@pawl/core/text/prompt.js";
import { table } from "@pawl/studies/markdown.js";
import { estimate, pairedDifference } from "@pawl/studies/statistics.js";
import { number, withInterval } from "./shared/figures.js";
import { type Job, madeHere, makeAll, pawl } from "./shared/jobs.js";
import { QUICK_WORLD } from "./shared/own-play.js";
import { writePart } from "./shared/page-part.js";

export const PAGE = "docs/results/warm-starts.md";
const DATA = "bench/little-data.json";
const MARKS = [
  "<!-- npm run bench -- little-data --write -->",
  "<!-- end of little data -->",
] as const;

/** What RL starts from. */
const ARMS = {
  actions: "demonstrations",
  more: "demonstrations, for as many tokens",
  observations: "observations, then demonstrations",
  shuffled: "shuffled observations, then demonstrations",
} as const;
type Arm = keyof typeof ARMS;

/** Where it is tried. */
const WORLDS = {
  quick: {
    train: ["train", "--quick"],
    explore: QUICK_WORLD,
    /** Episodes of demonstrations that are imitated in all; the same ones again and again. */
    passes: 2000,
    /** The same where nothing else is learnt: an episode of random actions has 1.35 × the steps, and is read twice. */
    more: 4700,
    observations: ["--warm-start.sft.epochs", "2"],
    imitation: [] as readonly string[],
    rl: ["--updates", "12", "--evaluation.every", "12", "--evaluation.tasks", "200"],
  },
  alfworld: {
    train: ["train", "--config", "recipes/alfworld-smollm2.ts"],
    explore: [
      ...["--env", "alfworld", "--env.order", "0", "--prompt.style", "chat", "--step-limit", "30"],
    ],
    passes: 1000,
    more: 2800,
    observations: [
      ...["--warm-start.sft.epochs", "1", "--warm-start.sft.optimizer.learning-rate", "1e-4"],
    ],
    imitation: ["--warm-start.runs", "runs/teacher"],
    rl: [
      ...["--updates", "30", "--evaluation.every", "30", "--evaluation.tasks", "140"],
      ...["--optimizer.learning-rate", "4e-5", "--checkpoint-every", "30"],
    ],
  },
} as const;
type WorldName = keyof typeof WORLDS;

/** Reward-free episodes, by random actions. */
const EXPLORED = 1000;
const SPLITS = ["valid_seen", "valid_unseen"] as const;

/** Percent of the tasks of a split, before RL and after it. */
type Pair = readonly [before: number, after: number];
type Result = Readonly<Record<(typeof SPLITS)[number], Pair>>;
/** Results by world, demonstrations, arm and seed. */
interface Results {
  readonly machine: string;
  readonly date: string;
  readonly results: Readonly<
    Record<
      string,
      Readonly<Record<string, Readonly<Partial<Record<Arm, Readonly<Record<string, Result>>>>>>>
    >
  >;
}

/** The same episodes in which every action is followed by what another one brought, anywhere. */
export function shuffledObservations(
  episodes: readonly Episode[],
  style: Pick<PromptStyle, "render">,
  seed: number,
): readonly Episode[] {
  const seen = episodes.flatMap(({ steps }) => steps.map(({ observation }) => observation));
  const others = createRandom(mixSeed(seed, "shuffled observations")).shuffle(seen).values();
  return episodes.map((episode) => {
    const steps: Step[] = [];
    for (const step of episode.steps) {
      const observation = steps.at(-1)?.observation ?? episode.firstObservation;
      const view = { ...episode, observation, steps: [...steps], admissible: undefined };
      const prompt = style.render({ ...view, index: steps.length });
      steps.push({ ...step, prompt, observation: others.next().value! });
    }
    return { ...episode, steps };
  });
}

/** Records them as a run of their own. */
function shuffleRun(from: string, folder: string, seed: number): void {
  const fail = (problem: string): never => {
    throw new Error(problem);
  };
  const { manifest, episodes } = openRun(from, fail);
  const { env, prompt } = manifest.config as Parameters<typeof configOf>[0];
  const environment = openEnvironment(configOf({ env, prompt }).env);
  const style = promptStyle(environment.prompt, prompt);
  const run = createRun({ folder, kind: "rollout", seed, config: manifest.config }, fail);
  run.recordEpisodes(shuffledObservations([...episodes()], style, seed));
  run.finish("done");
}

/** The settings that a record of play has. */
const configOf = (config: {
  readonly env: { readonly name: string };
  readonly prompt: Parameters<typeof promptStyle>[1];
}) => config;

/** What an invocation was given. */
interface Given {
  readonly world: WorldName;
  readonly model?: string | undefined;
  readonly engine?: string | undefined;
  readonly out: string;
  readonly rehearse: boolean;
}

/** What an arm needs, in the order in which it is wanted. */
function jobsOf(arm: Arm, demonstrations: number, seed: string, given: Given): readonly Job[] {
  const { out, rehearse } = given;
  const world = WORLDS[given.world];
  const engine =
    given.engine === undefined
      ? ["--engine.threads", "1"]
      : ["--engine.address", given.engine, "--engine.copy"];
  const train = [
    ...[...world.train, ...engine, "--seed", seed, "--paw.loss", "off", "--gradients.every", "0"],
    ...["--keep", "1", "--quiet", "--warm-start.sft.mean", "each"],
  ];
  const fresh = given.model === undefined ? [] : ["--model.start", given.model];
  const folder = (stage: string): string => join(out, `${given.world}-${stage}-${seed}`);
  const observed = arm === "observations" || arm === "shuffled";
  const explored = String(rehearse ? 20 : EXPLORED);
  const explore: Job = {
    makes: folder("explored"),
    make: (partial) =>
      pawl(
        ...["rollout", ...world.explore, "--policy", "random", "--split", "train"],
        ...["--groups", explored, "--group-size", "1", "--seed", seed, "--out", partial],
      ),
  };
  const shuffle: Job = {
    makes: folder("mixed"),
    needs: explore.makes,
    make: async (partial) => shuffleRun(explore.makes, partial, Number(seed)),
  };
  const record = arm === "shuffled" ? shuffle.makes : explore.makes;
  const learn: Job = {
    makes: folder(`learnt-${arm}`),
    needs: record,
    make: (partial) =>
      pawl(
        ...[...train, ...fresh, "--updates", "0", "--evaluation.every", "0", "--out", partial],
        ...["--warm-start.runs", record, "--warm-start.episodes", explored],
        ...["--warm-start.sft.action-weight", "0", "--warm-start.sft.observation-weight", "1"],
        ...world.observations,
      ),
  };
  const episodes = arm === "more" ? world.more : world.passes;
  const passes = rehearse ? 1 : Math.round(episodes / demonstrations);
  const run: Job = {
    makes: folder(`${demonstrations}-${arm}`),
    needs: observed ? learn.makes : undefined,
    make: (partial) =>
      pawl(
        ...[...train, ...(observed ? ["--model.start", learn.makes] : fresh), "--out", partial],
        ...["--warm-start.episodes", String(demonstrations), ...world.imitation],
        ...["--warm-start.sft.epochs", String(passes)],
        ...["--warm-start.sft.action-weight", "1", "--warm-start.sft.observation-weight", "0"],
        ...[...world.rl, "--evaluation.splits", SPLITS.join()],
        ...(rehearse
          ? ["--updates", "1", "--evaluation.every", "1", "--evaluation.tasks", "4"]
          : []),
      ),
  };
  if (!observed) return [run];
  return [explore, ...(arm === "shuffled" ? [shuffle] : []), learn, run];
}

/** What was solved before and after RL. */
function resultOf(folder: string): Result {
  const lines = readMetrics(join(folder, "metrics.jsonl"), (problem) => {
    throw new Error(problem);
  });
  const pairs = SPLITS.map((split) => {
    const all = lines.flatMap((line) => line[`eval.${split}.success`] ?? []);
    if (all.length < 2) throw new Error(`${folder}: expected evaluations before and after RL`);
    return [split, [100 * all[0]!, 100 * all.at(-1)!]];
  });
  return Object.fromEntries(pairs);
}

/** The results in a folder, whose names are WORLD-DEMONSTRATIONS-ARM-SEED. */
function resultsIn(out: string): Results["results"] {
  const results: Record<string, Record<string, Record<string, Record<string, Result>>>> = {};
  for (const name of readdirSync(out).sort()) {
    const [, world, count, arm, seed] = /^([a-z]+)-(\d+)-([a-z]+)-(\d+)$/.exec(name) ?? [];
    if (world === undefined || count === undefined || arm === undefined) continue;
    results[world] ??= {};
    results[world][count] ??= {};
    results[world][count][arm] = {
      ...results[world][count][arm],
      [seed!]: resultOf(join(out, name)),
    };
  }
  return results;
}

/** A world's table: success on unseen tasks, and the difference to demonstrations alone, by seed. */
export function resultTable(results: Results, world: string): readonly string[] {
  const rows = Object.entries(results.results[world] ?? {}).flatMap(([count, arms]) =>
    (Object.keys(ARMS) as Arm[]).flatMap((arm) => {
      const runs = arms[arm];
      if (runs === undefined) return [];
      const cells = ([0, 1] as const).flatMap((at) => {
        const by = (some: Readonly<Record<string, Result>> = {}) =>
          new Map(Object.entries(some).map(([seed, one]) => [Number(seed), one.valid_unseen[at]]));
        const difference = pairedDifference(by(runs), by(arms.actions));
        return [
          number(estimate([...by(runs).values()]).mean),
          arm === "actions" || difference === undefined ? "" : withInterval(difference),
        ];
      });
      return [[count, ARMS[arm], String(Object.keys(runs).length), ...cells]];
    }),
  );
  const head = [
    "demonstrations",
    "start",
    "seeds",
    "before RL",
    "Δ (95 %)",
    "after RL",
    "Δ (95 %)",
  ];
  return table(head, rows);
}

export const readResults = (): Results => JSON.parse(readFileSync(DATA, "utf8"));

/** What the command writes into the page. */
export const writtenPart = (results: Results): string =>
  [
    MARKS[0],
    "",
    ...Object.keys(results.results).flatMap((world) => [...resultTable(results, world), ""]),
    MARKS[1],
  ].join("\n");

export async function main(args: readonly string[] = []): Promise<object> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      run: { type: "boolean", default: false },
      write: { type: "boolean", default: false },
      rehearse: { type: "boolean", default: false },
      seeds: { type: "string", default: "0,1,2,3,4" },
      demonstrations: { type: "string", default: "25,50,100" },
      arms: { type: "string", default: Object.keys(ARMS).join(",") },
      jobs: { type: "string", default: "2" },
      world: { type: "string", default: "quick" },
      model: { type: "string" },
      engine: { type: "string" },
      out: { type: "string", default: join("runs", "little-data") },
    },
  });
  if (values.run) {
    const { out, rehearse } = values;
    const given = { ...values, world: values.world as WorldName };
    mkdirSync(out, { recursive: true });
    const counts = values.demonstrations.split(",").map(Number);
    const arms = values.arms.split(",") as Arm[];
    const jobs = values.seeds
      .split(",")
      .flatMap((seed) =>
        counts.flatMap((count) => arms.flatMap((arm) => jobsOf(arm, count, seed, given))),
      );
    const failed = await makeAll(jobs, Number(values.jobs));
    if (failed.length > 0) process.exitCode = 1;
    const results = { ...madeHere(), results: resultsIn(out) };
    if (rehearse) process.stdout.write(`${writtenPart(results)}\n`);
    else writeFileSync(DATA, `${JSON.stringify(results, undefined, 1)}\n`);
    return { jobs: jobs.length, failed };
  }
  if (!existsSync(DATA)) return { results: "none yet: --run makes them" };
  const written = writtenPart(readResults());
  if (values.write) writePart(PAGE, MARKS, written);
  else process.stdout.write(`${written}\n`);
  return {};
}
