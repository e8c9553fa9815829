/**
 * A tool environment as an MCP server: one episode over one pair of streams, a JSON-RPC message a
 * line. The goal and the first observation are the server's instructions, a call is a step, and
 * `_meta` of its result says what it was worth (`result-meta.ts`).
 *
 * The few methods that an episode needs are written out here: `initialize`, `ping`, `tools/list`
 * and `tools/call`.
 */
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { callText, isRecord } from "../../text/tool.js";
import { packageVersion } from "../../version.js";
import type { Env, RemoteEnv } from "../env.js";
import { metaOf } from "./result-meta.js";

/** Revisions of the protocol in which these methods are the same. */
const REVISIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/** What is served, and through which streams. */
export interface ToolServer {
  /** A world with tools, in which an episode has begun. */
  readonly env: Env | RemoteEnv;
  /** What was seen first. */
  readonly observation: string;
  readonly input: Readable;
  readonly output: NodeJS.WritableStream;
  readonly signal?: AbortSignal;
}

/** Serves an episode until the input ends. */
export async function serveTools({
  env,
  observation,
  input,
  output,
  signal,
}: ToolServer): Promise<void> {
  let over = false;
  const say = (message: object): void => {
    output.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  };
  const call = async (params: Record<string, unknown>): Promise<object> => {
    const { name, arguments: given = {} } = params;
    if (typeof name !== "string" || !isRecord(given))
      throw new Refusal(-32_602, "expected the name of a tool, and arguments by name");
    if (!env.tools!().some((tool) => tool.name === name))
      throw new Refusal(-32_602, `There is no tool ${name}.`);
    if (over) return textResult("The episode is over. Start the server again for another.", true);
    const result = await env.step(callText({ tool: name, arguments: given }));
    over = result.done;
    return { ...textResult(result.observation, !result.info.valid), _meta: metaOf(result) };
  };
  const answer = async (method: string, params: Record<string, unknown>): Promise<object> => {
    switch (method) {
      case "initialize":
        return {
          protocolVersion:
            REVISIONS.find((known) => known === params.protocolVersion) ?? REVISIONS[0],
          capabilities: { tools: {} },
          serverInfo: { name: "pawl", version: packageVersion() },
          instructions: `${env.goal}\n\n${observation}`,
        };
      case "ping":
        return {};
      case "tools/list":
        return {
          tools: env.tools!().map(({ name, description, parameters }) => ({
            name,
            description,
            inputSchema: parameters,
          })),
        };
      case "tools/call":
        return call(params);
      default:
        throw new Refusal(-32_601, `there is no method ${method}`);
    }
  };
  const lines = createInterface({ input, ...(signal && { signal }) });
  for await (const line of lines) {
    if (line.trim() === "") continue;
    let message: unknown;
    try {
      message = JSON.parse(line);
    } catch (error) {
      say({ id: null, error: { code: -32_700, message: (error as Error).message } });
      continue;
    }
    if (!isRecord(message) || typeof message.method !== "string") {
      say({ id: null, error: { code: -32_600, message: "expected a JSON-RPC request" } });
      continue;
    }
    // Notifications have no id, and want no answer.
    const { id, method, params } = message;
    if (id === undefined) continue;
    try {
      say({ id, result: await answer(method, isRecord(params) ? params : {}) });
    } catch (error) {
      const code = error instanceof Refusal ? error.code : -32_603;
      say({ id, error: { code, message: (error as Error).message } });
    }
  }
}

class Refusal extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

function textResult(text: string, isError: boolean): object {
  return { content: [{ type: "text", text }], ...(isError && { isError }) };
}
