/**
 * Long runs that must not grow: training, and servers whose clients come, go, die and lie.
 *
 *   npm run bench -- soak train [--updates 2000] [--arenas 2]
 *   npm run bench -- soak retriever|model|env|ui|engine [--minutes 30] [--clients 50]
 *
 * Prints memory and open files over time: the mean of each tenth, and the least, which garbage that
 * waits to be collected does not change. Fails if the least memory grows by more than 5 % from the
 * second tenth of the run to the last, if files or processes are left, or if an answer is wrong. Needs
 * Linux (/proc); `engine` needs PAWL_PYTHON with PyTorch. `--arenas` is the number of glibc's arenas:
 * by default each thread has its own, and what they keep of freed memory grows for a while. `places`
 * says where the memory was in the middle of each tenth.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { createRandom } from "@pawl/core/random.js";
import { mutate } from "../tests/fuzz/mutate.js";
import { type MemoryMap, memoryOf } from "./shared/memory-map.js";
import { cli, type Served, servers } from "./shared/soak-servers.js";

const TINY =
  "--env household --env.rooms 1 --env.receptacles 4 --env.objects 3 --model.start tiny --model.max-context 256 --warm-start.episodes 8 --warm-start.sft.epochs 1 --groups 2 --group-size 3 --step-limit 3 --max-tokens 6 --minibatch 64 --evaluation.every 0 --engine.threads 1";

/** What a process takes up at one moment. */
interface Sample {
  readonly megabytes: number;
  readonly files: number;
  readonly places: MemoryMap;
}

function sampleOf(pid: number): Sample | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const megabytes = Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024;
    const places = memoryOf(pid);
    if (places === undefined) return undefined;
    return { megabytes, files: readdirSync(`/proc/${pid}/fd`).length, places };
  } catch {
    return undefined;
  }
}

/** Processes that were started with this mark in their environment. */
const marked = (mark: string): readonly string[] =>
  readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      return readFileSync(`/proc/${name}/environ`, "utf8").includes(mark);
    } catch {
      return false;
    }
  });

/** One number for each tenth of the samples. */
function tenths(
  samples: readonly Sample[],
  key: "megabytes" | "files",
  summary: (values: readonly number[]) => number,
): readonly number[] {
  return Array.from({ length: 10 }, (_, index) => {
    const [from, to] = [index, index + 1].map((n) => Math.floor((n * samples.length) / 10));
    return summary(samples.slice(from, to).map((sample) => sample[key]));
  });
}

/** Where the memory was in the middle of each tenth, in MiB. */
function placesByTenth(samples: readonly Sample[]): Readonly<Record<string, readonly number[]>> {
  const middles = Array.from(
    { length: 10 },
    (_, i) => samples[Math.floor(((i + 0.5) * samples.length) / 10)],
  );
  const kinds = ["arenas", "heap", "other", "files", "heaps"] as const;
  return Object.fromEntries(
    kinds.map((kind) => [kind, middles.map((sample) => Math.round(sample?.places[kind] ?? 0))]),
  );
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);

/** What grew from a tenth (of ten; the second unless told) to the last, and what is wrong with that. */
function judge(samples: readonly Sample[], from = 1) {
  const least = tenths(samples, "megabytes", (values) => Math.min(...values));
  const files = tenths(samples, "files", mean);
  const [early, late] = [least[Math.min(from, 9)]!, least.at(-1)!];
  const moreFiles = files.at(-1)! - files[1]!;
  const problems = [
    ...(late > 1.05 * early
      ? [`memory grew from ${early.toFixed(0)} to ${late.toFixed(0)} MB`]
      : []),
    ...(moreFiles > 2 ? [`open files grew by ${moreFiles.toFixed(1)}`] : []),
  ];
  return {
    samples: samples.length,
    megabytesByTenth: tenths(samples, "megabytes", mean).map(Math.round),
    leastByTenth: least.map(Math.round),
    places: placesByTenth(samples),
    moreFiles,
    problems,
  };
}

