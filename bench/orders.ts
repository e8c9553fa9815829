/**
 * Does RL improve an agent of the AI SDK beyond what it imitates? examples/orders-agent.ts on two
 * cores, as docs/results/agent.md reports it.
 *
 *   npm run build && npm run bench -- orders --model FILE.gguf --seed 0 --out runs/orders-0
 *
 * A scripted clerk, which stands in for a stronger model, is recorded with `pawl distill`; the model
 * imitates some of its episodes, goes on with RL (`pawl train`), and is tested before and after
 * (`pawl eval`). Writes OUT/result.json. `--tiny` goes through all of it with a few episodes.
 *
 *   npm run bench -- orders --all --model FILE.gguf --out runs/orders [--within 26]
 *
 * All that the page's plan asks for, on six cores and in so many minutes: how many demonstrations, then
 * the three seeds side by side, two threads each. OUT/SEED/log.txt has what the commands print.
 *
 *   npm run bench -- orders --read OUT…    reads the results of such runs into bench/orders.json
 *   npm run bench -- orders --write        writes the table of docs/results/agent.md
 */
import { spawn } from "node:child_process";
import { mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { readCard } from "@pawl/pawl/evaluation/card-markdown.js";
import { table } from "@pawl/studies/markdown.js";
import { type Estimate, estimate } from "@pawl/studies/statistics.js";
import { machine } from "./peer/side.js";
import { writePart } from "./shared/page-part.js";

const AGENT = "examples/orders-agent.ts";
const DATA = "bench/orders.json";
export const PAGE = "docs/results/agent.md";
const MARKS = ["<!-- npm run bench -- orders --write -->", "<!-- end -->"] as const;

/** Tested after imitation and after RL, sampled as in training and greedily. */
const TESTS = [
  ["imitated-sampled", "reference", "1"],
  ["trained-sampled", ".", "1"],
  ["imitated-greedy", "reference", "0"],
  ["trained-greedy", ".", "0"],
] as const;
type Test = (typeof TESTS)[number][0];

/** What a run came to; what was not reached in time is missing. */
interface Result {
  readonly seed: number;
  readonly demonstrations: number;
  readonly updates: number;
  readonly split: string;
  readonly tasks: number;
  readonly machine: string;
  readonly date: string;
  /** Success of each test, and by type of task. */
  readonly success: Partial<Record<Test, number>>;
  readonly types: Partial<Record<Test, Readonly<Record<string, number>>>>;
  /** Success in training, by update, and the seconds of each update. */
  readonly curve: readonly number[];
  readonly updateSeconds: readonly number[];
  readonly seconds: Readonly<Record<string, number>>;
}

interface Message {
  readonly role: string;
  readonly content: string | null;
}

/** What the scripted clerk says next. */
function clerk(messages: readonly Message[]): object {
  const [, quantity, item] = /(\d+) of the (\w+)/.exec(messages[1]!.content!)!;
  const [found, total] = messages
    .filter(({ role }) => role === "tool")
    .map(({ content }) => JSON.parse(content!));
  const call = (name: string, values: object) => ({
    content: null,
    tool_calls: [
      { id: "1", type: "function", function: { name, arguments: JSON.stringify(values) } },
    ],
  });
  if (found === undefined) return call("find", { item });
  const isEnough = found.stock >= Number(quantity);
  if (isEnough && total === undefined)
    return call("multiply", { a: Number(quantity), b: found.price });
  return { content: JSON.stringify({ sold: isEnough, total: total ?? 0 }) };
}

/** Serves the clerk by OpenAI's chat completions. */
export async function startClerk() {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    const message = { role: "assistant", ...clerk(JSON.parse(body).messages) };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ choices: [{ message }] }));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    stop: () => server.close(),
  };
}

