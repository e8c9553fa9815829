/** Servers as users start them, by the real command, and requests that no proper client would send. */
import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { hermes } from "@pawl/agents/testing.js";
import { createEmbeddedEngine } from "@pawl/engine-cpu/embedded-engine.js";
import { findTorchPython } from "@pawl/pawl/cli/torch-server.js";

/** A server that listens. */
export interface PawlServer {
  /** The address that it printed. */
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Everything that it has printed. */
  output(): string;
  /** Ctrl-C; resolves to its exit code. */
  stop(): Promise<number | null>;
}

/** Runs `pawl` with these arguments, until it says where it listens. */
export async function startPawl(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<PawlServer> {
  const own = Object.entries(process.env).filter(([name]) => !/^PAWL_.*KEY$/.test(name));
  const child = spawn(process.execPath, ["dist/lib/main.js", ...args], {
    env: { ...Object.fromEntries(own), ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  const listening = new Promise<string>((resolve, reject) => {
    const listen = (chunk: Buffer): void => {
      output += chunk.toString();
      const url = /http:\/\/[^\s;,]+/.exec(output)?.[0];
      if (url !== undefined && /Ctrl-C/.test(output)) resolve(url);
    };
    child.stdout.on("data", listen);
    child.stderr.on("data", listen);
    void ended.then((code) => reject(new Error(`pawl ended with ${code}: ${output}`)));
  });
  const url = await listening;
  return {
    url,
    port: Number(new URL(url).port),
    pid: child.pid!,
    output: () => output,
    stop() {
      child.kill("SIGINT");
      return ended;
    },
  };
}

/** Why the engine server cannot be started here; undefined if it can. */
export const noTorch = await findTorchPython(process.env).then(
  () => undefined,
  (error: Error) => error.message,
);
if (noTorch !== undefined) console.warn(`the engine server is not attacked: ${noTorch}`);

/** Makes a tiny model that can chat. */
export async function writeChatModel(folder: string): Promise<void> {
  const { vocabularySize } = hermes;
  const model = { preset: "tiny", vocabularySize, maxContext: 2048 } as const;
  const engine = await createEmbeddedEngine({ model, threads: 1 });
  await engine.save(folder, { optimizer: false });
  await engine.dispose();
  await hermes.save(folder);
}

/** What to ask. */
export interface Asking {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Asks a server of this machine, with any headers. */
export function ask(
  port: number,
  { method = "GET", path = "/", headers = {}, body }: Asking,
): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const type = body === undefined ? {} : { "content-type": "application/json" };
    const all = { host: `127.0.0.1:${port}`, ...type, ...headers };
    request({ port, method, path, headers: all, agent: false }, (reply) => {
      let text = "";
      reply.setEncoding("utf8");
      reply.on("data", (part: string) => {
        text += part;
      });
      reply.on("end", () => resolve({ status: reply.statusCode!, text }));
      reply.on("error", reject);
    })
      .on("error", reject)
      .end(body);
  });
}

/** A connection, and what came back over it. */
export interface Line {
  readonly socket: Socket;
  heard(): string;
  readonly closed: Promise<void>;
}

/** Connects and sends bytes as they are. */
export function dial(port: number, bytes: string): Line {
  let heard = "";
  const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
  socket.on("data", (chunk) => {
    heard += chunk.toString("latin1");
  });
  socket.on("error", () => undefined);
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  return { socket, heard: () => heard, closed };
}

/** Waits until something is so. */
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 20));
}

/** Whether this system tells which processes there are. */
export const tellsProcesses = process.platform === "linux";

/** The processes that a process has started and that live; only where `tellsProcesses`. */
export function childrenOf(pid: number): readonly number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((task) => {
    try {
      const text = readFileSync(`/proc/${pid}/task/${task}/children`, "utf8");
      return text.split(" ").filter(Boolean).map(Number);
    } catch {
      // The thread has just ended.
      return [];
    }
  });
}
