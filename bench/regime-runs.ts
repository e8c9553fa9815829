/**
 * The runs of docs/results/plan-regime.md's amendment on one GPU, in the time that there is: starts, candidates, the
 * choice, pairs, evaluation. It steers by the plan's rules alone (bench/shared/regime-plan.ts).
 *
 *   npm run bench -- regime-runs --model FOLDER --teacher RUN --out FOLDER --until UNIX-SECONDS
 *     [--chosen 50-slow --runs plain-2,paw-2,… --servers 4]
 *
 * With --chosen, the runs of an arm and a seed that are named, from that start, each with as many updates as
 * the pairs before them, and then evaluated; the next begins where one has ended. `start-50` evaluates the start.
 *
 * `npm run bench -- regime --read OUT` reads what came of it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { latestCheckpoint } from "@pawl/core/runs/checkpoints.js";
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import {
  ARMS,
  type Arm,
  CANDIDATE_SEED,
  CANDIDATE_UPDATES,
  CANDIDATES,
  COMPARED_AFTER,
  choose,
  EVALUATION,
  PAIR_UPDATES,
  pairsThatFit,
  rlSettings,
  standingsOf,
  startSettings,
} from "./shared/regime-plan.js";

const { values } = parseArgs({
  args: process.argv.slice(3),
  options: {
    model: { type: "string" },
    teacher: { type: "string" },
    out: { type: "string" },
    until: { type: "string" },
    chosen: { type: "string" },
    runs: { type: "string", default: "" },
    /** Seconds for the candidates, and at the end for evaluation and for taking the results away. */
    candidates: { type: "string", default: "330" },
    evaluation: { type: "string", default: "310" },
    spare: { type: "string", default: "75" },
    /** Of servers; more than one for each run is not used. */
    servers: { type: "string", default: "8" },
    options: {
      type: "string",
      default: "--threads 1 --sample-rows 140 --memory 16 --batch-tokens 8192",
    },
    port: { type: "string", default: "8100" },
    /** For a rehearsal: settings that replace the plan's, tasks of an evaluation, and updates of --runs. */
    settings: { type: "string", default: "{}" },
    tasks: { type: "string" },
    updates: { type: "string", default: String(COMPARED_AFTER) },
  },
});
const needed = (name: "model" | "teacher" | "out" | "until"): string => {
  const value = values[name];
  if (value === undefined) throw new Error(`--${name} is needed`);
  return value;
};
const out = resolve(needed("out"));
const until = Number(needed("until")) * 1000;
const changed = JSON.parse(values.settings) as object;
const cli = resolve("bin/pawl.js");
const SPLITS = ["valid_seen", "valid_unseen"] as const;

const now = (): number => Date.now();
const left = (): number => (until - now()) / 1000;
const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));
function say(text: string): void {
  const line = `${new Date().toISOString().slice(11, 19)} ${left().toFixed(0)} s left: ${text}\n`;
  writeFileSync(join(out, "log"), line, { flag: "a" });
  process.stdout.write(line);
}

interface Started {
  readonly child: ChildProcess;
  readonly ended: Promise<number>;
}

/** A command of pawl, its output in a file of logs/. */
function pawl(name: string, args: readonly string[]): Started {
  const log = openSync(join(out, "logs", name), "a");
  const child = spawn(process.execPath, [cli, ...args], { stdio: ["ignore", log, log] });
  closeSync(log);
  const ended = new Promise<number>((done) => child.on("close", (code) => done(code ?? 1)));
  return { child, ended };
}

async function serve(index: number): Promise<Started & { readonly url: string }> {
  const port = Number(values.port) + index;
  const where = ["--port", String(port), "--model", needed("model")];
  const rest = ["--checkpoints", join(out, "checkpoints"), ...values.options.split(" ")];
  const server = pawl(`server-${index}`, ["serve", "engine", ...where, ...rest]);
  const url = `http://127.0.0.1:${port}`;
  for (;;) {
    const answer = await fetch(`${url}/healthz`).catch(() => undefined);
    if (answer?.ok) return { ...server, url };
    if (server.child.exitCode !== null)
      throw new Error(`${out}/logs/server-${index} says why it ended`);
    await sleep(300);
  }
}

const runFolder = (name: string): string => join(out, "runs", name);

/** The settings with those of a rehearsal; a group that a run does not have is left out. */
function withChanges(settings: object): object {
  const all = new Map(Object.entries(settings));
  for (const [key, value] of Object.entries(changed))
    if (typeof value !== "object") all.set(key, value);
    else if (all.has(key)) all.set(key, { ...all.get(key), ...value });
  return Object.fromEntries(all);
}

