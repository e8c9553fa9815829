/**
 * Questions to a server over HTTP, each of which may depend on the answers before it. Environments
 * are opened at once and not later, so this thread waits while another one asks. A server in this
 * very thread could never answer.
 */
import { MessageChannel, receiveMessageOnPort, Worker } from "node:worker_threads";
import { EnvError } from "../env.js";

/** A question. */
export interface HttpQuestion {
  readonly method: "GET" | "POST";
  /** Begins with a slash. */
  readonly path: string;
  readonly body?: unknown;
}

/** An answer. */
export interface HttpAnswer {
  readonly status: number;
  readonly text: string;
}

/** Yields questions, is given answers, and returns what it found out. */
export type Dialogue<T> = Generator<HttpQuestion, T, HttpAnswer>;

/** Where the server is. */
export interface DialoguePartner {
  /** Without a slash at the end. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

/** Longer answers are a fault of the server. */
const MAX_ANSWER = 2 ** 26;

/** Runs in a thread of its own, so that the main one can wait for it. */
const SCRIPT = `
const { workerData: { port, flag, url, headers, timeoutMs, maxBytes } } = require("node:worker_threads");
port.on("message", async ({ method, path, body }) => {
  let answer;
  try {
    const response = await fetch(url + path, {
      method, redirect: "manual", signal: AbortSignal.timeout(timeoutMs),
      headers: { ...headers, ...(body !== undefined && { "content-type": "application/json" }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const chunks = [];
    let size = 0;
    for await (const chunk of response.body ?? []) {
      size += chunk.length;
      if (size > maxBytes) throw new Error("an answer of more than " + maxBytes + " bytes");
      chunks.push(chunk);
    }
    answer = { status: response.status, text: Buffer.concat(chunks).toString("utf8") };
  } catch (error) {
    const cause = error.cause instanceof Error ? error.cause : error;
    answer = { problem: ((cause.code ?? "") + " " + cause.message).trim() };
  }
  port.postMessage(answer);
  Atomics.store(flag, 0, 1);
  Atomics.notify(flag, 0);
});`;

/** How much longer than a request its thread may take. */
const THREAD_MS = 30_000;

/** Holds a dialogue while this thread waits. */
export function holdWaiting<T>(partner: DialoguePartner, dialogue: Dialogue<T>): T {
  const { url, headers, timeoutMs } = partner;
  const flag = new Int32Array(new SharedArrayBuffer(4));
  const { port1, port2 } = new MessageChannel();
  const worker = new Worker(SCRIPT, {
    eval: true,
    workerData: { port: port2, flag, url, headers, timeoutMs, maxBytes: MAX_ANSWER },
    transferList: [port2],
  });
  worker.unref();
  try {
    let next = dialogue.next();
    while (!next.done) {
      Atomics.store(flag, 0, 0);
      port1.postMessage(next.value);
      Atomics.wait(flag, 0, 0, timeoutMs + THREAD_MS);
      const answer = receiveMessageOnPort(port1)?.message as
        | HttpAnswer
        | { problem: string }
        | undefined;
      if (answer === undefined || "problem" in answer)
        throw new EnvError(
          `${next.value.method} ${url}${next.value.path} failed: ${answer?.problem ?? "no answer"}. Is the server running?`,
        );
      next = dialogue.next(answer);
    }
    return next.value;
  } finally {
    port1.close();
    void worker.terminate();
  }
}
