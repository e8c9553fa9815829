/**
 * How fast `pawl ui` is: 200 runs, and a run of 50,000 episodes and 2 GB, both generated.
 *
 *   npm run bench -- ui [--episodes N] [--gb N] [--runs N] [--folder DIR] [--trainings N]
 *
 * open_runs_ms and open_run_ms are what a browser waits for, from a server that has just started: the
 * page, its files and the data of its first view (`…_seen_ms`: until Chromium shows it, if it is
 * installed). The record has no index then. filter_ms is the slowest of several filters after the
 * first scan; memory_mib the server's largest resident size. `…_cpu_ms` is the server's processor time
 * for the same, which a busy machine does not change much.
 *
 * open_updates_ms is the page of a run of 1,000 updates, from the server's first byte to its first
 * chart, which fills the first screen, and open_updates_all_ms to the last of those that are drawn
 * below it; open_trial_ms and open_trial_all_ms the same of a recorded run of 16 updates
 * (docs/browser/runs/trial). Each is the median of five openings, each by a server and a browser that
 * have just started.
 *
 * train_ratio compares trainings that are watched with trainings that are not, turn by turn.
 * server_share is the processor time of the server from a training's first update to its end, as a
 * share of the training's own in that time, over all trainings that were watched; server_core, as a
 * share of one processor. The page was open before, as people leave it, with the list of runs, and
 * then the page of the training too.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { type MetricsLine, readMetrics } from "@pawl/core/runs/metrics-file.js";
import { episodesPath, metricsPath } from "@pawl/core/runs/small-file.js";
import type { EpisodePage, RunList } from "@pawl/ui/server/api.js";
import { INDEX_FILE } from "@pawl/ui/server/episode-index.js";
import { makeLargeRun, makeLongRun, makeRuns } from "./shared/generated-runs.js";
import { browser, CLI, mid, openCharts, openPage, type Page } from "./shared/opened-page.js";

/** Generates, measures, removes. */
export async function main(args: readonly string[]): Promise<Record<string, number>> {
  const option = (name: string, missing: number): number => {
    const at = args.indexOf(`--${name}`);
    return at < 0 ? missing : Number(args[at + 1]);
  };
  const at = args.indexOf("--folder");
  const own = at < 0 ? undefined : args[at + 1];
  const root = own ?? mkdtempSync(join(tmpdir(), "pawl-bench-ui-"));
  try {
    const many = join(root, "many");
    const large = join(root, "large");
    if (!existsSync(many)) makeRuns(many, option("runs", 200));
    if (!existsSync(large))
      makeLargeRun(join(large, "run"), option("episodes", 50_000), option("gb", 2) * 1e9);
    return {
      ...(await openRuns(many)),
      ...(await openUpdates(join(root, "long"))),
      ...(await openLarge(large)),
      ...(await training(root, option("trainings", 3))),
    };
  } finally {
    if (own === undefined) rmSync(root, { recursive: true });
  }
}

const fail = (message: string): never => {
  throw new Error(message);
};

async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return Math.round(performance.now() - started);
}

/** Until Chromium shows what a selector names; the browser itself is started before. */
async function seen(address: string, selector: string): Promise<number> {
  const { chromium } = await import("playwright-core");
  const started = await chromium.launch({ executablePath: browser!, args: ["--no-sandbox"] });
  try {
    const page = await started.newPage();
    return await timed(async () => {
      await page.goto(address);
      await page.waitForSelector(selector, { timeout: 120_000 });
    });
  } finally {
    await started.close();
  }
}

/** The page and its files, as a browser asks for them. */
const files = (page: Page) =>
  Promise.all(["", "page.js", "page.css", "api/session"].map((path) => page.ask(path)));

async function openRuns(folder: string): Promise<Record<string, number>> {
  const page = await openPage(folder);
  let listed = 0;
  const before = processorTime(page.process.pid!);
  const open_runs_ms = await timed(async () => {
    await files(page);
    listed = (await page.ask<RunList>("api/runs")).runs.length;
  });
  const open_runs_cpu_ms = Math.round(1000 * (processorTime(page.process.pid!) - before));
  await page.stop();
  if (browser === undefined) return { runs: listed, open_runs_ms, open_runs_cpu_ms };
  const again = await openPage(folder);
  const open_runs_seen_ms = await seen(again.address, "table.runs tbody tr");
  await again.stop();
  return { runs: listed, open_runs_ms, open_runs_cpu_ms, open_runs_seen_ms };
}

