/**
 * A running episode at an OpenEnv server. A reset connects, again if need be; a step never does: a
 * session that is lost takes its episode with it, and that episode is broken, never a failure of the
 * policy.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { argumentsText, isRecord, type Tool, type ToolCall } from "../../text/tool.js";
import { EnvError, type RemoteEnv, type StepResult, type Task } from "../env.js";
import type { RemoteToolEnv } from "../tool-env.js";
import { actionRule, type CheckedAnswer, checkAnswer, observationText } from "./action-rule.js";
import type { ServerFacts } from "./server-facts.js";
import {
  type Answer,
  LostSession,
  openSession,
  ServerRefusal,
  type SessionSocket,
  type SocketOptions,
} from "./session-socket.js";

/** What the episodes of one opened environment share. */
export interface OpenEnvWorld {
  readonly facts: ServerFacts;
  readonly socket: SocketOptions;
  /** How long a reset may try to connect. */
  readonly retryMs: number;
  /** The goal, where the server names none. */
  readonly goal: string;
  /** Whether it holds even where the server names one. */
  readonly goalIsGiven: boolean;
  /** The return at which an episode is a success, where the server does not say. */
  readonly maxReturn: number;
  /** The data of a reset; an unknown task is an `EnvError`. */
  resetData(task: Task, seed: number): Readonly<Record<string, unknown>>;
}

interface Playing {
  readonly task: Task;
  readonly goalIsGiven: boolean;
  goal: string;
  tools: readonly Tool[];
  admissible: readonly string[];
  context: string | undefined;
  maxReturn: number | undefined;
  total: number;
  over: boolean;
}

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 3000;
/** Errors of a call that are the agent's own. */
const AGENTS_ERRORS = ["execution_error", "invalid_args", "tool_not_found"];

/** A world behind the server: of text, or of tool calls. */
export function createOpenEnv(world: OpenEnvWorld): RemoteEnv | RemoteToolEnv {
  const { facts, goal, goalIsGiven } = world;
  const { served, hasTools } = facts;
  let session: SessionSocket | undefined;
  let playing: Playing | undefined;
  const started = (): Playing => {
    if (playing === undefined) throw new EnvError("call reset(task) first");
    return playing;
  };
  const toAction = actionRule(facts.action);

  /** Begins an episode in a session that works. */
  const begin = async (data: object, signal?: AbortSignal): Promise<CheckedAnswer> => {
    const until = performance.now() + world.retryMs;
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      try {
        if (session?.open !== true) session = await openSession(world.socket, signal);
        const { type, data: seen } = await session.ask(message("reset", data), signal);
        return checkAnswer(type, seen);
      } catch (error) {
        signal?.throwIfAborted();
        if (!canComeBack(error)) throw error;
        await session?.close();
        session = undefined;
        if (performance.now() + pause > until) throw explained(error);
      }
      await sleep(pause, undefined, signal && { signal });
    }
  };
  const reset = async (task: Task, seed = 0, signal?: AbortSignal): Promise<string> => {
    const data = world.resetData(task, seed);
    playing = undefined;
    const { observation, done } = await begin(data, signal);
    if (done) throw new EnvError("the episode was over when it began");
    const fresh: Playing = {
      ...{ task, goal, goalIsGiven, tools: [], admissible: [], context: undefined },
      ...{ maxReturn: undefined, total: 0, over: false },
    };
    if (hasTools) fresh.tools = await listTools(session!, signal);
    if (served !== undefined) {
      take(fresh, observation);
      if (served.context || served.maxReturns) {
        const { data: state } = await session!.ask(message("state"), signal);
        if (typeof state.initial_context === "string") fresh.context = state.initial_context;
        if (typeof state.max_return === "number") fresh.maxReturn = state.max_return;
      }
    }
    playing = fresh;
    return textOf(observation, served !== undefined);
  };
  /** Sends an action; the session is lost unless the server answers in order. */
  const send = async (action: string, signal?: AbortSignal): Promise<StepResult> => {
    const now = started();
    if (now.over) throw new EnvError("the episode is over; call reset(task)");
    let answer: Answer;
    try {
      answer = await session!.ask(action, signal);
    } catch (error) {
      if (error instanceof ServerRefusal && (await isAgents(error, session!, served, signal)))
        return refused(error);
      await session?.close();
      throw error;
    }
    const { observation, reward, done } = checkAnswer(answer.type, answer.data);
    now.total += reward;
    now.over = done;
    if (served !== undefined) {
      const info = take(now, observation);
      return { observation: textOf(observation, true), reward, done, info };
    }
    const problem = hasTools ? toolProblem(observation) : undefined;
    return {
      observation: problem ?? (hasTools ? resultText(observation) : observationText(observation)),
      reward,
      done,
      info: { valid: problem === undefined, success: done && now.total >= world.maxReturn },
    };
  };
  const shared = {
    get goal() {
      return started().goal;
    },
    get taskType() {
      return started().task.type;
    },
    reset,
    ...(served?.context && { initialContext: () => started().context }),
    ...(served?.maxReturns && { maxReturn: () => started().maxReturn }),
    async close() {
      playing = undefined;
      await session?.close();
      session = undefined;
    },
  };
  if (hasTools)
    return Object.assign(shared, {
      tools: () => playing?.tools ?? [],
      // Our own server checks calls itself, and its words for wrong ones are the environment's.
      checksCalls: served !== undefined,
      step: (call: ToolCall, signal?: AbortSignal) =>
        send(
          `{"type":"step","data":{"type":"call_tool","tool_name":${JSON.stringify(call.tool)},"arguments":${argumentsText(call)}}}`,
          signal,
        ),
      ...(served?.admissible && {
        admissibleActions: () => started().admissible.map((text) => JSON.parse(text) as ToolCall),
      }),
    });
  return Object.assign(shared, {
    async step(text: string, signal?: AbortSignal): Promise<StepResult> {
      const action = served === undefined ? toAction(text) : { action: text };
      if (typeof action !== "string") return send(message("step", action), signal);
      started();
      return { ...invalid, observation: action };
    },
    ...(served?.admissible && { admissibleActions: () => started().admissible }),
  });
}

