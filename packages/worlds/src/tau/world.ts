/**
 * A running world of τ or τ²: the databases and tools of the agent and, in some domains, of the
 * user, with the originals' way of calling, refusing and keeping both sides in step.
 */
import type { Database } from "./database.js";
import { type Dict, isDict, isList, jsonText, PyError, str, type Value } from "./value.js";

// Tools, and how the originals call them: arguments are passed by name without a look at the
// schema, and what Python makes of them is the tool's answer.

/** What a tool does to the state; `hidden` ones are for initial states and assertions only. */
type Effect = "read" | "write" | "generic" | "hidden";

/** A tool of a world's state `S`. */
export interface ToolDefinition<S> {
  readonly effect: Effect;
  /** Names of its parameters in order; `name=JSON` has a default. */
  readonly parameters: readonly string[];
  run(state: S, ...values: Value[]): Answer;
}

/** What a tool returns: a value of Python's, or a plain dict, list or tuple of values. */
export type Answer = Value | PlainContainer;

/** A plain container: numbers and booleans that lie in it directly are written as texts. */
interface PlainContainer {
  readonly loose: Value;
}

/** Tools by name. */
export interface Toolkit<S> {
  /** What Python's messages call the function of a tool. */
  callee(name: string): string;
  readonly tools: ReadonlyMap<string, ToolDefinition<S>>;
}

/** A tool: its effect, its parameters separated by blanks, and what it does. */
export function tool<S>(
  effect: Effect,
  parameters: string,
  run: (state: S, ...values: Value[]) => Answer,
): ToolDefinition<S> {
  return { effect, parameters: parameters === "" ? [] : parameters.split(" "), run };
}

/** Puts the arguments in the order of the parameters, or raises as Python does. */
export function bind(name: string, parameters: readonly string[], given: Dict): readonly Value[] {
  const names = parameters.map((one) => one.split("=")[0]!);
  for (const key of given.keys()) {
    if (!names.includes(key))
      throw new PyError("TypeError", `${name}() got an unexpected keyword argument '${key}'`);
  }
  const missing = parameters.filter((one) => !one.includes("=") && !given.has(one));
  if (missing.length > 0) {
    const quoted = missing.map((one) => `'${one}'`);
    const last = quoted.pop()!;
    const list =
      quoted.length === 0
        ? last
        : quoted.length === 1
          ? `${quoted[0]} and ${last}`
          : `${quoted.join(", ")}, and ${last}`;
    const what = `${missing.length} required positional argument${missing.length === 1 ? "" : "s"}`;
    throw new PyError("TypeError", `${name}() missing ${what}: ${list}`);
  }
  return parameters.map((one, at) => {
    const value = given.get(names[at]!);
    return value === undefined ? defaultOf(one) : value;
  });
}

function defaultOf(parameter: string): Value {
  const text = parameter.slice(parameter.indexOf("=") + 1);
  return text === "null" ? null : BigInt(text);
}

/** The methods of a class as a toolkit. */
export function methodsOf<S>(
  className: string,
  tools: Readonly<Record<string, ToolDefinition<S>>> | ReadonlyMap<string, ToolDefinition<S>>,
): Toolkit<S> {
  const map = tools instanceof Map ? tools : new Map(Object.entries(tools));
  return { callee: (name) => `${className}.${name}`, tools: map };
}

/** Calls a tool by name. */
function callTool<S>(toolkit: Toolkit<S>, state: S, name: string, given: Dict): Answer {
  const found = toolkit.tools.get(name)!;
  const values = bind(toolkit.callee(name), found.parameters, given);
  return found.run(state, ...values);
}

/** The text of an answer: a text as it is, anything else as JSON. */
export function answerText(answer: Answer): string {
  if (typeof answer === "string") return answer;
  return jsonText(isLoose(answer) ? loosen(answer.loose) : scalarText(answer));
}

function isLoose(answer: Answer): answer is PlainContainer {
  return typeof answer === "object" && answer !== null && "loose" in answer;
}

/** Numbers and booleans that lie directly in a plain container become texts. */
function loosen(value: Value): Value {
  if (isList(value)) return value.map(scalarText);
  if (isDict(value)) return new Map([...value].map(([key, one]) => [key, scalarText(one)]));
  return scalarText(value);
}

const scalarText = (value: Value): Value =>
  typeof value === "bigint" || typeof value === "number" || typeof value === "boolean"
    ? str(value)
    : value;

