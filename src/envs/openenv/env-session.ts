/** One session of `pawl serve env`: a message in, its answer out, in order. */
import { z } from "zod";
import { isRecord } from "../../text/tool.js";
import { EnvError } from "../env.js";
import { answerRpc, RpcError, toolMethod } from "../mcp/tool-methods.js";
import { clientMessage, errorMessage, messageTypes } from "./protocol.js";
import type { ObservationData, ServedEpisode } from "./served-episode.js";

/** What is sent back: a text, or nothing, because the client says that it is done. */
export type Answer = string | undefined;

/** Answers a message. What a client sends never throws. */
export function answerMessage(
  episode: ServedEpisode,
  text: string,
  onFault?: (error: unknown) => void,
): Answer | Promise<Answer> {
  const failed = (error: unknown): Answer => {
    if (!(error instanceof EnvError) && !(error instanceof z.ZodError)) onFault?.(error);
    return refusalOf(error);
  };
  try {
    const answer = answerOf(episode, text);
    return answer instanceof Promise ? answer.catch(failed) : answer;
  } catch (error) {
    return failed(error);
  }
}

function answerOf(episode: ServedEpisode, text: string): Answer | Promise<Answer> {
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch (error) {
    return errorMessage("INVALID_JSON", `Invalid JSON: ${(error as Error).message}`);
  }
  const type = isRecord(message) ? message.type : undefined;
  if (!messageTypes.includes(type as string))
    return errorMessage(
      "UNKNOWN_TYPE",
      `Unknown message type: ${JSON.stringify(type)?.slice(0, 100)}; expected ${messageTypes.join(", ")}`,
    );
  const asked = clientMessage.parse(message);
  switch (asked.type) {
    case "reset":
      return observed(episode.reset(asked.data));
    case "step":
      return observed(episode.step(asked.data, text));
    case "state":
      return JSON.stringify({ type: "state", data: episode.state() });
    case "mcp":
      return callMethod(episode, asked.data).then((data) => JSON.stringify({ type: "mcp", data }));
    case "close":
      return undefined;
  }
}

function observed(seen: ObservationData | Promise<ObservationData>): Answer | Promise<Answer> {
  const send = (data: ObservationData): string => JSON.stringify({ type: "observation", data });
  return seen instanceof Promise ? seen.then(send) : send(seen);
}

/** The answer to a JSON-RPC message: the session's tools. */
export async function callMethod(episode: ServedEpisode, message: unknown): Promise<object> {
  const answer = await answerRpc(message, async (method, params) => {
    if (!episode.hasTools)
      throw new RpcError(-32_603, "Environment does not support MCP: its actions are texts");
    const result = await toolMethod(
      { ...episode, step: (action) => episode.act(action) },
      method,
      params,
    );
    // The official client takes a call's result from here.
    const [first] = (result as { content?: { text: string }[] }).content ?? [];
    return first === undefined ? result : { ...result, data: first.text };
  });
  return answer ?? { jsonrpc: "2.0", id: null, result: {} };
}

function refusalOf(error: unknown): string {
  if (error instanceof z.ZodError)
    // Clients show the message alone.
    return errorMessage("VALIDATION_ERROR", `Invalid message: ${z.prettifyError(error)}`, {
      errors: errorsOf(error),
    });
  return errorMessage("EXECUTION_ERROR", error instanceof Error ? error.message : String(error));
}

/** What is wrong, as Pydantic lists it. */
export function errorsOf({ issues }: z.ZodError): readonly object[] {
  return issues.map(({ code, path, message }) => ({ type: code, loc: path, msg: message }));
}