/** Runs a command; after so many minutes it is interrupted, and what it has so far counts. */
function pawl(
  args: readonly string[],
  log: number | "inherit",
  minutes = Number.POSITIVE_INFINITY,
): Promise<void> {
  console.error(`pawl ${args.join(" ")}`);
  const child = spawn(process.execPath, ["bin/pawl.js", ...args], { stdio: ["ignore", log, log] });
  let isOver = false;
  const interrupt = (): void => {
    isOver = true;
    child.kill("SIGINT");
  };
  const timer = Number.isFinite(minutes) ? setTimeout(interrupt, 60_000 * minutes) : undefined;
  return new Promise((done, fail) => {
    child.once("exit", (code) => {
      clearTimeout(timer);
      if (code === 0 || isOver) done();
      else fail(new Error(`pawl ${args[0]} ended with ${code}`));
    });
  });
}

const percent = (share: number | undefined): string =>
  share === undefined ? "–" : (100 * share).toFixed(1);

const interval = ({ interval: [low, high] = [Number.NaN, Number.NaN] }: Estimate): string =>
  `${percent(low)} to ${percent(high)}`;

/** The table of the page: each seed, and their mean. */
export function resultsTable(results: readonly Result[]): readonly string[] {
  const columns = results.map(({ success: of }) => [
    of["imitated-sampled"],
    of["trained-sampled"],
    gain(of["imitated-sampled"], of["trained-sampled"]),
    of["imitated-greedy"],
    of["trained-greedy"],
    gain(of["imitated-greedy"], of["trained-greedy"]),
  ]);
  const means = [0, 1, 2, 3, 4, 5].map((at) => {
    const values = columns.map((one) => one[at]);
    return values.includes(undefined) ? undefined : estimate(values as number[]);
  });
  return table(
    [
      ...["seed", "imitated", "after RL", "gain", "greedily, imitated", "after RL", "gain"],
      ...["minutes of imitation and RL", "seconds an update"],
    ],
    [
      ...results.map(({ seed, seconds, updateSeconds }, i) => [
        String(seed),
        ...columns[i]!.map(percent),
        (seconds.train! / 60).toFixed(1),
        updateSeconds.length === 0
          ? "–"
          : (updateSeconds.reduce((sum, one) => sum + one, 0) / updateSeconds.length).toFixed(1),
      ]),
      ["mean", ...means.map((one) => percent(one?.mean)), "", ""],
      ["95 %", ...means.map((one) => (one === undefined ? "–" : interval(one))), "", ""],
    ],
  );
}

const gain = (from: number | undefined, to: number | undefined): number | undefined =>
  from === undefined || to === undefined ? undefined : to - from;

export const readResults = (): readonly Result[] =>
  JSON.parse(readFileSync(DATA, "utf8")) as Result[];

/** What the command writes into the page. */
export function writtenPart(results: readonly Result[]): string {
  return [MARKS[0], "", ...resultsTable(results), "", MARKS[1]].join("\n");
}

export async function main(args: readonly string[]): Promise<object> {
  if (args[0] === "--read") {
    const results = args
      .slice(1)
      .map((folder) => JSON.parse(readFileSync(join(folder, "result.json"), "utf8")) as Result);
    results.sort((a, b) => a.seed - b.seed);
    writeFileSync(DATA, `${JSON.stringify(results, undefined, 1)}\n`);
    return { runs: results.length };
  }
  if (args[0] === "--write") {
    const results = readResults();
    writePart(PAGE, MARKS, writtenPart(results));
    return { runs: results.length };
  }
  const settings = settingsOf(args);
  return settings.all ? wholePlan(settings) : study(settings, "inherit");
}

/** The numbers of demonstrations of which one is chosen, by this success after imitating them. */
const CHOICES = ["24", "48", "96"];
const CHOSEN_NEAR = 0.45;

