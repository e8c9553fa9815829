/**
 * An episode of a tool environment as JSON-RPC methods: `initialize`, `ping`, `tools/list` and
 * `tools/call`, the few that an episode needs. A call is a step, and `_meta` of its result says
 * what it was worth (`result-meta.ts`).
 */
import { callText, isRecord, type Tool } from "../../text/tool.js";
import { packageVersion } from "../../version.js";
import type { StepResult } from "../env.js";
import type { CallResult } from "../tool-tasks/tool-tasks.js";

/** Revisions of the protocol in which these methods are the same. */
const REVISIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/** An episode with tools. */
export interface ToolEpisode {
  tools(): readonly Tool[];
  /** What is to be done, and what was seen first. */
  instructions(): string;
  /** Whether it has ended. */
  over(): boolean;
  step(action: string): StepResult | Promise<StepResult>;
}

/** An error with a code of JSON-RPC's. */
export class RpcError extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

/** The answer to a message that is JSON; undefined for a notification, which wants none. */
export async function answerRpc(
  message: unknown,
  answer: (method: string, params: Record<string, unknown>) => object | Promise<object>,
): Promise<object | undefined> {
  if (!isRecord(message) || typeof message.method !== "string")
    return rpcError(null, -32_600, "expected a JSON-RPC request");
  const { id, method, params } = message;
  if (id === undefined) return undefined;
  try {
    const result = await answer(method, isRecord(params) ? params : {});
    return { jsonrpc: "2.0", id, result };
  } catch (error) {
    const code = error instanceof RpcError ? error.code : -32_603;
    return rpcError(id, code, (error as Error).message);
  }
}

/** A JSON-RPC answer that is an error. */
export const rpcError = (id: unknown, code: number, message: string): object => ({
  ...{ jsonrpc: "2.0", id },
  error: { code, message },
});

/** Carries out a method of the episode's. */
export async function toolMethod(
  episode: ToolEpisode,
  method: string,
  params: Readonly<Record<string, unknown>>,
): Promise<object> {
  switch (method) {
    case "initialize":
      return {
        protocolVersion:
          REVISIONS.find((known) => known === params.protocolVersion) ?? REVISIONS[0],
        capabilities: { tools: {} },
        serverInfo: { name: "pawl", version: packageVersion() },
        instructions: episode.instructions(),
      };
    case "ping":
      return {};
    case "tools/list":
      return {
        tools: episode.tools().map(({ name, description, parameters }) => ({
          name,
          description,
          inputSchema: parameters,
        })),
      };
    case "tools/call":
      return call(episode, params);
    default:
      throw new RpcError(-32_601, `there is no method ${method}`);
  }
}

async function call(
  episode: ToolEpisode,
  params: Readonly<Record<string, unknown>>,
): Promise<object> {
  const { name, arguments: given = {} } = params;
  if (typeof name !== "string" || !isRecord(given))
    throw new RpcError(-32_602, "expected the name of a tool, and arguments by name");
  if (!episode.tools().some((tool) => tool.name === name))
    throw new RpcError(-32_602, `There is no tool ${name}.`);
  if (episode.over()) return textResult("The episode is over. Start another one.", true);
  const result = await episode.step(callText({ tool: name, arguments: given }));
  return { ...textResult(result.observation, !result.info.valid), _meta: metaOf(result) };
}

function textResult(text: string, isError: boolean): object {
  return { content: [{ type: "text", text }], ...(isError && { isError }) };
}

const KEY = "pawl/step";

/** For the server: the `_meta` of a step. */
function metaOf({ reward, done, info: { valid, success } }: StepResult): object {
  return { [KEY]: { reward, done, valid, success } };
}

/** For the client: what a server says about a step; undefined if it says nothing. */
export function judgedBy(meta: unknown): CallResult["judged"] {
  const step = isRecord(meta) ? meta[KEY] : undefined;
  if (!isRecord(step)) return undefined;
  const { reward, done, success } = step;
  if (typeof reward !== "number" || typeof done !== "boolean" || typeof success !== "boolean")
    return undefined;
  return { reward, done, success };
}