async function openUpdates(folder: string): Promise<Record<string, number>> {
  if (browser === undefined) return {};
  if (!existsSync(folder)) makeLongRun(join(folder, "run"), 1000);
  const [open_updates_ms, open_updates_all_ms] = await openCharts(folder, "run");
  const trial = await openCharts(join("docs", "browser", "runs"), "trial");
  const [open_trial_ms, open_trial_all_ms] = trial;
  return { open_updates_ms, open_updates_all_ms, open_trial_ms, open_trial_all_ms };
}

const FILTERS = [
  "text=w1",
  "text=wab+w7",
  "type=heat&outcome=solved",
  "minSteps=3&sort=longest",
  "text=room&sort=best&from=20000",
];

async function openLarge(folder: string) {
  rmSync(join(folder, "run", INDEX_FILE), { force: true });
  const page = await openPage(folder);
  const first = (): Promise<unknown> =>
    Promise.all([
      page.ask("api/run?run=run"),
      page.ask("api/metrics?run=run"),
      page.ask("api/episodes?run=run"),
    ]);
  const open_run_ms = await timed(async () => {
    await files(page);
    await first();
  });
  let found: EpisodePage;
  const scan_ms =
    open_run_ms +
    (await timed(async () => {
      do {
        await wait(200);
        found = await page.ask<EpisodePage>("api/episodes?run=run");
      } while (found.progress < 1 || !existsSync(join(folder, "run", INDEX_FILE)));
    }));
  const times: number[] = [];
  const processor: number[] = [];
  for (const filter of FILTERS) {
    const before = processorTime(page.process.pid!);
    times.push(await timed(() => page.ask(`api/episodes?run=run&${filter}`)));
    processor.push(Math.round(1000 * (processorTime(page.process.pid!) - before)));
  }
  const open_episode_ms = await timed(() =>
    page.ask(`api/episode?run=run&id=${found!.rows[0]!.id}`),
  );
  const memory_mib = peakMemory(page.process.pid!);
  await page.stop();
  const again = await openPage(folder);
  const open_indexed_ms = await timed(() => again.ask("api/episodes?run=run"));
  const open_run_seen_ms =
    browser === undefined
      ? undefined
      : await seen(`${again.address}#/run/run/episodes`, "table.episodes tbody tr");
  const reopened_mib = peakMemory(again.process.pid!);
  await again.stop();
  return {
    episodes: found!.indexed,
    record_bytes: statSync(episodesPath(join(folder, "run"))).size,
    index_bytes: statSync(join(folder, "run", INDEX_FILE)).size,
    open_run_ms,
    scan_ms,
    filter_ms: Math.max(...times),
    filter_cpu_ms: Math.max(...processor),
    open_episode_ms,
    open_indexed_ms,
    ...(open_run_seen_ms !== undefined && { open_run_seen_ms }),
    memory_mib: Math.max(memory_mib, reopened_mib),
  };
}

/** The largest resident size of a process, where the system tells it. */
function peakMemory(pid: number): number {
  const status = `/proc/${pid}/status`;
  if (!existsSync(status)) return Number.NaN;
  return Math.round(Number(/VmHWM:\s+(\d+)/.exec(readFileSync(status, "utf8"))![1]) / 1024);
}

