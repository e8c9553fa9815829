/**
 * A session as an address of its own, for agents whose client speaks OpenAI's chat completions: any
 * of them, in this process or another, is recorded like one that is given the model.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import type { RecordedSession } from "../session.js";
import { createEndpoint } from "./server.js";

/** What an OpenAI client is given. */
export interface SessionEndpoint {
  readonly baseURL: string;
  readonly apiKey: string;
  readonly model: string;
  close(): void;
}

/** Serves a session on a free port of this machine, until it is closed or the signal is aborted. */
export async function sessionEndpoint(
  session: RecordedSession,
  signal?: AbortSignal,
): Promise<SessionEndpoint> {
  const { tokenizer, maxContext } = session.options;
  const apiKey = randomBytes(24).toString("base64url");
  const model = "policy";
  const { server, stop } = createEndpoint({
    ...{ model, tokenizer, maxContext, key: apiKey },
    createSession: () => session,
  });
  const close = (): void => {
    stop();
    server.close();
    server.closeAllConnections();
  };
  signal?.throwIfAborted();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  signal?.addEventListener("abort", close, { once: true });
  const { port } = server.address() as AddressInfo;
  return { baseURL: `http://127.0.0.1:${port}/v1`, apiKey, model, close };
}