function train(name: string, settings: object, url: string): Started {
  const config = join(out, "configs", `${name}.json`);
  writeFileSync(config, JSON.stringify(withChanges(settings), undefined, 1));
  const engine = ["--engine", url, "--engine.lora-rank", "8"];
  return pawl(name, ["train", "--config", config, ...engine, "--out", runFolder(name)]);
}

/** The metrics of a run's updates so far; a line that is being written is left out. */
function updatesOf(name: string): readonly MetricsLine[] {
  let text = "";
  try {
    text = readFileSync(join(runFolder(name), "metrics.jsonl"), "utf8");
  } catch {
    return [];
  }
  const lines = text.split("\n").slice(0, -1);
  return lines.map((line) => JSON.parse(line) as MetricsLine).filter(({ update }) => update! >= 0);
}

/** Waits until all have ended or the time is over, then ends those that go on. */
async function untilEnd(runs: readonly Started[], end: number): Promise<void> {
  const all = Promise.all(runs.map(({ ended }) => ended));
  await Promise.race([all, sleep(Math.max(0, end - now()))]);
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    for (const { child } of runs) if (child.exitCode === null) child.kill(signal);
    await Promise.race([all, sleep(8000)]);
  }
}

/** One round of all tasks of both splits. */
async function evaluate(name: string, model: string, round: number, url: string): Promise<boolean> {
  for (const split of SPLITS) {
    const what = `${name}-${split}-${round}`;
    const how = [
      "--temperature",
      String(EVALUATION.temperature),
      "--step-limit",
      String(EVALUATION.stepLimit),
    ];
    const tasks = values.tasks === undefined ? [] : ["--tasks", values.tasks];
    const which = ["--split", split, "--seed", String(round), "--concurrency", "140", ...tasks];
    const args = ["--checkpoint", model, "--engine", url, ...which, ...how];
    const { ended } = pawl(what, ["eval", ...args, "--out", join(out, "evaluations", what)]);
    if ((await ended) !== 0) {
      say(`${what} failed`);
      return false;
    }
  }
  return true;
}

async function candidates(urls: readonly string[], starts: Readonly<Record<number, string>>) {
  const names = Object.keys(CANDIDATES);
  const begin = now();
  const end = begin + Number(values.candidates) * 1000;
  const runs = names.map((name, i) => {
    const length = { seed: CANDIDATE_SEED, updates: CANDIDATE_UPDATES };
    const { demonstrations } = CANDIDATES[name]!;
    const settings = rlSettings(starts[demonstrations]!, CANDIDATES[name]!, "plain", length);
    return train(name, settings, urls[i % urls.length]!);
  });
  // Servers that have nothing to do meanwhile evaluate the starts.
  const idle = urls.slice(names.length);
  const tried = Object.entries(starts).map(([many, start], i) => {
    const url = idle[i];
    return url === undefined ? undefined : evaluate(`start-${many}`, start, 1, url);
  });
  await untilEnd(runs, end);
  const done = names.filter((name) => updatesOf(name).length > 0);
  const curves = Object.fromEntries(
    done.map((name) => {
      const lines = updatesOf(name);
      const of = (what: string): readonly number[] => lines.map((line) => line[what] ?? 0);
      return [name, { success: of("train.success"), kl: of("policy.kl") }];
    }),
  );
  const { updates, standings } = standingsOf(curves);
  const chosen = choose(standings);
  // An update's time where the slowest was: what was compiled in the first does not come again.
  const last = done.map((name) => {
    return Object.entries(updatesOf(name).at(-1)!).reduce(
      (sum, [key, x]) => sum + (key.startsWith("seconds.") ? x! : 0),
      0,
    );
  });
  const seconds = last.reduce((sum, one) => sum + one, 0) / last.length;
  const record = { updates, standings, chosen, seconds, curves };
  writeFileSync(join(out, "choice.json"), JSON.stringify(record, undefined, 1));
  say(
    `chosen ${chosen} after ${updates} updates of ${seconds.toFixed(0)} s: ${JSON.stringify(standings)}`,
  );
  return { chosen, seconds, runs: done.length, tried };
}

