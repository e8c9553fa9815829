/**
 * Long runs that must not grow: training, and servers whose clients come, go, die and lie.
 *
 *   npm run bench -- soak train [--updates 2000]
 *   npm run bench -- soak retriever|model|env|ui|engine [--minutes 30] [--clients 50]
 *
 * Prints memory and open files over time, and fails if memory grows by more than 5 % from the second
 * tenth of the run to the last, if files or processes are left, or if an answer is wrong. Needs
 * Linux (/proc); `engine` needs PAWL_PYTHON with PyTorch.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import WebSocket from "ws";
import { createRandom } from "../src/random.js";
import { mutate } from "../tests/fuzz/mutate.js";

const cli = resolve("dist/src/cli/main.js");
const TINY =
  "--env household --env.rooms 1 --env.receptacles 4 --env.objects 3 --model.start tiny --model.max-context 256 --warm-start.episodes 8 --warm-start.sft.epochs 1 --groups 2 --group-size 3 --step-limit 3 --max-tokens 6 --minibatch 64 --evaluation.every 0 --engine.threads 1";

/** What a process takes up at one moment. */
interface Sample {
  readonly megabytes: number;
  readonly files: number;
}

function sampleOf(pid: number): Sample | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const megabytes = Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024;
    return { megabytes, files: readdirSync(`/proc/${pid}/fd`).length };
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

/** The mean of each tenth of the samples. */
function tenths(samples: readonly Sample[], key: keyof Sample): readonly number[] {
  return Array.from({ length: 10 }, (_, index) => {
    const [from, to] = [index, index + 1].map((n) => Math.floor((n * samples.length) / 10));
    const part = samples.slice(from, to);
    return part.reduce((sum, sample) => sum + sample[key], 0) / Math.max(1, part.length);
  });
}

/** What grew from the second tenth to the last, and what is wrong with that. */
function judge(samples: readonly Sample[]) {
  const megabytes = tenths(samples, "megabytes");
  const files = tenths(samples, "files");
  const [early, late] = [megabytes[1]!, megabytes.at(-1)!];
  const moreFiles = files.at(-1)! - files[1]!;
  const problems = [
    ...(late > 1.05 * early
      ? [`memory grew from ${early.toFixed(0)} to ${late.toFixed(0)} MB`]
      : []),
    ...(moreFiles > 2 ? [`open files grew by ${moreFiles.toFixed(1)}`] : []),
  ];
  return {
    samples: samples.length,
    megabytesByTenth: megabytes.map(Math.round),
    moreFiles,
    problems,
  };
}

async function watch(child: ChildProcess, until: () => boolean): Promise<readonly Sample[]> {
  const samples: Sample[] = [];
  while (!until() && child.exitCode === null && child.signalCode === null) {
    const sample = sampleOf(child.pid!);
    if (sample !== undefined && sample.megabytes > 0) samples.push(sample);
    await wait(500);
  }
  return samples;
}

async function soakTraining(updates: number, folder: string, mark: string): Promise<object> {
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
      env: { ...process.env, TMPDIR: temporary, PAWL_SOAK: mark },
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
  return { ...result, updates, problems };
}

/** An answer: its HTTP status, and what is compared between answers to the same question. */
interface Answer {
  readonly status: number;
  readonly text: string;
}

/** How a server is started and used. */
interface Served {
  readonly command: readonly string[];
  /** The question that is asked again and again; liars damage it. */
  readonly question: string;
  ask(address: string, question: Buffer, signal?: AbortSignal): Promise<Answer>;
}

/** A question that is the body of a POST request. */
function posted(path: string, body: object, compared: (json: unknown) => unknown) {
  return {
    question: JSON.stringify(body),
    async ask(address: string, question: Buffer, signal?: AbortSignal): Promise<Answer> {
      const reply = await fetch(new URL(path, address), {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: new Uint8Array(question),
        ...(signal !== undefined && { signal }),
      });
      const json: unknown = await reply.json();
      return { status: reply.status, text: JSON.stringify(compared(json)) };
    },
  };
}

