/**
 * How much of the default run's time should be imitation (docs/results/laptop.md, "More imitation")?
 *
 *   npm run bench -- imitation                 prints the page's tables, from bench/imitation.json
 *   npm run bench -- imitation --write         writes them into the page
 *   npm run bench -- imitation --run [--seeds 11,12,13,14] [--jobs 14] [--out runs/imitation]
 *                                              the candidates that are missing, one thread each
 *   npm run bench -- imitation --run --chosen 8000 [--seeds 0,1,2,3,4] …
 *                                              the chosen one, on the split that chooses nothing
 *
 * `--run --rehearse` is the same in minutes, to see that the commands work.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { table } from "@pawl/studies/markdown.js";
import { estimate, pairedDifference } from "@pawl/studies/statistics.js";
import { number, withInterval } from "./shared/figures.js";
import { type Job, madeHere, makeAll, pawl } from "./shared/jobs.js";
import { writePart } from "./shared/page-part.js";

export const PAGE = "docs/results/laptop.md";
const DATA = "bench/imitation.json";
const MARKS = ["<!-- npm run bench -- imitation --write -->", "<!-- end of imitation -->"] as const;

/** Updates of RL by imitated episodes: about as many as fit into eight minutes on two cores. */
const UPDATES: Readonly<Record<string, number>> = { 5500: 92, 8000: 84, 11000: 74, 16000: 57 };
const RECIPE = "5500";
const CHOOSES = "valid_unseen";
const REPORTS = "test_unseen";

/** One run: percent of 1,000 tasks. */
interface Result {
  readonly imitated?: number | undefined;
  readonly success: number;
}
type Results = Readonly<Record<string, Readonly<Record<string, Result>>>>;
interface Study {
  readonly machine: string;
  readonly date: string;
  /** By split, imitated episodes and seed. */
  readonly results: Readonly<Record<string, Results>>;
}

const THREADS = ["--engine.threads", "1"];

/** Training, and its evaluation. */
function jobsOf(episodes: string, seed: string, split: string, given: Given): readonly Job[] {
  const { out, rehearse } = given;
  const run = join(out, `${episodes}-${seed}`);
  const tasks = rehearse ? "10" : "1000";
  const [imitated, updates] = rehearse ? ["200", "1"] : [episodes, String(UPDATES[episodes])];
  const train: Job = {
    makes: run,
    make: (partial) =>
      pawl(
        ...["train", "--seed", seed, ...THREADS, "--gradients.every", "0", "--quiet"],
        ...["--warm-start.episodes", imitated, "--updates", updates],
        ...["--evaluation.every", "0", "--out", partial],
      ),
  };
  const evaluations = [
    [run, "after"],
    [join(run, "reference"), "imitated"],
  ].map(
    ([checkpoint, name]): Job => ({
      makes: `${run}.${split}.${name}.json`,
      needs: run,
      async make(partial) {
        const printed = await pawl(
          ...["eval", "--checkpoint", checkpoint!, "--split", split, "--tasks", tasks, ...THREADS],
          ...["--json", "--out", `${run}-${split}-${name}`],
        );
        writeFileSync(partial, printed);
      },
    }),
  );
  return [train, ...evaluations];
}

interface Given {
  readonly out: string;
  readonly rehearse: boolean;
}

/** What a run came to, if it was evaluated. */
function resultOf(out: string, episodes: string, seed: string, split: string): Result | undefined {
  const run = join(out, `${episodes}-${seed}`);
  const success = (name: string): number | undefined => {
    const file = `${run}.${split}.${name}.json`;
    return existsSync(file) ? 100 * JSON.parse(readFileSync(file, "utf8")).success : undefined;
  };
  const after = success("after");
  if (after === undefined) return undefined;
  return { imitated: success("imitated"), success: after };
}

const bySeed = (
  results: Results,
  episodes: string,
  of: (one: Result) => number | undefined,
): ReadonlyMap<number, number> =>
  new Map(
    Object.entries(results[episodes] ?? {}).flatMap(([seed, one]) => {
      const value = of(one);
      return value === undefined ? [] : [[Number(seed), value] as const];
    }),
  );

/** A split's table: means over seeds, and the difference from the recipe by seed. */
export function resultTable(results: Results): readonly string[] {
  const mean = (values: ReadonlyMap<number, number>): string =>
    values.size === 0 ? "" : number(estimate([...values.values()]).mean);
  const after = (episodes: string) => bySeed(results, episodes, ({ success }) => success);
  return table(
    ["imitated", "updates", "seeds", "imitation, %", "after RL, %", "Δ (95 %)"],
    Object.keys(results).map((episodes) => {
      const difference =
        episodes === RECIPE ? undefined : pairedDifference(after(episodes), after(RECIPE));
      return [
        Number(episodes).toLocaleString("en"),
        String(UPDATES[episodes]),
        [...after(episodes).keys()].join(", "),
        mean(bySeed(results, episodes, ({ imitated }) => imitated)),
        mean(after(episodes)),
        difference === undefined ? "" : withInterval(difference),
      ];
    }),
  );
}

export const readStudy = (): Study =>
  existsSync(DATA)
    ? JSON.parse(readFileSync(DATA, "utf8"))
    : { machine: "", date: "", results: {} };

/** What the command writes into the page. */
export const writtenPart = ({ results }: Study): string =>
  [
    MARKS[0],
    "",
    ...Object.entries(results).flatMap(([split, some]) => [
      `${split}:`,
      "",
      ...resultTable(some),
      "",
    ]),
    MARKS[1],
  ].join("\n");

export async function main(args: readonly string[] = []): Promise<object> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      run: { type: "boolean", default: false },
      write: { type: "boolean", default: false },
      rehearse: { type: "boolean", default: false },
      chosen: { type: "string" },
      seeds: { type: "string" },
      jobs: { type: "string", default: "2" },
      out: { type: "string", default: join("runs", "imitation") },
    },
  });
  if (values.run) {
    const { out, chosen } = values;
    mkdirSync(out, { recursive: true });
    const split = chosen === undefined ? CHOOSES : REPORTS;
    const episodes = chosen === undefined ? Object.keys(UPDATES) : [chosen];
    const seeds = (values.seeds ?? (chosen === undefined ? "11,12,13,14" : "0,1,2,3,4")).split(",");
    const jobs = seeds.flatMap((seed) =>
      episodes.flatMap((many) => jobsOf(many, seed, split, values)),
    );
    const failed = await makeAll(jobs, Number(values.jobs));
    if (failed.length > 0) process.exitCode = 1;
    const some = Object.fromEntries(
      episodes.map((many) => [
        many,
        Object.fromEntries(
          seeds.flatMap((seed) => {
            const result = resultOf(out, many, seed, split);
            return result === undefined ? [] : [[seed, result]];
          }),
        ),
      ]),
    );
    const { results } = readStudy();
    const study = { ...madeHere(), results: { ...results, [split]: some } };
    writeFileSync(
      values.rehearse ? join(out, "study.json") : DATA,
      `${JSON.stringify(study, undefined, 1)}\n`,
    );
    return { failed };
  }
  const written = writtenPart(readStudy());
  if (values.write) writePart(PAGE, MARKS, written);
  else process.stdout.write(`${written}\n`);
  return {};
}