/** A choice of the demonstrations, and the runs of three seeds side by side, in the time that there is. */
async function wholePlan(settings: Settings): Promise<object> {
  const until = performance.now() + 60_000 * Number(settings.within);
  const run = (name: string, changes: Partial<Settings>): Promise<Result> => {
    const out = join(settings.out, name);
    mkdirSync(out, { recursive: true });
    return study({ ...settings, ...changes, out }, openSync(join(out, "log.txt"), "a"));
  };
  const starts = await Promise.all(
    CHOICES.map((demonstrations) =>
      run(`start-${demonstrations}`, {
        ...{ demonstrations, seed: "100", split: "valid", tasks: "48", updates: "0" },
      }),
    ),
  );
  const off = ({ success }: Result) => Math.abs(success["imitated-sampled"]! - CHOSEN_NEAR);
  const chosen = starts.reduce((best, one) => (off(one) < off(best) ? one : best));
  const demonstrations = String(chosen.demonstrations);
  // Two pairs of tests follow, each beside those of other seeds; a third more than in the choice.
  const slowest = Math.max(...starts.map(({ seconds }) => seconds["imitated-sampled"]!));
  const tests = 2 * slowest * (settings.tiny ? 1 : Number(settings.tasks) / 48) * 1.33;
  const left = (until - performance.now()) / 1000 - tests;
  const minutes = String(Math.max(1, Math.min(Number(settings.minutes), (left - 60) / 60)));
  const ended = await Promise.allSettled(
    ["0", "1", "2"].map((seed) => run(seed, { seed, demonstrations, minutes })),
  );
  const runs = ended.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  for (const one of ended) if (one.status === "rejected") console.error(one.reason);
  const results = { chosen: demonstrations, minutes: Number(minutes), starts, runs };
  writeFileSync(join(settings.out, "all.json"), `${JSON.stringify(results, undefined, 1)}\n`);
  console.error(resultsTable(runs).join("\n"));
  return {
    chosen: Number(demonstrations),
    starts: starts.map(({ success }) => percent(success["imitated-sampled"])).join(", "),
    minutes: Number(minutes),
    gain: percent(meanGain(runs)),
  };
}

/** What RL gained, sampled as in training; none if a run has not come to it. */
function meanGain(results: readonly Result[]): number | undefined {
  const gains = results.flatMap(
    ({ success: of }) => gain(of["imitated-sampled"], of["trained-sampled"]) ?? [],
  );
  return gains.length < results.length || gains.length === 0 ? undefined : estimate(gains).mean;
}

type Settings = ReturnType<typeof settingsOf>;

function settingsOf(args: readonly string[]) {
  const { values } = parseArgs({
    args: [...args],
    options: {
      model: { type: "string", default: "pypi:smollm2-135m-instruct" },
      seed: { type: "string", default: "0" },
      out: { type: "string", default: "runs/orders" },
      demonstrations: { type: "string", default: "48" },
      epochs: { type: "string", default: "1" },
      "imitation-rate": { type: "string", default: "1e-3" },
      rate: { type: "string", default: "2e-4" },
      updates: { type: "string", default: "40" },
      minutes: { type: "string", default: "13" },
      groups: { type: "string", default: "4" },
      split: { type: "string", default: "test" },
      tasks: { type: "string", default: "128" },
      threads: { type: "string", default: "2" },
      tiny: { type: "boolean", default: false },
      all: { type: "boolean", default: false },
      within: { type: "string", default: "26" },
    },
  });
  return values;
}

