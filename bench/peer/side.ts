/** Two sides of a comparison: ours, and PyTorch in a process of its own. */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { cpus } from "node:os";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";

/** Threads of both sides. */
export const THREADS = Number(process.env.PAWL_BENCH_THREADS ?? 2);
const REST_MS = 500;

/** A line-by-line protocol with the PyTorch side. */
export interface Peer {
  ask(command: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, number>>>;
  close(): void;
}

/** Starts a script of this folder. */
export function startPeer(file: string): Peer {
  const python = process.env.PAWL_PYTHON ?? "python3";
  const script = fileURLToPath(new URL(`./${file}`, import.meta.url));
  return startProgram(
    [python, script],
    `the PyTorch side ended; PAWL_PYTHON must be a Python with what ${file} imports (it is ${python})`,
  );
}

/** Starts a program that takes its number of threads and answers commands; `ended` says why it may have ended. */
export function startProgram(
  [program, ...args]: readonly [string, ...string[]],
  ended: string,
): Peer {
  const child = spawn(program, [...args, String(THREADS)], {
    stdio: ["pipe", "pipe", "inherit"],
    // Debian's OpenBLAS misdetects recent processors; other builds ignore this.
    env: { ...process.env, OPENBLAS_CORETYPE: "SkylakeX", OMP_NUM_THREADS: String(THREADS) },
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    ask: async (command) => {
      child.stdin.write(`${JSON.stringify(command)}\n`);
      const { value, done } = await lines.next();
      if (done) throw new Error(ended);
      return JSON.parse(value);
    },
    close: () => child.stdin.end(),
  };
}

/** The middle one. */
export const median = (numbers: readonly number[]) =>
  [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)]!;

/** Medians of both sides, interleaved, after a warm-up round. */
export async function interleave<Name extends string>(
  sides: Readonly<Record<Name, () => Promise<number>>>,
  repetitions: number,
): Promise<Readonly<Record<Name, number>>> {
  const seconds = Object.fromEntries(
    Object.keys(sides).map((name) => [name, [] as number[]]),
  ) as Record<Name, number[]>;
  for (let round = 0; round <= repetitions; round++)
    for (const name of Object.keys(sides) as Name[]) {
      // Both runtimes' threads spin for a while after their work, on the cores the other side
      // needs.
      await setTimeout(REST_MS);
      const spent = await sides[name]();
      if (round > 0) seconds[name].push(spent);
    }
  const result = Object.fromEntries(
    Object.keys(sides).map((name) => [name, median(seconds[name as Name])]),
  ) as Record<Name, number>;
  console.error(JSON.stringify({ seconds: result }));
  return result;
}

/** The peak memory of this process, in MiB. */
export function peakMemory(): number {
  return process.resourceUsage().maxRSS / 1024;
}

/** The machine, in words. */
export function machine(): string {
  const memory = /MemTotal:\s+(\d+)/.exec(readFileSync("/proc/meminfo", "utf8"))?.[1];
  return `${cpus().length} × ${cpus()[0]!.model}, ${Math.round(Number(memory) / 2 ** 20)} GiB, Node ${process.version}`;
}
