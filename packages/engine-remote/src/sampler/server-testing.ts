/**
 * For tests: a stand-in with the wire formats of vLLM and SGLang, backed by an embedded engine.
 *
 * It answers the few calls that a sampler gets, in the form of vLLM 0.32 and SGLang 0.5, and can be
 * made to misbehave. Its samples and log-probabilities are real; it does not test how those servers
 * compute.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Sample, SampleRequest } from "@pawl/core/engine/engine.js";
import type { EmbeddedOptions } from "@pawl/engine-cpu/core.js";
import { inProcess } from "../remote/model-testing.js";

type Json = Readonly<Record<string, unknown>>;

/** Which server it imitates, and what is wrong with it. */
export interface StandInOptions {
  readonly kind: "vllm" | "sglang";
  readonly model: EmbeddedOptions;
  readonly models?: readonly string[];
  readonly key?: string;
  /** Without development mode vLLM has no calls for weights. */
  readonly development?: boolean;
  /**
   * Returns log-probabilities of the distribution that was sampled from, as SGLang does by default.
   */
  readonly tempered?: boolean;
  /** Changes an answer on its way out; an error it throws becomes the text of a 500. */
  readonly change?: (path: string, answer: Json) => unknown;
}

/** A running stand-in. */
export interface StandIn {
  readonly url: string;
  /** Calls so far, with their bodies. */
  readonly calls: readonly { readonly path: string; readonly body: Json }[];
  /** While true, it claims to have loaded new weights but keeps the old ones. */
  stale: boolean;
  close(): Promise<void>;
}

class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Starts one on a free port. */
export async function startStandIn(options: StandInOptions): Promise<StandIn> {
  const engine = await inProcess(options.model);
  const calls: { readonly path: string; readonly body: Json }[] = [];
  const { kind, development = true, tempered = false, models = ["policy"] } = options;
  const standIn = { stale: false };

  const draw = async (request: Omit<SampleRequest, "stop">, stopTokens: unknown) => {
    const stop = (stopTokens as readonly number[]).map((id) => [id]);
    const [samples] = await engine.sample([{ ...request, stop }]);
    const sample: Sample = samples![0]!;
    // SGLang returns the model's own for greedy decoding.
    const own = !tempered || (kind === "sglang" && (request.topK === 1 || !request.temperature));
    return { ...sample, logprobs: own ? sample.logprobs : sample.sampledLogprobs! };
  };
  const { parameters } = engine.capabilities;
  const load = async (folder: unknown): Promise<void> => {
    if (!standIn.stale) await engine.load(String(folder));
    // Those servers load weights into existing tensors.
    if (engine.capabilities.parameters !== parameters) throw new Error("size mismatch");
  };
  const number = (value: unknown): number => Number(value);

  const shared: Readonly<Record<string, (body: Json) => Promise<Json>>> = {
    "GET /v1/models": async () => {
      const { maxContext } = engine.capabilities;
      return { data: models.map((id) => ({ id, max_model_len: maxContext })) };
    },
  };
  const vllm: typeof shared = {
    "GET /version": async () => ({ version: "0.32.0" }),
    "POST /v1/completions": async (body) => {
      const { tokens, logprobs, stopReason } = await draw(
        {
          prompt: body.prompt as readonly number[],
          maxTokens: number(body.max_tokens),
          temperature: number(body.temperature),
          topK: number(body.top_k),
          topP: number(body.top_p),
          seed: number(body.seed),
        },
        body.stop_token_ids,
      );
      const choice = { index: 0, token_ids: tokens, logprobs: { token_logprobs: logprobs } };
      return { choices: [{ ...choice, finish_reason: stopReason }] };
    },
    ...(development && {
      "POST /collective_rpc": async ({ method, kwargs }) => {
        if (method === undefined) throw new Refusal(400, "Missing 'method' in request body");
        if (method !== "reload_weights") throw new Refusal(500, `no method ${String(method)}`);
        await load((kwargs as Json).weights_path);
        return { results: [null] };
      },
      "POST /reset_prefix_cache": async () => ({ success: true }),
    }),
  };
  const sglang: typeof shared = {
    "GET /model_info": async () => ({ model_path: "policy", is_generation: true }),
    "POST /generate": async (body) => {
      const params = body.sampling_params as Json;
      const { tokens, logprobs, stopReason } = await draw(
        {
          prompt: body.input_ids as readonly number[],
          maxTokens: number(params.max_new_tokens),
          temperature: number(params.temperature),
          topK: Math.max(0, number(params.top_k)),
          topP: number(params.top_p),
          seed: number(params.sampling_seed),
        },
        params.stop_token_ids,
      );
      return {
        output_ids: tokens,
        meta_info: {
          finish_reason: { type: stopReason },
          output_token_logprobs: tokens.map((id, i) => [logprobs[i]!, id, null]),
        },
      };
    },
    "POST /update_weights_from_disk": async (body) => {
      try {
        await load(body.model_path);
      } catch (error) {
        throw new Refusal(400, (error as Error).message);
      }
      return { success: true, message: "Succeeded to update model weights." };
    },
  };
  const routes = { ...shared, ...(kind === "vllm" ? vllm : sglang) };

  const answer = async (request: IncomingMessage): Promise<unknown> => {
    const path = request.url!;
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const body = text === "" ? {} : (JSON.parse(text) as Json);
    calls.push({ path, body });
    if (options.key !== undefined && request.headers.authorization !== `Bearer ${options.key}`)
      throw new Refusal(401, `Unauthorized: ${request.headers.authorization ?? "no key"}`);
    const route = routes[`${request.method} ${path}`];
    if (route === undefined) throw new Refusal(404, "Not Found");
    const plain = await route(body);
    return options.change === undefined ? plain : options.change(path, plain);
  };
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    let status = 200;
    let reply: unknown;
    try {
      reply = await answer(request);
    } catch (error) {
      status = error instanceof Refusal ? error.status : 500;
      reply = { error: { message: (error as Error).message, code: status } };
    }
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(reply));
  };
  const server = createServer((request, response) => void handle(request, response));
  await listen(server);
  return Object.assign(standIn, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
      await engine.dispose();
    },
  });
}

function listen(server: Server): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
}