/** One run: distilled, imitated, trained, tested. */
async function study(values: Settings, log: number | "inherit"): Promise<Result> {
  const { seed, out, model, split, threads } = values;
  const tiny = values.tiny
    ? { demonstrations: "4", tasks: "4", updates: values.updates === "0" ? "0" : "2", groups: "1" }
    : {};
  const { demonstrations, epochs, updates, groups, tasks, ...rates } = { ...values, ...tiny };
  mkdirSync(out, { recursive: true });
  const seconds: Record<string, number> = {};
  const timed = async (name: string, work: Promise<void>): Promise<void> => {
    const start = performance.now();
    await work;
    seconds[name] = Math.round((performance.now() - start) / 1000);
  };
  const common = ["--seed", seed, "--engine.threads", threads];
  const [taught, run] = [join(out, "taught"), join(out, "run")];
  const teacher = await startClerk();
  await timed(
    "distill",
    pawl(
      [
        ...["distill", AGENT, "--teacher", teacher.address, "--teacher.model", "scripted-clerk"],
        ...["--student", model, "--tasks", demonstrations, "--max-tokens", "48", ...common],
        ...["--out", taught],
      ],
      log,
    ),
  );
  teacher.stop();
  await timed(
    "train",
    pawl(
      [
        ...["train", "--agent", AGENT, ...common],
        ...["--model.start", model, "--engine.lora-rank", "16"],
        ...["--warm-start.runs", taught, "--warm-start.min-return", "1"],
        ...["--warm-start.episodes", demonstrations, "--warm-start.sft.epochs", epochs],
        ...["--warm-start.sft.batch", "4", "--warm-start.sft.observation-weight", "0"],
        ...["--warm-start.sft.optimizer.learning-rate", rates["imitation-rate"]],
        ...["--warm-start.sft.optimizer.warmup", "2"],
        ...["--updates", updates, "--groups", groups, "--group-size", "8", "--max-tokens", "48"],
        ...["--optimizer.learning-rate", rates.rate, "--optimizer.schedule", "constant"],
        ...["--optimizer.warmup", "2", "--objective.kl", "0", "--objective.entropy", "0"],
        ...["--minibatch", "40", "--gradients.every", "0", "--checkpoint-every", "1"],
        ...["--evaluation.every", "0", "--out", run],
      ],
      log,
      Number(values.minutes),
    ),
  );
  const lines = openRun(run, () => undefined)
    .metrics()
    .filter((line) => line["train.success"] !== undefined);
  let result: Result = {
    ...{ seed: Number(seed), demonstrations: Number(demonstrations), updates: lines.length },
    ...{ split, tasks: Number(tasks), machine: `${threads} of ${machine()}` },
    ...{ date: new Date().toISOString().slice(0, 10), success: {}, types: {} },
    curve: lines.map((line) => line["train.success"]!),
    updateSeconds: lines.map((line) =>
      Object.entries(line).reduce(
        (sum, [name, value]) => sum + (name.startsWith("seconds.") ? value : 0),
        0,
      ),
    ),
    seconds,
  };
  // Without RL there is one model, to be looked at; interrupted before it, one that is reported.
  const tests =
    updates === "0"
      ? TESTS.slice(0, 1)
      : TESTS.filter(([, checkpoint]) => checkpoint !== "." || lines.length > 0);
  const test = async ([name, checkpoint, temperature]: (typeof TESTS)[number]): Promise<void> => {
    const card = join(out, name);
    await timed(
      name,
      pawl(
        [
          ...["eval", "--checkpoint", join(run, checkpoint), "--split", split, "--tasks", tasks],
          ...["--temperature", temperature, "--max-tokens", "48", "--concurrency", "64"],
          ...[...common, "--out", card],
        ],
        log,
      ),
    );
    const { success, byType } = readCard(card).results;
    if (success === undefined) throw new Error(`${card}: no episode was evaluated`);
    const types = Object.fromEntries(
      Object.entries(byType).map(([type, figures]) => [type, figures.success ?? Number.NaN]),
    );
    result = {
      ...result,
      success: { ...result.success, [name]: success },
      types: { ...result.types, [name]: types },
    };
    writeFileSync(join(out, "result.json"), `${JSON.stringify(result, undefined, 1)}\n`);
  };
  // Before and after at the same time, so that both have the machine of the other.
  for (let at = 0; at < tests.length; at += 2) await Promise.all(tests.slice(at, at + 2).map(test));
  return result;
}
