/** The servers that `soak` puts under load: how each is started, and what is asked of it. */
import { join, resolve } from "node:path";
import WebSocket from "ws";

/** The program as built. */
export const cli = resolve("dist/lib/main.js");

/** An answer: its HTTP status, and what is compared between answers to the same question. */
interface Answer {
  readonly status: number;
  readonly text: string;
}

/** How a server is started and used. */
export interface Served {
  readonly command: readonly string[];
  /** Minutes until caches of a known size are full: memory is compared from then on. */
  readonly settles?: number;
  /** What clients need before they ask; the result is the question, if it is not known before. */
  prepare?(address: string): Promise<string>;
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

/** A question to the PyTorch server: samples of a model, fetched when they are there. */
function sampled(): Pick<Served, "prepare" | "question" | "ask"> {
  const call = async (address: string, name: string, body: Buffer, signal?: AbortSignal) => {
    const reply = await fetch(new URL(`/api/v1/${name}`, address), {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: new Uint8Array(body),
      ...(signal !== undefined && { signal }),
    });
    return { status: reply.status, json: (await reply.json()) as Record<string, unknown> };
  };
  const ask: Served["ask"] = async (address, question, signal) => {
    const { status, json } = await call(address, "sample_batch", question, signal);
    if (status !== 200) return { status, text: JSON.stringify(json) };
    const body = Buffer.from(JSON.stringify({ request_id: json.request_id }));
    for (;;) {
      const found = await call(address, "retrieve_future", body, signal);
      if (found.status === 408) continue;
      // Log-probabilities differ by rounding with what else is in the batch; tokens must not.
      const text = JSON.stringify(found.json, (key, value) =>
        /logprobs$/.test(key) ? undefined : value,
      );
      return { status: found.status, text };
    }
  };
  return {
    question: "",
    ask,
    async prepare(address) {
      const ready = async (name: string, body: object) => {
        const { status, json } = await call(address, name, Buffer.from(JSON.stringify(body)));
        if (status !== 200) throw new Error(`${name}: ${status} ${JSON.stringify(json)}`);
        return json;
      };
      const { session_id } = await ready("create_session", {});
      setInterval(() => ready("session_heartbeat", { session_id }).catch(() => 0), 10_000).unref();
      const made = await ready("create_model", { session_id, base_model: "model", seed: 1 });
      await ready("retrieve_future", { request_id: made.request_id });
      return JSON.stringify({
        model_id: made.model_id,
        requests: [
          {
            prompt: [1, 2, 3, 4, 5, 6, 7, 8],
            num_samples: 2,
            sampling_params: { max_tokens: 4, seed: 1, temperature: 0.7 },
          },
        ],
      });
    },
  };
}

const python = process.env.PAWL_PYTHON ?? "python3";
const pawl = [process.execPath, cli];
/** The servers that are put under load, by name. */
export const servers: Readonly<Record<string, (folder: string) => Served>> = {
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
    // Results are kept for ten minutes after they were sent, and fifteen if nobody came.
    settles: 16,
    ...sampled(),
  }),
};
