/** Endpoints for tests, listening on a free port of this machine. */
import type { AddressInfo } from "node:net";
import type { Sampler } from "@pawl/core/rollout/scheduler.js";
import { createSession } from "../session.js";
import { hermes, scripted } from "../testing.js";
import type { EndpointOptions } from "./answering.js";
import { createEndpoint } from "./server.js";

/** An endpoint that listens. */
export interface TestEndpoint {
  readonly url: string;
  readonly port: number;
  /** Errors that were not the client's. */
  readonly faults: readonly unknown[];
  /** Sends JSON, or a text as it is; returns status and body. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<TestReply>;
  call(method: string, path: string, headers?: Record<string, string>): Promise<TestReply>;
  stop(): void;
  close(): Promise<void>;
}

/** A body is read as JSON, or as it is. */
// biome-ignore lint/suspicious/noExplicitAny: tests look at what they expect.
type TestReply = readonly [status: number, body: any];

/** Starts an endpoint over a sampler; a list of texts is what it says. */
export async function startEndpoint(
  says: Sampler | readonly string[],
  more: Partial<EndpointOptions> = {},
): Promise<TestEndpoint> {
  const sampler = "sample" in says ? says : scripted(hermes, says);
  const faults: unknown[] = [];
  const maxContext = 1024;
  const endpoint = createEndpoint({
    model: "policy",
    tokenizer: hermes,
    maxContext,
    createSession: (_, seed = 1) =>
      createSession({
        ...{ sampler, tokenizer: hermes, maxContext, seed },
        sampling: { maxTokens: 128, temperature: 0.3 },
      }),
    onFault: (error) => faults.push(error),
    ...more,
  });
  await new Promise<void>((resolve) => endpoint.server.listen(0, "127.0.0.1", resolve));
  const { port } = endpoint.server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const fetched = async (path: string, init: RequestInit): Promise<TestReply> => {
    const reply = await fetch(url + path, init);
    const text = await reply.text();
    return [reply.status, text.startsWith("{") ? JSON.parse(text) : text];
  };
  return {
    url,
    port,
    faults,
    post: (path, body, headers = {}) =>
      fetched(path, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: typeof body === "string" ? body : JSON.stringify(body),
      }),
    call: (method, path, headers = {}) => fetched(path, { method, headers }),
    stop: endpoint.stop,
    close: async () => {
      endpoint.stop();
      endpoint.server.closeAllConnections();
      await new Promise((resolve) => endpoint.server.close(resolve));
    },
  };
}