async function watch(child: ChildProcess, until: () => boolean): Promise<readonly Sample[]> {
  const samples: Sample[] = [];
  while (!until() && child.exitCode === null && child.signalCode === null) {
    const sample = sampleOf(child.pid!);
    if (sample !== undefined && sample.megabytes > 0) samples.push(sample);
    await wait(1000);
  }
  return samples;
}

async function soakTraining(
  { updates, arenas, mark }: { updates: number; arenas: number; mark: string },
  folder: string,
): Promise<object> {
  const temporary = join(folder, "tmp");
  mkdirSync(temporary);
  const args = [
    "train",
    ...TINY.split(" "),
    "--updates",
    String(updates),
    "--checkpoint-every",
    "50",
  ];
  const start = (out: string) =>
    spawn(process.execPath, [cli, ...args, "--out", join(folder, out)], {
      env: {
        ...process.env,
        TMPDIR: temporary,
        PAWL_SOAK: mark,
        ...(arenas > 0 && { MALLOC_ARENA_MAX: String(arenas) }),
      },
      stdio: ["ignore", "ignore", "inherit"],
    });
  const child = start("run");
  const result = judge(await watch(child, () => false));
  const problems = [...result.problems];
  if (child.exitCode !== 0)
    problems.push(`training ended with ${child.exitCode ?? child.signalCode}`);
  for (const signal of ["SIGINT", "SIGKILL"] as const) {
    const ended = start(`ended-${signal}`);
    await wait(8000);
    ended.kill(signal);
    await new Promise((done) => ended.on("close", done));
  }
  await wait(1000);
  const left = marked(`PAWL_SOAK=${mark}`);
  if (left.length > 0) problems.push(`processes left: ${left.join(", ")}`);
  const files = readdirSync(temporary);
  if (files.length > 0) problems.push(`temporary files left: ${files.join(", ")}`);
  return { ...result, updates, ...(arenas > 0 && { arenas }), problems };
}

