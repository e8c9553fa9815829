/** The MCP servers of one episode: started, listed, called and ended. */

import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import type { Client, Transport } from "@modelcontextprotocol/client";
import { EnvError } from "@pawl/core/envs/env.js";
import { isRecord, type Tool, type ToolCall } from "@pawl/core/text/tool.js";
import { withoutGivenSecrets } from "@pawl/core/trust/secrets.js";
import { packageVersion } from "@pawl/core/version.js";
import type { TaskRecord } from "../tasks/task-record.js";
import type { CallResult, ToolHost } from "../tool-tasks/tool-tasks.js";
import { fill } from "./placeholders.js";
import { type ServerProcess, serverProcess } from "./server-process.js";
import { judgedBy } from "./tool-methods.js";

/** Where a server is, or how it is started. */
export interface McpServer {
  readonly command?: string | undefined;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly prefix: string;
  readonly tools?: readonly string[] | undefined;
}

/** A server that is connected. */
interface Connected {
  readonly name: string;
  readonly client: Client;
  readonly tools: readonly Tool[];
  /** What the server wrote to its standard error. */
  complaint(): string;
  close(): Promise<void>;
}

/** Connects all servers for an episode; if one cannot be, the others are ended. */
export async function connectServers(
  servers: Readonly<Record<string, McpServer>>,
  task: TaskRecord,
  signal?: AbortSignal,
): Promise<ToolHost> {
  const scratch = makeScratch(task);
  const connected: Connected[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(connected.map((server) => server.close()));
    scratch.remove();
  };
  try {
    const starting = Object.entries(servers).map(async ([name, server]) => {
      const values = { ...task, scratch: scratch.folder, task: task.id };
      connected.push(await connect(name, server, values, signal));
    });
    const failed = (await Promise.allSettled(starting)).find(({ status }) => status === "rejected");
    if (failed !== undefined) throw (failed as PromiseRejectedResult).reason;
    const byName = toolsByName(
      connected.sort((a, b) => (a.name < b.name ? -1 : 1)),
      servers,
    );
    return {
      tools: [...byName.values()].map(({ tool }) => tool),
      instructions: instructionsOf(connected, scratch),
      call: (call, stop) => callTool(byName, scratch, call, stop),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** What the servers say about themselves. */
function instructionsOf(connected: readonly Connected[], scratch: Scratch): string | undefined {
  const said = connected.flatMap(({ client }) => client.getInstructions() ?? []);
  return said.length === 0 ? undefined : scratch.hide(said.join("\n\n"));
}

async function connect(
  name: string,
  server: McpServer,
  values: Readonly<Record<string, unknown>>,
  signal?: AbortSignal,
): Promise<Connected> {
  const mcp = await import("@modelcontextprotocol/client");
  const filled = (text: string, of: string): string => fill(text, values, `servers.${name}.${of}`);
  const all = (record: Readonly<Record<string, string>>, of: string): Record<string, string> =>
    Object.fromEntries(
      Object.entries(record).map(([key, value]) => [key, filled(value, `${of}.${key}`)]),
    );
  let child: ServerProcess | undefined;
  let transport: Transport;
  let leave = async (): Promise<void> => undefined;
  if (server.command !== undefined) {
    child = serverProcess({
      command: server.command,
      args: server.args.map((arg) => filled(arg, "args")),
      env: all(server.env, "env"),
      cwd: server.cwd === undefined ? undefined : filled(server.cwd, "cwd"),
    });
    transport = child;
  } else {
    const http = new mcp.StreamableHTTPClientTransport(new URL(filled(server.url!, "url")), {
      requestInit: { headers: all(server.headers, "headers") },
    });
    leave = () => http.terminateSession();
    transport = http;
  }
  const complaint = (): string => child?.complaint() ?? "";
  const client = new mcp.Client({ name: "pawl", version: packageVersion() });
  const close = async (): Promise<void> => {
    await leave().catch(() => undefined);
    await client.close().catch(() => undefined);
    // The client forgets a transport that never connected.
    await child?.close();
  };
  try {
    await client.connect(transport, { signal });
    const { tools } = await client.listTools(undefined, { signal });
    return { name, client, tools: tools.map(asTool), complaint, close };
  } catch (error) {
    await close();
    throw lost(name, "could not be started", error, complaint());
  }
}

interface McpTool {
  readonly name: string;
  readonly description?: string | undefined;
  readonly inputSchema: Readonly<Record<string, unknown>>;
}

const asTool = ({ name, description = "", inputSchema }: McpTool): Tool => ({
  name,
  description: withoutGivenSecrets(description),
  parameters: inputSchema,
});

type ByName = ReadonlyMap<
  string,
  { readonly tool: Tool; readonly own: string; readonly at: Connected }
>;

/** The tools by the names that the agent knows; a name that two servers have is refused. */
function toolsByName(
  connected: readonly Connected[],
  servers: Readonly<Record<string, McpServer>>,
): ByName {
  const byName = new Map<string, { tool: Tool; own: string; at: Connected }>();
  for (const at of connected) {
    const { prefix, tools: wanted } = servers[at.name]!;
    const missing = wanted?.find((name) => !at.tools.some((tool) => tool.name === name));
    if (missing !== undefined)
      throw new EnvError(
        `servers.${at.name}.tools: the server has no tool "${missing}"; it has ${at.tools.map(({ name }) => name).join(", ")}`,
      );
    for (const tool of at.tools) {
      if (wanted !== undefined && !wanted.includes(tool.name)) continue;
      const name = `${prefix}${tool.name}`;
      const other = byName.get(name);
      if (other !== undefined)
        throw new EnvError(
          `the servers ${other.at.name} and ${at.name} both have a tool "${name}": set servers.${at.name}.prefix, or choose with servers.${at.name}.tools`,
        );
      byName.set(name, { tool: { ...tool, name }, own: tool.name, at });
    }
  }
  return byName;
}

async function callTool(
  byName: ByName,
  scratch: Scratch,
  call: ToolCall,
  signal?: AbortSignal,
): Promise<CallResult> {
  const known = byName.get(call.tool);
  if (known === undefined) return { text: `There is no tool ${call.tool}.`, failed: true };
  const { at, own } = known;
  let result: {
    content?: unknown;
    structuredContent?: unknown;
    isError?: unknown;
    _meta?: unknown;
  };
  try {
    result = await at.client.callTool(
      { name: own, arguments: scratch.reveal(call.arguments) },
      // The environment's limits on time hold; they abort the signal.
      { timeout: 2 ** 31 - 1, signal },
    );
  } catch (error) {
    // -32602: the server does not know the tool, or the arguments; the agent's mistake.
    if ((error as { code?: unknown }).code === -32_602)
      return { text: scratch.hide((error as Error).message), failed: true };
    throw lost(at.name, `was lost in a call of ${own}`, error, at.complaint());
  }
  const judged = judgedBy(result._meta);
  return {
    text: scratch.hide(textOf(result)),
    ...(result.isError === true && { failed: true }),
    judged,
  };
}

/** The parts of a result as text; of a part that is no text, what it is. */
function textOf({
  content,
  structuredContent,
}: {
  content?: unknown;
  structuredContent?: unknown;
}): string {
  const parts = Array.isArray(content) ? content.filter(isRecord) : [];
  if (parts.length === 0) return JSON.stringify(structuredContent ?? "") ?? "";
  return parts
    .map((part) => {
      if (typeof part.text === "string") return part.text;
      if (isRecord(part.resource) && typeof part.resource.text === "string")
        return part.resource.text;
      return `[${String(part.type)}${typeof part.mimeType === "string" ? `, ${part.mimeType}` : ""}]`;
    })
    .join("\n");
}

function lost(name: string, what: string, error: unknown, complaint: string): EnvError {
  const said = complaint === "" ? "" : `; it wrote: ${complaint.slice(-500)}`;
  return new EnvError(`the MCP server ${name} ${what}: ${(error as Error).message}${said}`, {
    cause: error,
  });
}

/** What agents call the folder. */
const SHOWN = "/scratch";

/** An episode's folder. */
export interface Scratch {
  readonly folder: string;
  /** What servers say, for the agent; without the keys that they were given. */
  hide(text: string): string;
  /** What the agent says, for servers. */
  reveal<T>(value: T): T;
  remove(): void;
}

/** Makes the folder, with the task's `files` in it: contents by path. */
export function makeScratch(task: TaskRecord): Scratch {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "pawl-scratch-")));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    writeFiles(folder, task);
  } catch (error) {
    remove();
    throw error;
  }
  const reveal = (value: unknown): unknown => {
    if (typeof value === "string") return value.replace(/^\/scratch(?=\/|$)/, folder);
    if (Array.isArray(value)) return value.map(reveal);
    if (!isRecord(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, reveal(one)]));
  };
  return {
    folder,
    hide: (text) => withoutGivenSecrets(text).replaceAll(folder, SHOWN),
    reveal: (value) => reveal(value) as typeof value,
    remove,
  };
}

function writeFiles(folder: string, { id, files = {} }: TaskRecord): void {
  if (!isRecord(files)) throw new EnvError(`task ${id}: "files": expected contents by path`);
  for (const [name, content] of Object.entries(files)) {
    const path = resolve(folder, name);
    if (typeof content !== "string" || relative(folder, path).startsWith(".."))
      throw new EnvError(
        `task ${id}: "files": ${JSON.stringify(name)}: expected a path inside the episode's folder, and text`,
      );
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
  }
}
