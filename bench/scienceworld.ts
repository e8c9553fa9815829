/**
 * The speed of ScienceWorld beside the official Python package, used as AgentGym does: the same
 * episodes, played in turns, so that both see the same load of the machine. Steps per second are
 * over all steps of an arm; `cpu` ratios compare processor time, which other programs disturb less.
 * Arms with `hash` leave the order of things to the JVM, as the Python package does.
 *
 * `npm run bench -- scienceworld [PYTHON]`, PYTHON one with the package (default: PAWL_PYTHON,
 * python3); without it only our own figures are taken. The jar is that Python's, or SCIENCEWORLD_JAR.
 */
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { gunzipSync } from "node:zlib";
import { RECORDINGS } from "@pawl/worlds/scienceworld/fixtures/installed.js";
import type { ScienceEnv } from "@pawl/worlds/scienceworld/science-env.js";
import {
  openScienceworld,
  type ScienceworldEnvironment,
  scienceworldOptions,
} from "@pawl/worlds/scienceworld/scienceworld.js";
import { taskKinds } from "@pawl/worlds/scienceworld/tasks.js";

/** Kinds that AgentGym's test list draws most from, and a long one. */
const KINDS = [
  "test-conductivity-of-unknown-substances",
  "use-thermometer",
  "find-living-thing",
  "melt",
];
/** Episodes that each arm plays before it is measured: the JVM compiles what it runs often. */
const WARM_UP = 28;
const MEASURED = 8;
const PARALLEL = 16;

interface Episode {
  readonly task: string;
  readonly variation: number;
  readonly actions: readonly string[];
}

interface Spent {
  readonly seconds: number;
  readonly cpu: number;
  readonly rss_mib: number;
}

interface Arm {
  play(episode: Episode): Promise<Spent>;
  close(): void;
}

function episodes(): readonly Episode[] {
  const lines = gunzipSync(readFileSync(join(RECORDINGS, "golden-1.3.0-gold.jsonl.gz")));
  const all = lines
    .toString()
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Omit<Episode, "actions"> & { steps: { action: string }[] })
    .map(({ task, variation, steps }) => ({
      task,
      variation,
      actions: steps.slice(1).map(({ action }) => action),
    }));
  const chosen = KINDS.map((kind) => all.filter(({ task }) => task === kind));
  return Array.from({ length: WARM_UP + MEASURED }, (_, i) => {
    const list = chosen[i % chosen.length]!;
    return list[Math.floor(i / chosen.length) % list.length]!;
  });
}

/** Processor seconds of a process so far, and its largest resident memory. */
function usage(pid: number): { readonly cpu: number; readonly mib: number } {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  const peak = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]!;
  return { cpu: (Number(fields[11]) + Number(fields[12])) / 100, mib: Number(peak) / 1024 };
}

const open = (options: object): ScienceworldEnvironment =>
  openScienceworld(scienceworldOptions.parse({ ...options, moveLimit: 0, processes: PARALLEL }));

async function begin(env: ScienceEnv, environment: ScienceworldEnvironment, episode: Episode) {
  const kind = taskKinds.find(({ name }) => name === episode.task)!;
  const id = environment.splits
    .map((split) => `${split}/${kind.name}/${episode.variation}`)
    .find((one) => environment.tasks(one.split("/")[0]!).some((task) => task.id === one))!;
  await env.reset(environment.task(id));
}

function ours(options: object): Arm {
  const environment = open(options);
  const env = environment.create();
  return {
    async play(episode) {
      await begin(env, environment, episode);
      const before = usage(env.pid).cpu;
      const node = process.cpuUsage();
      const started = performance.now();
      for (const action of episode.actions) if ((await env.step(action)).done) break;
      const seconds = (performance.now() - started) / 1000;
      const { user, system } = process.cpuUsage(node);
      const { cpu, mib } = usage(env.pid);
      return { seconds, cpu: cpu - before + (user + system) / 1e6, rss_mib: mib };
    },
    close: () => void env.close().then(() => environment.endIdle()),
  };
}

