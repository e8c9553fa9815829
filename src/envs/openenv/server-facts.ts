/** What an OpenEnv server says about itself: schemas, description, task lists. */
import { z } from "zod";
import { urlPart } from "../../plain-text.js";
import { isRecord } from "../../text/tool.js";
import { EnvError } from "../env.js";
import type { Dialogue, HttpAnswer, HttpQuestion } from "./http-dialogue.js";
import { FACTS_KEY, OBSERVATION_TITLE, type ServedFacts, servedFacts } from "./protocol.js";

/** One entry of a task list. */
interface ListedTask {
  readonly id?: string;
  readonly type?: string;
}

/** A server's task list. */
interface ListedSplit {
  readonly name: string;
  readonly tasks: readonly ListedTask[];
}

/** What is known about a server before the first episode. */
export interface ServerFacts {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of an action. */
  readonly action: Readonly<Record<string, unknown>>;
  /** Whether actions are calls of tools. */
  readonly hasTools: boolean;
  /** If it is one of Pawl's own. */
  readonly served?: ServedFacts;
  /** Undefined if it has no task lists. */
  readonly splits?: readonly ListedSplit[];
}

/** Titles of action schemas that mean: list the tools, and call them. */
const TOOL_TITLES = ["Action", "CallToolAction", "ListToolsAction"];
const MAX_TASKS = 1_000_000;

/** Asks for everything. */
export function* describeServer(): Dialogue<ServerFacts> {
  const schema = yield* asked({ method: "GET", path: "/schema" });
  if (!isRecord(schema) || !isRecord(schema.action))
    throw new EnvError(
      `GET /schema: expected {"action": a JSON Schema, …}, got ${JSON.stringify(schema)?.slice(0, 200)}. Is this an OpenEnv server?`,
    );
  const { action, observation } = schema;
  const served = servedBy(observation);
  const metadata = yield* optional({ method: "GET", path: "/metadata" });
  const names = yield* optional({ method: "GET", path: "/list_environments" });
  const [listed] = Array.isArray(names) ? (names as unknown[]) : [];
  const textIn = (key: string): string | undefined =>
    isRecord(metadata) && typeof metadata[key] === "string" ? metadata[key] : undefined;
  const splits = typeof listed === "string" ? yield* listSplits(listed) : undefined;
  return {
    name: typeof listed === "string" ? listed : (textIn("name") ?? "openenv"),
    description: textIn("description") ?? "",
    action,
    hasTools: TOOL_TITLES.includes(String(action.title)),
    served,
    ...(splits && splits.length > 0 && { splits }),
  };
}

function servedBy(observation: unknown): ServedFacts | undefined {
  if (!isRecord(observation) || observation.title !== OBSERVATION_TITLE) return undefined;
  const parsed = servedFacts.safeParse(observation[FACTS_KEY]);
  if (!parsed.success)
    throw new EnvError(
      `GET /schema: observation.${FACTS_KEY} does not fit: ${z.prettifyError(parsed.error)}. Is the server another version of Pawl?`,
    );
  return parsed.data;
}

/** The server's splits with their tasks; undefined if it has none. */
function* listSplits(name: string): Dialogue<readonly ListedSplit[] | undefined> {
  const at = `/${urlPart(name)}`;
  const splits = yield* optional({ method: "GET", path: `${at}/splits` });
  if (!Array.isArray(splits)) return undefined;
  const found: ListedSplit[] = [];
  for (const split of splits as unknown[]) {
    const of = isRecord(split) ? split.name : split;
    if (typeof of !== "string") continue;
    const body = { split: of };
    const counted = yield* asked({ method: "POST", path: `${at}/num_tasks`, body });
    const count = isRecord(counted) ? counted.num_tasks : undefined;
    if (!Number.isInteger(count) || (count as number) < 0 || (count as number) > MAX_TASKS)
      throw new EnvError(
        `POST ${at}/num_tasks of ${of}: expected {"num_tasks": 0 to ${MAX_TASKS}}, got ${JSON.stringify(counted)}`,
      );
    // A list may be a preview of a long one; then the tasks have numbers only.
    const listed = yield* optional({ method: "POST", path: `${at}/tasks`, body });
    const tasks = isRecord(listed) && Array.isArray(listed.tasks) ? listed.tasks : [];
    found.push({
      name: of,
      tasks: Array.from({ length: count as number }, (_, index) => listedTask(tasks[index])),
    });
  }
  return found;
}

function listedTask(task: unknown): ListedTask {
  if (!isRecord(task)) return {};
  const { id, type } = task;
  return { ...(typeof id === "string" && { id }), ...(typeof type === "string" && { type }) };
}

/** The JSON of an answer; any status but 200 is an error. */
function* asked(question: HttpQuestion): Dialogue<unknown> {
  const got: HttpAnswer = yield question;
  const what = `${question.method} ${question.path}`;
  if (got.status === 401 || got.status === 403)
    throw new EnvError(`${what}: status ${got.status}: the server wants another key or address`);
  if (got.status !== 200)
    throw new EnvError(`${what}: status ${got.status}: ${got.text.slice(0, 200)}`);
  try {
    return JSON.parse(got.text) as unknown;
  } catch {
    throw new EnvError(`${what}: expected JSON, got ${JSON.stringify(got.text.slice(0, 200))}`);
  }
}

/** The same of a call that servers need not have. */
function* optional(question: HttpQuestion): Dialogue<unknown> {
  const got: HttpAnswer = yield question;
  if (got.status !== 200) return undefined;
  try {
    return JSON.parse(got.text) as unknown;
  } catch {
    return undefined;
  }
}