/** Who calls a tool. */
export type Side = "assistant" | "user";

/** The rules of a domain. */
export interface Domain<A extends Database = Database, U extends Database = Database> {
  /** Such as `tau2-retail`. */
  readonly name: string;
  readonly edition: 1 | 2;
  readonly agent: Toolkit<A>;
  readonly user?: Toolkit<U>;
  /** Carries what changed on one side over to the other. */
  sync?(agent: A, user: U): void;
  /** The agent's database with a task's own data merged into it. */
  merge?(agent: A, data: Dict): A;
}

/** What a call gave. */
export interface CallResult {
  readonly content: string;
  readonly error: boolean;
  /** The class of Python's exception. */
  readonly errorType?: string;
}

/** State hashes of both sides; null where there is no user database. */
interface Hashes {
  readonly agent: string;
  readonly user: string | null;
}

/** A world in some state. */
export interface World {
  readonly domain: Domain;
  /** Calls a tool the way a conversation does: errors are texts. */
  call(side: Side, name: string, given: Dict): CallResult;
  /** Calls any function of a side, hidden ones too; errors are thrown. Syncs only if asked to. */
  run(side: Side, name: string, given: Dict, sync: boolean): Answer;
  /** Whether a tool changes the state; undefined if there is no such tool. */
  changes(side: Side, name: string): boolean | undefined;
  /** The tools that a side is offered. */
  names(side: Side): readonly string[];
  definition(side: Side, name: string): Pick<ToolDefinition<never>, "parameters">;
  sync(): void;
  /** Merges a task's own data into a side's database. */
  merge(side: Side, data: Dict): void;
  hashes(): Hashes;
  copy(): World;
}

/** A world with these databases. */
export function createWorld<A extends Database, U extends Database>(
  domain: Domain<A, U>,
  agentDb: A,
  userDb?: U,
): World {
  let agent = agentDb;
  let user = userDb;
  const sync = (): void => {
    if (user !== undefined) domain.sync?.(agent, user);
  };
  const kit = (side: Side): Toolkit<A> | Toolkit<U> | undefined =>
    side === "assistant" ? domain.agent : domain.user;
  const answer = (side: Side, name: string, given: Dict): Answer =>
    side === "assistant"
      ? callTool(domain.agent, agent, name, given)
      : callTool(domain.user!, user!, name, given);
  return {
    domain: domain as unknown as Domain,
    changes(side, name) {
      const found = kit(side)?.tools.get(name);
      return found === undefined || found.effect === "hidden"
        ? undefined
        : found.effect === "write";
    },
    names: (side) =>
      [...(kit(side)?.tools ?? [])].flatMap(([name, { effect }]) =>
        effect === "hidden" ? [] : [name],
      ),
    definition: (side, name) => kit(side)!.tools.get(name)!,
    call(side, name, given) {
      try {
        const found = kit(side)?.tools.get(name);
        if (domain.edition === 1 && found === undefined)
          return { content: `Unknown action ${name}`, error: false };
        if (kit(side) === undefined) throw new PyError("ValueError", "User tools not available");
        if (found === undefined || found.effect === "hidden")
          throw new PyError("ValueError", `Tool '${name}' not found.`);
        const content = answerText(answer(side, name, given));
        sync();
        return { content, error: false };
      } catch (error) {
        if (!(error instanceof PyError)) throw error;
        return { content: `Error: ${error.message}`, error: true, errorType: error.type };
      }
    },
    run(side, name, given, withSync) {
      if (kit(side)?.tools.get(name) === undefined)
        throw new PyError("ValueError", `there is no function ${name} on the side of the ${side}`);
      const result = answer(side, name, given);
      if (withSync) sync();
      return result;
    },
    sync,
    merge(side, data) {
      if (domain.merge === undefined || side === "user")
        throw new PyError("ValueError", `${domain.name} cannot merge data of the ${side}`);
      agent = domain.merge(agent, data);
      // As in the original: from here on both sides share one database.
      if (user !== undefined) user = agent as unknown as U;
    },
    hashes: () => ({ agent: agent.hash(), user: user?.hash() ?? null }),
    copy() {
      const copied = agent.copy() as A;
      const shared = (user as unknown) === agent;
      return createWorld(
        domain,
        copied,
        shared ? (copied as unknown as U) : (user?.copy() as U | undefined),
      );
    },
  };
}
