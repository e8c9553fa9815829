/**
 * Does an agent act better if it chooses among candidates by what they would bring
 * (docs/results/knowledge.md)? Agents of `pawl train --quick`, in six ways of acting.
 *
 *   npm run bench -- knowledge                      prints the page's tables, from bench/knowledge.json
 *   npm run bench -- knowledge --write              writes them into the page
 *   npm run bench -- knowledge --run [--seeds 0,1,…,9] [--arms plain,echo] [--jobs 2]
 *                                    [--out runs/knowledge]
 *                                                   makes what is missing there, one thread each
 *   npm run bench -- knowledge --read FOLDER        reads what was made into bench/knowledge.json
 *
 * On 16 cores, the plan's agents: --run --jobs 16.
 *
 * A result is a file in --out as soon as it is there (`plain-0.vote.json`), so that an interrupted run
 * counts as far as it came. `--run --rehearse` is the same in a minute, to see that the commands work.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { variants } from "@pawl/studies/arms.js";
import { flagsOf, type Job, madeHere, makeAll, pawl } from "./shared/jobs.js";
import { resultsPart, type Study, type WayResult } from "./shared/knowledge-tables.js";
import { writePart } from "./shared/page-part.js";

export const PAGE = "docs/results/knowledge.md";
const DATA = "bench/knowledge.json";
const MARKS = ["<!-- npm run bench -- knowledge --write -->", "<!-- end -->"] as const;

/** What is added to RL. `tried` and `ppo`, which the page has too, were made by commit 46b68fbc. */
const ARMS = {
  plain: variants.plain!.changes,
  echo: variants.echo!.changes,
} as const;
type Arm = keyof typeof ARMS;
const THREADS = ["--engine.threads", "1"];
const CANDIDATES = ["--candidates", "8", "--choose"];

/** How an agent acts: arguments of `pawl eval`. */
const WAYS = {
  acting: [],
  greedy: ["--temperature", "0"],
  vote: [...CANDIDATES, "vote"],
  self: [...CANDIDATES, "self"],
  exact: [...CANDIDATES, "exact"],
  model: [...CANDIDATES, "model"],
} as const;
type Way = keyof typeof WAYS;

/** The agent whose episodes the world model learns. */
const WITH_MODEL: Arm = "plain";

/** How much of everything there is: the plan's, or enough to see that it works. */
interface Dose {
  readonly train: readonly string[];
  readonly world: readonly string[];
  readonly tasks: number;
  /** Tasks on which β is chosen. */
  readonly beta: number;
}
const PLAN: Dose = { train: [], world: [], tasks: 500, beta: 128 };
const REHEARSAL: Dose = {
  train: ["--updates", "1", "--warm-start.episodes", "200"],
  world: ["--epochs", "1"],
  tasks: 10,
  beta: 4,
};

/** The jobs of an agent, in the order in which they are wanted. */
function jobsOf(arm: Arm, seed: string, out: string, dose: Dose): readonly Job[] {
  const agent = join(out, `${arm}-${seed}`);
  const world = join(out, `world-${seed}`);
  const train: Job = {
    makes: agent,
    make: (partial) =>
      pawl(
        ...["train", "--quick", ...flagsOf(ARMS[arm]), ...THREADS, "--seed", seed],
        ...["--evaluation.every", "0", "--gradients.every", "0", "--quiet", "--out", partial],
        ...dose.train,
      ),
  };
  const learn: Job = {
    makes: world,
    needs: agent,
    async make(partial) {
      const data = join(out, `data-${seed}`);
      await pawl("wm", "data", "--from", agent, "--out", data, "--seed", seed);
      await pawl(
        ...["wm", "train", "--data", data, "--model.start", "tiny", "--model.max-context", "512"],
        ...["--no-protocol.context", ...THREADS, "--evaluation.every", "0", "--seed", seed],
        ...["--quiet", "--out", partial, ...dose.world],
      );
    },
  };
  const evaluations = (Object.keys(WAYS) as Way[])
    .filter((way) => way !== "model" || arm === WITH_MODEL)
    .map(
      (way): Job => ({
        makes: `${agent}.${way}.json`,
        needs: way === "model" ? world : agent,
        async make(partial) {
          const from = performance.now();
          const predicts = way === "self" || way === "model";
          const printed = await pawl(
            ...["eval", "--checkpoint", agent, "--split", "test_unseen", "--seed", "0", ...THREADS],
            ...["--tasks", String(dose.tasks), "--json", "--out", `${agent}-${way}`, ...WAYS[way]],
            ...(way === "model" ? ["--choose.run", world] : []),
            ...(predicts ? ["--choose.tasks", String(dose.beta)] : []),
          );
          const seconds = (performance.now() - from) / 1000;
          writeFileSync(partial, `${JSON.stringify({ ...resultOf(printed), seconds })}\n`);
        },
      }),
    );
  return arm === WITH_MODEL
    ? [train, ...evaluations.slice(0, -1), learn, ...evaluations.slice(-1)]
    : [train, ...evaluations];
}