async function soakServer(
  served: Served,
  { minutes, clients, mark }: { minutes: number; clients: number; mark: string },
): Promise<object> {
  const [program, ...args] = served.command;
  const child = spawn(program!, args, {
    env: { ...process.env, PAWL_SOAK: mark },
    stdio: ["ignore", "pipe", "inherit"],
  });
  // With the path, if that holds a key.
  const address = await new Promise<string>((done, fail) => {
    let text = "";
    child.stdout.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      const found = /http:\/\/[^\s",]+(?=[\s",])/.exec(text)?.[0];
      if (found !== undefined) done(found);
    });
    child.on("close", () => fail(new Error(`the server ended: ${text}`)));
  });
  // Whatever goes wrong here, the server is not left behind.
  process.on("exit", () => void child.kill("SIGKILL"));
  const { hostname, port } = new URL(address);
  const question = Buffer.from((await served.prepare?.(address)) ?? served.question);
  const right = await served.ask(address, question);
  if (right.status !== 200) throw new Error(`answered ${right.status}: ${right.text}`);
  const counts = { good: 0, busy: 0, lies: 0, gone: 0, slow: 0, wrong: 0, unanswered: 0 };
  const reasons = new Map<string, number>();
  const end = Date.now() + minutes * 60_000;
  const over = (): boolean => Date.now() > end;
  const acts = [
    async () => {
      const { status, text } = await served.ask(address, question);
      if ([429, 503].includes(status)) counts.busy++;
      else if (status === 200 && text === right.text) counts.good++;
      else counts.wrong++;
    },
    async (random: ReturnType<typeof createRandom>) => {
      const { status } = await served.ask(address, mutate(random, [question]));
      counts.lies++;
      if (status >= 500 && status !== 503) counts.wrong++;
    },
    async (random: ReturnType<typeof createRandom>) => {
      // Gone before its answer comes.
      const signal = AbortSignal.timeout(1 + Math.floor(random.next() * 20));
      await served.ask(address, question, signal).catch(() => undefined);
      counts.gone++;
    },
    async (random: ReturnType<typeof createRandom>) => {
      const socket = connect(Number(port), hostname.replace(/[[\]]/g, ""));
      socket.on("error", () => undefined);
      socket.write(
        `POST ${new URL(address).pathname} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000\r\n`,
      );
      await wait(random.next() * 2000);
      socket.destroy();
      counts.slow++;
    },
  ];
  const client = async (index: number): Promise<void> => {
    const random = createRandom(index);
    while (!over() && child.exitCode === null) {
      // Mostly good ones.
      const act = acts[random.next() < 0.5 ? 0 : Math.floor(random.next() * acts.length)]!;
      const began = Date.now();
      await act(random).catch((error: Error) => {
        counts.unanswered++;
        const reason = `${acts.indexOf(act) === 0 ? "good" : "lie"}: ${String(error.cause ?? error)}`;
        reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
        process.stderr.write(
          `${new Date().toISOString()} ${reason} after ${Date.now() - began} ms\n`,
        );
      });
      await wait(random.next() * 50);
    }
  };
  const playing = Promise.all(Array.from({ length: clients }, (_, index) => client(index)));
  const settled = Math.max(1, Math.ceil((10 * (served.settles ?? 0)) / minutes));
  const result = judge(await watch(child, over), settled);
  await playing;
  const problems = [...result.problems];
  if (child.exitCode !== null) problems.push(`the server ended with ${child.exitCode}`);
  if (counts.wrong > 0) problems.push(`${counts.wrong} wrong answers`);
  if (counts.unanswered > 0)
    problems.push(
      `${counts.unanswered} requests were not answered: ${[...reasons].map(([reason, times]) => `${times} × ${reason}`).join("; ")}`,
    );
  child.kill(program === process.execPath ? "SIGINT" : "SIGTERM");
  await new Promise((done) => (child.exitCode === null ? child.on("close", done) : done(0)));
  const left = marked(`PAWL_SOAK=${mark}`);
  if (left.length > 0) problems.push(`processes left: ${left.join(", ")}`);
  return { ...result, ...counts, minutes, clients, problems };
}

export async function main(args: readonly string[]): Promise<object> {
  const numberOf = (flag: string, usual: number): number => {
    const at = args.indexOf(flag);
    return at < 0 ? usual : Number(args[at + 1]);
  };
  const [what = "train"] = args;
  const folder = mkdtempSync(join(tmpdir(), "pawl-soak-"));
  const mark = `soak-${process.pid}`;
  try {
    let result: object & { problems?: readonly string[] };
    if (what === "train") {
      const [updates, arenas] = [numberOf("--updates", 2000), numberOf("--arenas", 0)];
      result = await soakTraining({ updates, arenas, mark }, folder);
    } else {
      const make = servers[what];
      if (make === undefined) throw new Error(`expected train, ${Object.keys(servers).join(", ")}`);
      if (what !== "retriever" && what !== "env") {
        const train = [
          "train",
          ...TINY.split(" "),
          "--prompt.style",
          "chat",
          "--updates",
          "1",
          "--out",
          join(folder, "run"),
        ];
        for (const line of [train, ["export", join(folder, "run"), "--out", join(folder, "model")]])
          if (
            spawnSync(process.execPath, [cli, ...line], { stdio: ["ignore", "ignore", "inherit"] })
              .status !== 0
          )
            throw new Error(`pawl ${line[0]} failed`);
      }
      const limits = {
        minutes: numberOf("--minutes", 30),
        clients: numberOf("--clients", 50),
        mark,
      };
      result = await soakServer(make(folder), limits);
    }
    if ((result.problems?.length ?? 0) > 0) process.exitCode = 1;
    return { what, ...result };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