/** A question that is the query of a GET request. */
function queried(path: string, query: string) {
  return {
    question: query,
    async ask(address: string, question: Buffer, signal?: AbortSignal): Promise<Answer> {
      const url = new URL(path, address);
      url.search = question.toString("latin1");
      const reply = await fetch(url, signal === undefined ? {} : { signal });
      return { status: reply.status, text: await reply.text() };
    },
  };
}

/** Messages of an episode, one after another over a socket. */
function played(messages: readonly object[]) {
  return {
    question: messages.map((message) => JSON.stringify(message)).join("\n"),
    ask: (address: string, question: Buffer, signal?: AbortSignal) =>
      new Promise<Answer>((done, fail) => {
        const waiting = question.toString("latin1").split("\n");
        const seen: string[] = [];
        const socket = new WebSocket(new URL("/ws", address.replace("http", "ws")));
        const next = (): void => {
          const message = waiting.shift();
          if (message === undefined) socket.close();
          else socket.send(message);
        };
        signal?.addEventListener("abort", () => socket.terminate(), { once: true });
        socket.on("open", next);
        socket.on("message", (text) => {
          seen.push(String(text));
          next();
        });
        socket.on("error", fail);
        socket.on("close", () => done({ status: 200, text: seen.join("\n") }));
      }),
  };
}

const python = process.env.PAWL_PYTHON ?? "python3";
const pawl = [process.execPath, cli];
const servers: Readonly<Record<string, (folder: string) => Served>> = {
  retriever: () => ({
    command: [...pawl, "serve", "retriever", "--port", "0"],
    ...posted(
      "/retrieve",
      { queries: ["who founded the museum", "river"], topk: 3, return_scores: true },
      (json) => json,
    ),
  }),
  model: (folder) => ({
    command: [...pawl, "serve", "model", join(folder, "model"), "--port", "0"],
    ...posted(
      "/v1/chat/completions",
      {
        model: "model",
        messages: [{ role: "user", content: "look" }],
        max_tokens: 4,
        temperature: 0,
      },
      (json) => (json as { choices?: unknown }).choices,
    ),
  }),
  env: () => ({
    command: [...pawl, "serve", "env", "household", "--port", "0"],
    ...played([
      { type: "reset", data: { split: "train", index: 3, seed: 7, episode_id: "soak" } },
      { type: "step", data: { action: "look" } },
      { type: "step", data: { action: "inventory" } },
      { type: "state", data: {} },
    ]),
  }),
  ui: (folder) => ({
    command: [...pawl, "ui", folder, "--port", "0"],
    ...queried("api/metrics", "?run=run"),
  }),
  engine: (folder) => ({
    command: [
      ...[python, "servers/torch/serve.py", "--model", join(folder, "model"), "--threads", "1"],
      ...["--checkpoints", join(folder, "checkpoints")],
    ],
    ...posted("/api/v1/create_session", {}, (json) => (json as { type?: unknown }).type),
  }),
};

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
  const question = Buffer.from(served.question);
  const right = await served.ask(address, question);
  if (right.status !== 200) throw new Error(`answered ${right.status}: ${right.text}`);
  const counts = { good: 0, busy: 0, lies: 0, gone: 0, slow: 0, wrong: 0, unanswered: 0 };
  const reasons = new Set<string>();
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
      await act(random).catch((error: Error) => {
        counts.unanswered++;
        reasons.add(String(error.cause ?? error));
      });
      await wait(random.next() * 50);
    }
  };
  const playing = Promise.all(Array.from({ length: clients }, (_, index) => client(index)));
  const result = judge(await watch(child, over));
  await playing;
  const problems = [...result.problems];
  if (child.exitCode !== null) problems.push(`the server ended with ${child.exitCode}`);
  if (counts.wrong > 0) problems.push(`${counts.wrong} wrong answers`);
  if (counts.unanswered > 0)
    problems.push(
      `${counts.unanswered} requests were not answered: ${[...reasons].slice(0, 5).join("; ")}`,
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
    if (what === "train") result = await soakTraining(numberOf("--updates", 2000), folder, mark);
    else {
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