/** What is kept of an evaluation. */
function resultOf(printed: string): Omit<WayResult, "seconds"> {
  const { episodes, success, steps, invalid, choosing } = JSON.parse(printed);
  return { tasks: episodes, solved: Math.round(success * episodes), steps, invalid, choosing };
}

export const readStudy = (): Study => JSON.parse(readFileSync(DATA, "utf8")) as Study;

/** The results in a folder, by arm, way and seed. */
function studyIn(folder: string): Study {
  const results: Record<string, Record<string, Record<string, WayResult>>> = {};
  for (const file of readdirSync(folder).sort()) {
    const [, arm, seed, way] = /^(\w+)-(\d+)\.(\w+)\.json$/.exec(file) ?? [];
    if (arm === undefined) continue;
    const result = JSON.parse(readFileSync(join(folder, file), "utf8")) as WayResult;
    const ways = results[arm] ?? {};
    results[arm] = { ...ways, [way!]: { ...ways[way!], [seed!]: result } };
  }
  const { machine, date } = JSON.parse(readFileSync(join(folder, "machine.json"), "utf8"));
  return { machine, date, results };
}

/** The recorded results of agents that this command cannot make. */
const noLongerMade = ({ results }: Study): Study["results"] =>
  Object.fromEntries(Object.entries(results).filter(([arm]) => !(arm in ARMS)));

/** What the command writes into the page. */
export const writtenPart = (study: Study): string =>
  [MARKS[0], "", ...resultsPart(study), "", MARKS[1]].join("\n");

export async function main(args: readonly string[] = []): Promise<object> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      run: { type: "boolean", default: false },
      write: { type: "boolean", default: false },
      read: { type: "string" },
      seeds: { type: "string", default: "0,1,2,3,4,5,6,7,8,9" },
      arms: { type: "string", default: Object.keys(ARMS).join(",") },
      jobs: { type: "string", default: "2" },
      out: { type: "string", default: join("runs", "knowledge") },
      rehearse: { type: "boolean", default: false },
    },
  });
  if (values.run) {
    const { out } = values;
    mkdirSync(out, { recursive: true });
    writeFileSync(join(out, "machine.json"), `${JSON.stringify(madeHere())}\n`);
    const dose = values.rehearse ? REHEARSAL : PLAN;
    const arms = values.arms.split(",") as Arm[];
    const jobs = values.seeds
      .split(",")
      .flatMap((seed) => arms.flatMap((arm) => jobsOf(arm, seed, out, dose)));
    const failed = await makeAll(jobs, Number(values.jobs));
    if (failed.length > 0) process.exitCode = 1;
    return { jobs: jobs.length, failed };
  }
  if (values.read !== undefined) {
    const read = studyIn(values.read);
    const results = { ...noLongerMade(readStudy()), ...read.results };
    writeFileSync(DATA, `${JSON.stringify({ ...read, results }, rounded, 1)}\n`);
  }
  const written = writtenPart(readStudy());
  if (values.write) writePart(PAGE, MARKS, written);
  else process.stdout.write(`${written}\n`);
  return {};
}

const rounded = (_: string, value: unknown): unknown =>
  typeof value === "number" ? Number(value.toPrecision(5)) : value;
