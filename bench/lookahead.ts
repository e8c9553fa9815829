/**
 * Does RL learn more from its steps if each action is compared with other samples of the same state,
 * tried on copies of the world (docs/results/knowledge.md, "Looking ahead for credit")? A study: no
 * setting does this.
 *
 *   npm run bench -- lookahead                  prints the page's table, from bench/lookahead.json
 *   npm run bench -- lookahead --write          writes it into the page
 *   npm run bench -- lookahead --run [--seeds 0,1,2] [--arms grpo,expert,critic] [--updates 12]
 *                              [--out runs/lookahead]
 *                                               makes the runs that are missing, one after another, and
 *                                               reads what is there into bench/lookahead.json
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { registerEstimator } from "@pawl/core/advantages/advantages.js";
import { findEnvKind, registerEnv } from "@pawl/core/envs/registry.js";
import { readMetrics } from "@pawl/core/runs/metrics-file.js";
import { table } from "@pawl/studies/markdown.js";
import { type Estimate, estimate, pairedDifference } from "@pawl/studies/statistics.js";
import { trainConfig } from "@pawl/training/config.js";
import { trainRun } from "@pawl/training/run.js";
import { quick } from "../recipes/quick.js";
import { curveOf, type Point, successAt } from "./samples.js";
import { criticLookahead, expertLookahead, SIBLINGS } from "./shared/lookahead-credit.js";
import { lookingHouse } from "./shared/lookahead-world.js";

export const PAGE = "docs/results/knowledge.md";
const DATA = "bench/lookahead.json";
const MARKS = ["<!-- npm run bench -- lookahead --write -->", "<!-- end of lookahead -->"] as const;

/** What an arm changes in the settings. */
const ARMS = {
  grpo: {},
  expert: {
    env: { values: "expert" },
    advantage: { name: expertLookahead.settings.shape.name.value },
  },
  critic: {
    env: { values: "critic" },
    advantage: { name: criticLookahead.settings.shape.name.value },
    critic: { weights: "shared" },
  },
} as const;
type Arm = keyof typeof ARMS;

/** The updates of `grpo` after whose steps all are compared. */
const BUDGET = 10;

interface Results {
  readonly machine: string;
  readonly date: string;
  readonly siblings: number;
  readonly curves: Readonly<Record<string, Readonly<Record<string, readonly Point[]>>>>;
}

/** The settings of `pawl train --quick` from the agent in examples/try-start, as `bench samples` has them. */
function configOf(arm: Arm, seed: number, updates: number) {
  const { env, advantage, ...more } = { env: {}, advantage: {}, ...ARMS[arm] };
  const name = lookingHouse.name;
  return trainConfig(findEnvKind(name)).parse({
    ...quick,
    env: { ...quick.env, ...env, name },
    model: { start: "examples/try-start" },
    engine: { threads: 1 },
    warmStart: { episodes: 0 },
    ...{ updates, seed, keep: 1, paw: { loss: "off" }, gradients: { every: 0 } },
    advantage: { ...quick.advantage, ...advantage },
    optimizer: { ...quick.optimizer, schedule: "constant" },
    evaluation: { ...quick.evaluation, every: 4, splits: ["valid_seen", "valid_unseen"] },
    ...more,
  });
}

/** Makes the run of an arm and a seed if it is missing; a folder gets its name once it is complete. */
async function curveFrom(
  arm: Arm,
  seed: number,
  { out, updates }: { readonly out: string; readonly updates: number },
): Promise<readonly Point[]> {
  const folder = join(out, `${arm}-${seed}`);
  if (!existsSync(folder)) {
    const partial = `${folder}.${process.pid}`;
    const from = performance.now();
    await trainRun(configOf(arm, seed, updates), { folder: partial });
    renameSync(partial, folder);
    const seconds = ((performance.now() - from) / 1000).toFixed(0);
    process.stderr.write(`${folder} (${seconds} s)\n`);
  }
  return curveOf(
    readMetrics(join(folder, "metrics.jsonl"), (problem) => {
      throw new Error(problem);
    }),
  );
}