/** The runs of --runs, on each server the next when one has ended. */
async function namedRuns(urls: readonly string[], chosen: string, start: string): Promise<void> {
  const waiting = values.runs.split(",");
  const updates = Number(values.updates);
  const state = { chosen, updates, rounds: EVALUATION.rounds };
  writeFileSync(join(out, "pairs.json"), JSON.stringify(state, undefined, 1));
  async function trainAndEvaluate(name: string, url: string): Promise<void> {
    if (name === basename(start)) {
      await evaluate(name, start, 1, url);
      return;
    }
    const [arm, seed] = name.split("-") as [Arm, string];
    if (!(arm in ARMS)) throw new Error(`${name} is no arm with a seed`);
    const length = { seed: Number(seed), updates };
    const run = train(name, rlSettings(start, CANDIDATES[chosen]!, arm, length), url);
    await untilEnd([run], until - 1000 * Number(values.spare));
    const reached = latestCheckpoint(runFolder(name))?.state.updates ?? 0;
    say(`${name} has ${reached} updates`);
    if (reached < updates) return;
    for (let round = 1, took = 0; round <= EVALUATION.rounds; round++) {
      const begin = left();
      if (begin < 1.1 * took || !(await evaluate(name, runFolder(name), round, url))) return;
      took = begin - left();
    }
    say(`${name} is evaluated`);
  }
  await Promise.all(
    urls.map(async (url) => {
      while (left() > Number(values.spare)) {
        const name = waiting.shift();
        if (name === undefined) return;
        await trainAndEvaluate(name, url);
      }
    }),
  );
}

export async function main(): Promise<object> {
  for (const name of ["logs", "configs", "runs", "evaluations", "checkpoints"])
    mkdirSync(join(out, name), { recursive: true });
  const servers = await Promise.all(
    Array.from({ length: Number(values.servers) }, (_, i) => serve(i)),
  );
  const urls = servers.map(({ url }) => url);
  say(`${urls.length} servers`);
  const sizes =
    values.chosen === undefined
      ? [...new Set(Object.values(CANDIDATES).map((one) => one.demonstrations))]
      : [CANDIDATES[values.chosen]!.demonstrations];
  const made = sizes.map((many, i) =>
    train(`start-${many}`, startSettings(many, resolve(needed("teacher"))), urls[i % urls.length]!),
  );
  await untilEnd(made, until);
  const starts = Object.fromEntries(sizes.map((many) => [many, runFolder(`start-${many}`)]));
  say("starts made");
  if (values.chosen !== undefined) {
    await namedRuns(urls, values.chosen, starts[sizes[0]!]!);
    await end(servers);
    return { chosen: values.chosen };
  }
  const { chosen, seconds, runs, tried } = await candidates(urls, starts);
  await Promise.all(tried);
  const rest = left() - Number(values.evaluation);
  const pairs = Math.min(pairsThatFit({ seconds, runs }, rest), Math.floor(urls.length / 2));
  say(`${pairs} pairs`);
  const arms: readonly Arm[] = ["plain", "paw"];
  const start = starts[CANDIDATES[chosen]!.demonstrations]!;
  const names = Array.from(
    { length: 2 * pairs },
    (_, i) => [Math.floor(i / 2), arms[i % 2]!] as const,
  );
  const paired = names.map(([seed, arm], i) => {
    // More than there will be time for.
    const settings = rlSettings(start, CANDIDATES[chosen]!, arm, {
      seed,
      updates: 4 * PAIR_UPDATES,
    });
    return train(`${arm}-${seed}`, settings, urls[i]!);
  });
  await untilEnd(paired, until - 1000 * Number(values.evaluation));
  const folders = names.map(([seed, arm]) => `${arm}-${seed}`);
  const reached = folders.map((name) => latestCheckpoint(runFolder(name))?.state.updates ?? 0);
  const updates = Math.min(...reached);
  say(`updates reached: ${reached.join(", ")}`);
  const state = { chosen, pairs, updates, reached, rounds: 0 };
  const keep = (): void =>
    writeFileSync(join(out, "pairs.json"), JSON.stringify(state, undefined, 1));
  keep();
  if (updates > 0) {
    const models = folders.map(
      (name) =>
        [name, join(runFolder(name), "checkpoints", String(updates).padStart(6, "0"))] as const,
    );
    for (
      let round = 1, took = 0;
      round <= 3 && 1.1 * took < left() - Number(values.spare);
      round++
    ) {
      const begin = now();
      const results = await Promise.all(
        models.map(([name, model], i) => evaluate(name, model, round, urls[i]!)),
      );
      if (!results.every(Boolean)) break;
      state.rounds = round;
      keep();
      took = (now() - begin) / 1000;
      say(`round ${round} took ${took.toFixed(0)} s`);
    }
  }
  await end(servers);
  return state;
}

async function end(servers: readonly Started[]): Promise<void> {
  for (const { child } of servers) child.kill("SIGTERM");
  await Promise.all(servers.map(({ ended }) => ended));
  rmSync(join(out, "checkpoints"), { recursive: true, force: true });
  say("done");
}