const invalid = { reward: 0, done: false, info: { valid: false, success: false } };

const message = (type: string, data?: object): string => JSON.stringify({ type, data });

/** Whether it is worth connecting again. */
function canComeBack(error: unknown): boolean {
  return (
    error instanceof LostSession ||
    (error instanceof ServerRefusal && error.code === "CAPACITY_REACHED")
  );
}

function explained(error: unknown): unknown {
  if (!(error instanceof ServerRefusal)) return error;
  const most = error.details.max_sessions;
  return new EnvError(
    `the server has no free session${most === undefined ? "" : ` (it has ${most})`}: set --env.parallel to at most what it allows, or end its other clients`,
  );
}

/**
 * Whether an error is the agent's: an action that does not fit, or one that the environment throws
 * at, as long as its session still answers. A world of ours throws only if it is broken.
 */
async function isAgents(
  { code }: ServerRefusal,
  session: SessionSocket,
  served: ServerFacts["served"],
  signal?: AbortSignal,
): Promise<boolean> {
  if (code === "VALIDATION_ERROR") return true;
  if (code !== "EXECUTION_ERROR" || served !== undefined) return false;
  try {
    return (await session.ask(message("state"), signal)).type === "state";
  } catch {
    return false;
  }
}

const refused = (error: ServerRefusal): StepResult => {
  const { errors } = error.details;
  const more = Array.isArray(errors) ? ` ${JSON.stringify(errors).slice(0, 1000)}` : "";
  return { ...invalid, observation: `${error.message}${more}` };
};

/** Takes over what a server of ours says about the episode. */
function take(now: Playing, observation: Readonly<Record<string, unknown>>): StepResult["info"] {
  const { goal, admissible_actions: admissible, valid, success, score } = observation;
  if (typeof goal === "string" && !now.goalIsGiven) now.goal = goal;
  if (Array.isArray(admissible)) now.admissible = admissible as string[];
  return {
    valid: valid === true,
    success: success === true,
    score: typeof score === "number" ? score : undefined,
  };
}

function textOf(observation: Readonly<Record<string, unknown>>, ours: boolean): string {
  if (!ours) return observationText(observation);
  if (typeof observation.text !== "string")
    throw new EnvError("the observation has no text, although its schema says so");
  return observation.text;
}

async function listTools(session: SessionSocket, signal?: AbortSignal): Promise<readonly Tool[]> {
  const asked = message("step", { type: "list_tools" });
  const { type, data } = await session.ask(asked, signal);
  const { tools } = checkAnswer(type, data).observation;
  if (!Array.isArray(tools) || tools.length === 0)
    throw new EnvError("list_tools: expected observation.tools, a list of one tool or more");
  return tools.map((tool: unknown) => {
    if (!isRecord(tool) || typeof tool.name !== "string" || !isRecord(tool.input_schema))
      throw new EnvError(
        `list_tools: expected {name, description, input_schema}, got ${JSON.stringify(tool)?.slice(0, 200)}`,
      );
    const { name, description, input_schema: parameters } = tool;
    return { name, description: typeof description === "string" ? description : "", parameters };
  });
}

/** What a call was answered with, as text. */
function resultText({ result }: Readonly<Record<string, unknown>>): string {
  if (typeof result === "string") return result;
  if (isRecord(result)) {
    if (typeof result.data === "string") return result.data;
    const parts = Array.isArray(result.content) ? result.content.filter(isRecord) : [];
    const texts = parts.flatMap(({ text }) => (typeof text === "string" ? text : []));
    if (texts.length > 0) return texts.join("\n");
    if (result.data !== undefined) return JSON.stringify(result.data);
  }
  return JSON.stringify(result ?? null);
}

/** What is wrong with a call; an error that is not the agent's breaks the episode. */
function toolProblem({ error }: Readonly<Record<string, unknown>>): string | undefined {
  if (error === null || error === undefined) return undefined;
  const { error_type: type, message: said } = isRecord(error) ? error : {};
  const text = typeof said === "string" ? said : JSON.stringify(error);
  if (AGENTS_ERRORS.includes(String(type))) return text;
  throw new EnvError(`the call failed: ${String(type)}: ${text}`);
}