const number = (value: number): string => value.toFixed(1).replace("-", "−");
const signed = ({ mean, interval }: Estimate): string =>
  `${mean > 0 ? "+" : ""}${number(mean)}${interval === undefined ? "" : ` (${interval.map(number).join(" to ")})`}`;

/** The steps taken until then, between two evaluations. */
function stepsAfter(curve: readonly Point[], updates: number): number {
  const after = curve.findIndex((point) => point.updates >= updates);
  const [a, b] = [curve[after - 1], curve[after]];
  if (a === undefined || b === undefined) return Number.NaN;
  return a.steps + ((b.steps - a.steps) * (updates - a.updates)) / (b.updates - a.updates);
}

/** The page's table: success at equal steps, and at the end. */
export function resultTable({ curves }: Results): readonly string[] {
  const grpo = curves.grpo ?? {};
  const spent = (seed: string): number => stepsAfter(grpo[seed] ?? [], BUDGET);
  const at = (arm: string) =>
    new Map(
      Object.entries(curves[arm]!).map(([seed, curve]) => [
        Number(seed),
        successAt(curve, "steps", spent(seed)),
      ]),
    );
  return table(
    ["arm", "seeds", "start", "success at equal steps", "Δ (95 %)", "steps", "at the end"],
    Object.entries(curves).map(([arm, runs]) => {
      const ends = Object.values(runs).map((curve) => curve.at(-1)!);
      const mean = (values: readonly number[]): number => estimate(values).mean;
      return [
        arm,
        String(ends.length),
        number(mean(Object.values(runs).map(([first]) => first!.success))),
        number(mean([...at(arm).values()])),
        arm === "grpo" || curves.grpo === undefined
          ? ""
          : signed(pairedDifference(at(arm), at("grpo"))!),
        Math.round(mean(ends.map(({ steps }) => steps))).toLocaleString("en-GB"),
        number(mean(ends.map(({ success }) => success))),
      ];
    }),
  );
}

export const readResults = (): Results => JSON.parse(readFileSync(DATA, "utf8"));

/** What the command writes into the page. */
export const writtenPart = (results: Results): string =>
  [MARKS[0], "", ...resultTable(results), "", MARKS[1]].join("\n");

export async function main(args: readonly string[] = []): Promise<object> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      run: { type: "boolean", default: false },
      write: { type: "boolean", default: false },
      seeds: { type: "string", default: "0,1,2" },
      arms: { type: "string", default: Object.keys(ARMS).join(",") },
      updates: { type: "string", default: "12" },
      out: { type: "string", default: join("runs", "lookahead") },
    },
  });
  if (values.run) {
    registerEnv(lookingHouse);
    registerEstimator(expertLookahead);
    registerEstimator(criticLookahead);
    mkdirSync(values.out, { recursive: true });
    const arms = values.arms.split(",") as Arm[];
    const curves: Record<string, Record<string, readonly Point[]>> = {};
    for (const seed of values.seeds.split(",").map(Number))
      for (const arm of arms) {
        const curve = await curveFrom(arm, seed, {
          out: values.out,
          updates: Number(values.updates),
        });
        curves[arm] = { ...curves[arm], [seed]: curve };
      }
    const machine = `${cpus().length} × ${cpus()[0]?.model}`;
    const date = new Date().toISOString().slice(0, 10);
    const results = { machine, date, siblings: SIBLINGS, curves };
    writeFileSync(DATA, `${JSON.stringify(results, undefined, 1)}\n`);
  }
  const written = writtenPart(readResults());
  if (values.write) {
    const page = readFileSync(PAGE, "utf8");
    const [from, to] = [page.indexOf(MARKS[0]), page.indexOf(MARKS[1])];
    if (from < 0 || to < from) throw new Error(`${PAGE}: expected ${MARKS.join(" … ")}`);
    writeFileSync(PAGE, `${page.slice(0, from)}${written}${page.slice(to + MARKS[1].length)}`);
  } else process.stdout.write(`${written}\n`);
  return {};
}
