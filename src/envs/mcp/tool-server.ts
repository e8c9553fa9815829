/**
 * A tool environment as an MCP server: one episode over one pair of streams, a JSON-RPC message a
 * line. The goal and the first observation are the server's instructions.
 */
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import type { Env, RemoteEnv } from "../env.js";
import { answerRpc, rpcError, type ToolEpisode, toolMethod } from "./tool-methods.js";

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
  const episode: ToolEpisode = {
    tools: () => env.tools!(),
    instructions: () => `${env.goal}\n\n${observation}`,
    over: () => over,
    async step(action) {
      const result = await env.step(action);
      over = result.done;
      return result;
    },
  };
  const say = (message: object): void => {
    output.write(`${JSON.stringify(message)}\n`);
  };
  const lines = createInterface({ input, signal });
  for await (const line of lines) {
    if (line.trim() === "") continue;
    let message: unknown;
    try {
      message = JSON.parse(line);
    } catch (error) {
      say(rpcError(null, -32_700, (error as Error).message));
      continue;
    }
    const answer = await answerRpc(message, (method, params) =>
      toolMethod(episode, method, params),
    );
    if (answer !== undefined) say(answer);
  }
}