/** The processor time of a process in seconds, where the system tells it. */
function processorTime(pid: number): number {
  const stat = `/proc/${pid}/stat`;
  if (!existsSync(stat)) return Number.NaN;
  const fields = readFileSync(stat, "utf8").split(") ")[1]!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** A server that has just started tidies its memory; people leave it open. */
const SETTLE_MS = 15_000;

const TRAINING = [
  ...[
    "--env.rooms",
    "1",
    "--env.receptacles",
    "4",
    "--env.objects",
    "3",
    "--model.start",
    "tiny",
    "--model.max-context",
    "256",
  ],
  ...[
    "--warm-start.episodes",
    "8",
    "--warm-start.sft.epochs",
    "1",
    "--updates",
    "60",
    "--groups",
    "4",
    "--group-size",
    "4",
  ],
  ...["--step-limit", "6", "--max-tokens", "6", "--evaluation.every", "0", "--seed", "1"],
];

async function training(root: string, pairs: number) {
  const times = { alone: [] as number[], watched: [] as number[] };
  const used = { server: 0, training: 0, seconds: 0 };
  for (let n = 0; n < 2 * pairs; n++) {
    // Turn by turn, and the order turns too, so that a machine that gets slower favours neither.
    const watched = (n % 2 === 0) === n % 4 < 2;
    const folder = join(root, "trained", `${n}`);
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(join(root, "trained"), { recursive: true });
    // As people have it: the page is open when a training begins.
    const page = watched ? await watch(join(root, "trained"), "") : undefined;
    if (watched) await wait(SETTLE_MS);
    const child = spawn(process.execPath, [CLI, "train", ...TRAINING, "--out", folder], {
      stdio: "ignore",
    });
    const ended = new Promise<void>((resolve, reject) =>
      child.on("exit", (code) =>
        code === 0 ? resolve() : reject(new Error(`pawl train ended with ${code}`)),
      ),
    );
    if (page !== undefined) {
      const part = await usedWhile(page, child.pid!, metricsPath(folder), `${n}`, ended);
      used.server += part.server;
      used.training += part.training;
      used.seconds += part.seconds;
      await page.stop();
    }
    await ended;
    const lines = readMetrics(metricsPath(folder), fail).slice(5);
    times[watched ? "watched" : "alone"].push(mean(lines.map(secondsOf)));
  }
  return {
    train_ratio: Number((mid(times.watched) / mid(times.alone)).toFixed(4)),
    server_share: Number((used.server / used.training).toFixed(5)),
    server_core: Number((used.server / used.seconds).toFixed(5)),
    watched_s: Math.round(used.seconds),
  };
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

/** How long an update took, in all its parts. */
const secondsOf = (line: MetricsLine): number =>
  Object.entries(line).reduce(
    (all, [name, value]) => all + (name.startsWith("seconds.") ? value : 0),
    0,
  );

interface Used {
  /** Processor time of the server and of the training, and the time that passed, in seconds. */
  readonly server: number;
  readonly training: number;
  readonly seconds: number;
}

interface WatchedPage extends Page {
  listen(query: string): void;
}

/** A page that listens to what a server says, as the list of runs does. */
async function watch(folder: string, query: string): Promise<WatchedPage> {
  const page = await openPage(folder);
  const left = new AbortController();
  const listen = (asked: string): void => {
    fetch(`${page.address}api/live${asked}`, { signal: left.signal })
      .then(async ({ body }) => {
        for await (const _ of body!);
      })
      .catch(() => undefined);
  };
  listen(query);
  const stop = (): Promise<void> => {
    left.abort();
    return page.stop();
  };
  return { ...page, listen, stop };
}

/** What a training and the server take from the first update on, with the training's page open too. */
async function usedWhile(
  page: WatchedPage,
  training: number,
  metrics: string,
  id: string,
  ended: Promise<void>,
): Promise<Used> {
  while (!existsSync(metrics)) await wait(50);
  page.listen(`?run=${id}&from=0`);
  const look = () => ({
    server: processorTime(page.process.pid!),
    training: processorTime(training),
    seconds: performance.now() / 1000,
  });
  const before = look();
  let now = before;
  let isRunning = true;
  void ended.finally(() => {
    isRunning = false;
  });
  // The last time that the training is seen alive: afterwards its processor time is gone.
  while (isRunning) {
    if (existsSync(`/proc/${training}/stat`)) now = look();
    await Promise.race([ended, wait(1000)]);
  }
  return {
    server: now.server - before.server,
    training: now.training - before.training,
    seconds: now.seconds - before.seconds,
  };
}
