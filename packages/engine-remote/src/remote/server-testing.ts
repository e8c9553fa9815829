/** A real HTTP server of the protocol over embedded engines, for tests with Node alone; it can fail. */
import { randomUUID } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { type Engine, EngineError } from "@pawl/core/engine/engine.js";
import { HttpError } from "@pawl/core/http/http-server.js";
import { input, logprob, mul, neg, type Objective } from "@pawl/core/objectives/expression.js";
import { parseObjective } from "@pawl/core/objectives/expression-parse.js";
import type { EmbeddedOptions } from "@pawl/engine-cpu/core.js";
import { inProcess } from "./model-testing.js";
import { plainRules } from "./plain-rules-testing.js";
import {
  type Asked,
  type Input,
  integersOf,
  normalise,
  samplingOf,
  scored,
  sent,
  sequenceOf,
  shifted,
} from "./wire-testing.js";

/** What to do with a request instead of answering it. */
export type Fault =
  /** Close the connection before doing anything. */
  | "drop"
  /** Execute the call and close the connection instead of answering. */
  | "drop answer"
  | { readonly status: number; readonly error: string };

export interface TestServerOptions {
  /** The served model. */
  readonly model: EmbeddedOptions;
  /** Where checkpoints go. */
  readonly folder: string;
  /** Whether it is our own server; if not, it knows only the plain protocol. */
  readonly extensions: boolean;
  /** An extension, or the call `forward` of a plain server, that it lacks nevertheless. */
  readonly without?: string;
  /** Does not know `forward_only`. */
  readonly ignoresForwardOnly?: boolean;
  /** Answers with a sampling session instead of a path. */
  readonly samplingSessions?: boolean;
  /** Divides by the sum of the weights. */
  readonly normalises?: boolean;
  readonly key?: string;
  readonly port?: number;
  /** How long a poll waits, in milliseconds. */
  readonly pollMs?: number;
  /** Called before each request, with the call's name and how many of them came before. */
  readonly fault?: (path: string, before: number) => Fault | undefined;
}

/** A running server. */
export interface TestServer {
  readonly url: string;
  /** Requests by call. */
  readonly counts: ReadonlyMap<string, number>;
  /** Headers and bodies of all requests. */
  readonly requests: readonly { readonly path: string; readonly body: string }[];
  close(): Promise<void>;
}

type Json = Readonly<Record<string, unknown>>;

interface Model {
  readonly engine: Engine;
  readonly done: Map<number, string>;
  queue: Promise<unknown>;
}

const crossEntropy: Objective = { loss: mul(input("weights"), neg(logprob)), metrics: {} };

