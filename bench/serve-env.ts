/**
 * The speed of `pawl serve env`: ALFWorld behind the socket, played by random clients on the same
 * machine. The server is a process of its own (the built command); the clients share this one, and
 * its cores. Latency is from sending an action to having its answer parsed. The server's processor
 * time per step, where the system tells it, says what it could do on a machine that does nothing
 * else. At the end 10,000 more clients connect: the server drops what is too much, and plays on.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { fileURLToPath } from "node:url";
import { createRandom } from "@pawl/core/random.js";
import { GAMES, officialDataThere, unpacked } from "@pawl/worlds/alfworld/fixtures/official.js";
import WebSocket from "ws";

const SECONDS = 5;
const WARM_UP = 2;
const SPLIT = "valid_seen";
const COMMAND = fileURLToPath(new URL("../dist/lib/main.js", import.meta.url));

interface Seen {
  readonly observation: { readonly admissible_actions: readonly string[] };
  readonly done: boolean;
}

/** A client that plays at random until it is told to stop. */
async function play(url: string, seed: number, book: (ms: number) => void, over: () => boolean) {
  const socket = new WebSocket(url, { perMessageDeflate: false });
  await once(socket, "open");
  const random = createRandom(seed);
  let steps = 0;
  await new Promise<void>((resolve, reject) => {
    let sent = 0;
    let playing = false;
    const reset = (): void => {
      playing = false;
      const index = random.int(140);
      socket.send(JSON.stringify({ type: "reset", data: { split: SPLIT, index, seed } }));
    };
    socket.on("error", reject);
    socket.on("close", () => resolve());
    socket.on("message", (text) => {
      const { type, data } = JSON.parse(String(text)) as { type: string; data: Seen };
      if (type !== "observation") return reject(new Error(String(text)));
      if (playing) book(performance.now() - sent);
      if (over()) return socket.close();
      if (data.done || steps++ % 40 === 39) return reset();
      playing = true;
      sent = performance.now();
      const action = random.pick(data.observation.admissible_actions);
      socket.send(JSON.stringify({ type: "step", data: { action } }));
    });
    reset();
  });
}

/** Steps per second and latencies with this many sessions. */
async function measure(url: string, pid: number, sessions: number) {
  const took: number[] = [];
  const before = cpuSeconds(pid);
  let all = 0;
  const start = performance.now() + 1000 * WARM_UP;
  const end = start + 1000 * SECONDS;
  const book = (ms: number): void => {
    all++;
    if (performance.now() >= start) took.push(ms);
  };
  const over = (): boolean => performance.now() >= end;
  await Promise.all(Array.from({ length: sessions }, (_, seed) => play(url, seed, book, over)));
  took.sort((a, b) => a - b);
  const at = (share: number): number => Number(took[Math.floor(share * took.length)]!.toFixed(3));
  const spent = before === undefined ? Number.NaN : cpuSeconds(pid)! - before;
  const serverUs = Math.round((1e6 * spent) / all);
  return { serverUs, perSecond: Math.round(took.length / SECONDS), median: at(0.5), p95: at(0.95) };
}

/** Processor time of a process so far, in seconds; undefined where there is no /proc. */
function cpuSeconds(pid: number): number | undefined {
  const file = `/proc/${pid}/stat`;
  if (!existsSync(file)) return undefined;
  // After the name in brackets: state is field 3, user and system time are 14 and 15, in 1/100 s.
  const fields = readFileSync(file, "utf8").split(") ").at(-1)!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** Connects many times, 500 at once, without saying anything. */
async function flood(url: string, count: number): Promise<void> {
  const { hostname, port } = new URL(url);
  for (let done = 0; done < count; done += 500) {
    const sockets = Array.from({ length: 500 }, () => connect(Number(port), hostname));
    for (const socket of sockets) socket.on("error", () => undefined);
    await new Promise((resolve) => setTimeout(resolve, 200));
    for (const socket of sockets) socket.destroy();
  }
}

/** Runs the benchmark; the games are looked for next to the repository. */
export async function main(): Promise<Record<string, number>> {
  if (!officialDataThere) throw new Error("the official games are not there: nothing to measure");
  const args = [
    "serve",
    "env",
    "alfworld",
    "--env.data",
    unpacked(GAMES),
    "--port",
    "0",
    "--max-sessions",
    "128",
  ];
  const server = spawn(process.execPath, [COMMAND, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const [line] = (await once(server.stdout, "data")) as [Buffer];
    const url = `${/http:\S+(?=,)/.exec(String(line))![0].replace("http", "ws")}/ws`;
    const pid = server.pid!;
    const one = await measure(url, pid, 1);
    await measure(url, pid, 64); // loads the games
    const many = await measure(url, pid, 64);
    await flood(url, 10_000);
    const after = await measure(url, pid, 1);
    return {
      serve_env_steps_per_s: many.perSecond,
      serve_env_latency_64_ms: many.median,
      serve_env_latency_64_p95_ms: many.p95,
      serve_env_server_us_per_step: many.serverUs,
      serve_env_steps_per_s_1: one.perSecond,
      serve_env_latency_1_ms: one.median,
      serve_env_latency_1_p95_ms: one.p95,
      serve_env_steps_per_s_1_after_10000: after.perSecond,
    };
  } finally {
    server.kill("SIGINT");
    await once(server, "exit");
  }
}