/** The Python package in a process of its own; undefined if this Python does not have it. */
async function theirs(python: string): Promise<Arm | undefined> {
  const script = join(import.meta.dirname, "peer", "scienceworld_peer.py");
  const child = spawn(python, [script], { stdio: ["pipe", "pipe", "ignore"] });
  child.on("error", () => undefined);
  child.stdin.on("error", () => undefined);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  if ((await lines.next()).done) return undefined;
  return {
    async play(episode) {
      child.stdin.write(`${JSON.stringify(episode)}\n`);
      const { value, done } = await lines.next();
      if (done) throw new Error("the Python package's process ended");
      return JSON.parse(value) as Spent;
    },
    close: () => void child.kill("SIGKILL"),
  };
}

/** Many worlds at once: steps per second of all together, and memory of each. */
async function inParallel(count: number, episode: Episode) {
  const environment = open({});
  const envs = Array.from({ length: count }, () => environment.create());
  await Promise.all(envs.map((env) => begin(env, environment, episode)));
  const started = performance.now();
  let steps = 0;
  await Promise.all(
    envs.map(async (env) => {
      for (const action of episode.actions) {
        steps++;
        if ((await env.step(action)).done) return;
      }
    }),
  );
  const seconds = (performance.now() - started) / 1000;
  const memory = envs.map((env) => usage(env.pid).mib);
  await Promise.all(envs.map((env) => env.close()));
  environment.endIdle();
  return { steps: steps / seconds, mib: Math.max(...memory) };
}

const rounded = (value: number): number => Number(value.toPrecision(3));

/** Runs the benchmark; looks for the recordings next to the repository. */
export async function main(args: readonly string[]): Promise<Record<string, number>> {
  if (!existsSync(RECORDINGS)) throw new Error(`no recordings at ${RECORDINGS} to play`);
  if (args[0] !== undefined) process.env.PAWL_PYTHON = args[0];
  const peer = await theirs(process.env.PAWL_PYTHON ?? "python3");
  const arms: Record<string, Arm> = {
    ...(peer && { python: peer }),
    plain: ours({}),
    valid: ours({ validActions: true }),
    plain_hash: ours({ order: "hash" }),
    valid_hash: ours({ validActions: true, order: "hash" }),
  };
  const spent: Record<string, Spent[]> = {};
  const played = episodes();
  for (const [at, episode] of played.entries())
    for (const [name, arm] of Object.entries(arms)) {
      const one = await arm.play(episode);
      if (at >= WARM_UP) spent[name] = [...(spent[name] ?? []), one];
    }
  for (const arm of Object.values(arms)) arm.close();
  const steps = played.slice(WARM_UP).reduce((sum, { actions }) => sum + actions.length, 0);
  const sum = (name: string, field: "seconds" | "cpu"): number =>
    spent[name]!.reduce((total, one) => total + one[field], 0);
  const figures: [string, number][] = Object.keys(arms).flatMap((name) => [
    [`${name}_steps_per_s`, steps / sum(name, "seconds")],
    [`${name}_steps_per_cpu_s`, steps / sum(name, "cpu")],
    [`${name}_rss_mib`, Math.max(...spent[name]!.map((one) => one.rss_mib))],
  ]);
  if (peer !== undefined)
    for (const name of Object.keys(arms).slice(1))
      figures.push(
        [`ratio_${name}`, sum("python", "seconds") / sum(name, "seconds")],
        [`ratio_${name}_cpu`, sum("python", "cpu") / sum(name, "cpu")],
      );
  const together = await inParallel(PARALLEL, played[0]!);
  figures.push(
    [`parallel_${PARALLEL}_steps_per_s`, together.steps],
    [`parallel_${PARALLEL}_rss_mib_each`, together.mib],
  );
  return Object.fromEntries(figures.map(([name, value]) => [name, rounded(value)]));
}