/** Starts a server at a free port, or at the given one. */
export async function startTestServer(options: TestServerOptions): Promise<TestServer> {
  const { extensions, folder } = options;
  const rules = extensions ? () => undefined : plainRules();
  const sessions = new Set<string>();
  const models = new Map<string, Model>();
  const samplers = new Map<string, Engine>();
  const made = new Map<string, string>();
  const futures = new Map<string, Promise<Json>>();
  const counts = new Map<string, number>();
  const requests: { path: string; body: string }[] = [];

  const start = (work: () => Promise<Json>, id: string = randomUUID()): string => {
    const future = work();
    future.catch(() => undefined);
    futures.set(id, future);
    return id;
  };
  const modelOf = (body: Json): Model => {
    const model = models.get(String(body.model_id));
    if (model === undefined) throw new HttpError(404, `unknown model_id ${String(body.model_id)}`);
    return model;
  };
  /**
   * Runs after earlier calls to the model; a repeated `seq_id` gets the future of the first one.
   */
  const queued = (body: Json, work: (engine: Engine) => Promise<Json>): Json => {
    const model = modelOf(body);
    const seq = extensions ? (body.seq_id as number | undefined) : undefined;
    const before = seq === undefined ? undefined : model.done.get(seq);
    if (before !== undefined) return { request_id: before };
    const id = start(() => {
      const result = model.queue.then(() => work(model.engine));
      model.queue = result.catch(() => undefined);
      return result;
    });
    if (seq !== undefined) model.done.set(seq, id);
    return { request_id: id };
  };
  const pathOf = (path: unknown): string => {
    if (typeof path !== "string" || !/^[\w.-]+(\/[\w.-]+)*$/.test(path) || path.includes(".."))
      throw new HttpError(400, `path: expected letters, digits and . _ - /, got ${String(path)}`);
    return join(folder, path);
  };
  const abilities = ({ capabilities }: Engine): Json => ({
    vocabulary_size: capabilities.vocabularySize,
    max_context: capabilities.maxContext,
    parameters: capabilities.parameters,
    entropies: capabilities.entropies,
    values: capabilities.values,
    lora: false,
  });
  /** Written to a temporary name and renamed, so that it exists completely or not at all. */
  const save = async (engine: Engine, path: string, optimizer: boolean) => {
    const temporary = `${path}.tmp`;
    await rm(temporary, { recursive: true, force: true });
    await mkdir(temporary, { recursive: true });
    await engine.save(temporary, { optimizer });
    await rm(path, { recursive: true, force: true });
    await rename(temporary, path);
  };

  const calls: Readonly<Record<string, (body: Json) => Json | Promise<Json>>> = {
    create_session: () => {
      const id = randomUUID();
      sessions.add(id);
      return { session_id: id };
    },
    session_heartbeat: (body) => {
      if (!sessions.has(String(body.session_id))) throw new HttpError(404, "unknown session_id");
      return {};
    },
    create_model: (body) => {
      if (!sessions.has(String(body.session_id))) throw new HttpError(404, "unknown session_id");
      const key = String(body.request_key);
      const id = (extensions ? made.get(key) : undefined) ?? randomUUID();
      if (futures.has(id)) return { request_id: id, model_id: id };
      made.set(key, id);
      const base = String(body.base_model);
      start(async () => {
        const source = base.startsWith("checkpoint:")
          ? { model: { folder: pathOf(base.slice("checkpoint:".length)) } }
          : {};
        const valueHead = body.value_head === true;
        const engine = await inProcess({ ...options.model, ...source, valueHead });
        models.set(id, { engine, done: new Map(), queue: Promise.resolve() });
        return { model_id: id, ...(extensions && { pawl: abilities(engine) }) };
      }, id);
      return { request_id: id, model_id: id };
    },
    unload_model: async (body) => {
      const model = modelOf(body);
      models.delete(String(body.model_id));
      await model.queue;
      await model.engine.dispose();
      return {};
    },
    retrieve_future: async (body) => {
      const future = futures.get(String(body.request_id));
      if (future === undefined) throw new HttpError(404, "unknown request_id");
      const late = new Promise<undefined>((resolve) => {
        setTimeout(resolve, options.pollMs ?? 1000, undefined).unref();
      });
      const result = await Promise.race([future, late]).catch((error: unknown) => {
        if (error instanceof EngineError) throw new HttpError(400, error.message);
        throw error;
      });
      if (result === undefined) throw new HttpError(408, "not yet");
      return result;
    },
    forward: (body) =>
      queued(body, async (engine) => {
        const { data, loss_fn_config } = body.forward_input as Input;
        const config = (loss_fn_config ?? {}) as Readonly<Record<string, never>>;
        return scored(await engine.forward(data.map(sequenceOf), extensions ? config : {}));
      }),
    forward_backward: (body) =>
      queued(body, async (engine) => {
        const { data, loss_fn, loss_fn_config } = body.forward_backward_input as Input;
        if (body.forward_only === true && options.ignoresForwardOnly !== true)
          return scored(await engine.forward(data.map(sequenceOf), {}));
        if (loss_fn !== "cross_entropy" && !(extensions && loss_fn === "objective"))
          throw new EngineError(`unknown loss_fn ${loss_fn}`);
        let sequences = data.map(sequenceOf);
        if (options.normalises === true) sequences = normalise(sequences);
        const objective =
          loss_fn === "objective" ? parseObjective(loss_fn_config?.objective) : crossEntropy;
        const { loss, metrics, logprobs } = await engine.forwardBackward(sequences, objective);
        return {
          loss_fn_outputs: logprobs.map((values) => ({ logprobs: shifted(values) })),
          metrics: Object.fromEntries(
            Object.entries({ ...metrics, loss }).map(([name, sum]) => [`${name}:sum`, sum]),
          ),
        };
      }),
    optim_step: (body) =>
      queued(body, async (engine) => {
        const adam = body.adam_params as Readonly<Record<string, number>>;
        const { gradNorm } = await engine.optimStep({
          learningRate: adam.learning_rate!,
          beta1: adam.beta1!,
          beta2: adam.beta2!,
          eps: adam.eps!,
          weightDecay: adam.weight_decay!,
          ...(adam.grad_clip_norm !== undefined && { gradClipNorm: adam.grad_clip_norm }),
        });
        return { metrics: { grad_norm: gradNorm } };
      }),
    save_weights: (body) =>
      queued(body, async (engine) => {
        await save(engine, pathOf(body.path), body.optimizer !== false);
        return { path: body.path, type: "save_weights" };
      }),
    load_weights: (body) =>
      queued(body, async (engine) => {
        await engine.load(pathOf(body.path));
        return { path: body.path, ...(extensions && { pawl: abilities(engine) }) };
      }),
    ...(extensions ? ours() : plain()),
  };

  function ours(): typeof calls {
    return {
      discard_gradients: (body) =>
        queued(body, async (engine) => ({
          metrics: { grad_norm: (await engine.discardGradients()).gradNorm },
        })),
      snapshot_reference: (body) =>
        queued(body, async (engine) => {
          await engine.snapshotReference();
          return {};
        }),
      sample_batch: (body) =>
        queued(body, async (engine) => {
          const asked = body.requests as readonly Asked[];
          const results = await engine.sample(
            asked.map(({ prompt, num_samples, sampling_params }) => ({
              prompt: integersOf(prompt),
              count: num_samples,
              ...samplingOf(sampling_params),
              stop: sampling_params.stop as readonly (readonly number[])[],
            })),
          );
          return { results: results.map((samples) => ({ sequences: samples.map(sent) })) };
        }),
      delete_weights: async (body) => {
        await rm(pathOf(body.path), { recursive: true, force: true });
        return { deleted: true };
      },
    };
  }

  function plain(): typeof calls {
    return {
      save_weights_for_sampler: (body) =>
        queued(body, async (engine) => {
          await save(engine, pathOf(body.path), false);
          const copy = `copy:${String(body.path)}`;
          return options.samplingSessions === true ? { sampling_session_id: copy } : { path: copy };
        }),
      asample: (body) => ({
        request_id: start(async () => {
          const copy = body.sampling_session_id ?? body.model_path;
          const path = String(copy).replace(/^copy:/, "");
          if (!samplers.has(path)) {
            const copy = { ...options.model, model: { folder: pathOf(path) } };
            samplers.set(path, await inProcess(copy));
          }
          const { prompt, num_samples, sampling_params } = body as unknown as Asked;
          const { chunks } = prompt as unknown as {
            readonly chunks: readonly { tokens: number[] }[];
          };
          const [samples] = await samplers.get(path)!.sample([
            {
              prompt: chunks.flatMap(({ tokens }) => tokens),
              count: num_samples,
              ...samplingOf(sampling_params),
              stop: (sampling_params.stop as readonly number[]).map((id) => [id]),
            },
          ]);
          return {
            sequences: samples!.map(({ tokens, logprobs, stopReason }) => ({
              tokens,
              logprobs,
              stop_reason: stopReason,
            })),
          };
        }),
      }),
    };
  }

  const answer = async (request: IncomingMessage, path: string, text: Buffer): Promise<Reply> => {
    if (options.key !== undefined && request.headers["x-api-key"] !== options.key)
      throw new HttpError(401, "a key is needed");
    if (path === "get_server_capabilities") return { json: await serverAbilities() };
    if (extensions && path.startsWith("files/")) return file(request, path.slice(6), text);
    const call = path === options.without ? undefined : calls[path];
    if (call === undefined) throw new HttpError(404, `no call ${path}`);
    const body = JSON.parse(text.toString()) as Json;
    const [status, reason] = rules(path, body) ?? [];
    if (status !== undefined) throw new HttpError(status, reason!);
    return { json: await call(body) };
  };
  const file = async (request: IncomingMessage, path: string, content: Buffer): Promise<Reply> => {
    const target = pathOf(path);
    if (request.method === "GET") {
      const bytes = await readFile(target).catch(() => undefined);
      if (bytes === undefined) throw new HttpError(404, `no file ${path}`);
      return { bytes };
    }
    await mkdir(dirname(target), { recursive: true });
    await writeFile(`${target}.tmp`, content);
    await rename(`${target}.tmp`, target);
    return { json: { bytes: content.length } };
  };
  const serverAbilities = async (): Promise<Json> => {
    const supported_models = [{ model_name: "test-model" }];
    if (!extensions) return { supported_models };
    const names = "objective reference discard sample_batch base64 files temperatures".split(" ");
    const all = Object.fromEntries(names.map((name) => [name, name !== options.without]));
    return { supported_models, pawl: { version: 1, dtype: "float32", ranks: 1, ...all } };
  };

  const server = createServer((request, response) => {
    void handle(request, response);
  });
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = request.url!.replace(/^\/api\/v1\//, "");
    const before = counts.get(path) ?? 0;
    counts.set(path, before + 1);
    const fault = options.fault?.(path, before);
    if (fault === "drop") {
      request.socket.destroy();
      return;
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    if (!path.startsWith("files/")) requests.push({ path, body: body.toString() });
    let status = 200;
    let reply: Reply;
    try {
      if (typeof fault === "object") throw new HttpError(fault.status, fault.error);
      reply = await answer(request, path, body);
    } catch (error) {
      status = error instanceof HttpError ? error.status : 500;
      const message = (error as Error).message;
      reply = { json: extensions ? { error: message } : { detail: message } };
    }
    if (fault === "drop answer") {
      request.socket.destroy();
      return;
    }
    response.writeHead(status, { "content-type": "application/json" });
    response.end("bytes" in reply ? reply.bytes : JSON.stringify(reply.json));
  };
  await listen(server, options.port ?? 0);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    counts,
    requests,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
      for (const { engine } of models.values()) await engine.dispose();
      for (const engine of samplers.values()) await engine.dispose();
    },
  };
}

type Reply = { readonly json: Json } | { readonly bytes: Buffer };

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
}
