/**
 * Environments whose actions are tool calls. To everything else they are text environments: an
 * action is the call as one line of JSON, `{"tool": …, "arguments": …}`. The world itself is given
 * the call, after its arguments were checked against the tool's schema; a call that does not fit is
 * an invalid action, and the observation says what is wrong.
 */

import { z } from "zod";
import { withinTime } from "../processes/time-limit.js";
import { didYouMean } from "../text/nearest.js";
import { callText, isRecord, readCall, type Tool, type ToolCall } from "../text/tool.js";
import {
  type Env,
  EnvError,
  type Environment,
  type Expert,
  type RemoteEnv,
  type StepResult,
} from "./env.js";

// JSON Schemas of tools' arguments. zod checks values; what zod would pass over in silence, a
// keyword it does not know or a `properties` that is no object, is refused here by name.

/** What each keyword should hold. */
const keywords: Readonly<
  Record<string, "schema" | "schemas" | "list of schemas" | "names" | "any">
> = {
  ...Object.fromEntries(
    // Annotations and plain values, which zod checks itself.
    [
      ..."$schema $id $ref $comment title description default examples deprecated readOnly writeOnly".split(
        " ",
      ),
      ..."type enum const format pattern minLength maxLength minimum maximum".split(" "),
      ..."exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems uniqueItems".split(" "),
      ..."minProperties maxProperties nullable contentEncoding contentMediaType".split(" "),
    ].map((name) => [name, "any" as const]),
  ),
  properties: "schemas",
  patternProperties: "schemas",
  $defs: "schemas",
  definitions: "schemas",
  additionalProperties: "schema",
  propertyNames: "schema",
  items: "schema",
  additionalItems: "schema",
  not: "schema",
  prefixItems: "list of schemas",
  anyOf: "list of schemas",
  oneOf: "list of schemas",
  allOf: "list of schemas",
  required: "names",
};

/** Checks values against a schema: undefined, or what is wrong. */
type SchemaCheck = (value: unknown) => string | undefined;

/** Seconds that the expressions of a schema may take for one value. */
const PATTERN_SECONDS = 3;

/**
 * A schema for zod. Its regular expressions (`pattern`, `patternProperties`) may come from a server,
 * and meet what a model wrote, so a schema that has some checks within a time limit.
 */
function zodSchema(schema: Readonly<Record<string, unknown>>): z.ZodType {
  const checked = z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]);
  if (!/"pattern(Properties)?":/.test(JSON.stringify(schema))) return checked;
  const { run } = checked._zod;
  checked._zod.run = (payload, context) =>
    withinTime(
      PATTERN_SECONDS * 1000,
      () => run(payload, context),
      () =>
        new Error(
          `a pattern of the tool's JSON Schema takes more than ${PATTERN_SECONDS} s for these arguments; it goes back again and again, and the tool needs another one`,
        ),
    );
  return checked;
}

/** Reads a schema of an object; what is no schema throws an `Error` that says where. */
export function schemaCheck(schema: unknown): SchemaCheck {
  checkSchema(schema, "");
  if (!isRecord(schema) || schema.type !== "object")
    throw new Error('expected the schema of an object, with "type": "object"');
  const checked = zodSchema(schema);
  return (value) => {
    const result = checked.safeParse(value);
    return result.success ? undefined : result.error.issues.map(issueText).join("; ");
  };
}

function issueText({ path, message }: z.core.$ZodIssue): string {
  return path.length === 0 ? message : `${path.join(".")}: ${message}`;
}

function checkSchema(schema: unknown, where: string): void {
  const no = (message: string): Error => new Error(where === "" ? message : `${where}: ${message}`);
  if (typeof schema === "boolean") return;
  if (!isRecord(schema)) throw no(`a schema is an object, not ${JSON.stringify(schema)}`);
  for (const [name, value] of Object.entries(schema)) {
    const path = where === "" ? name : `${where}.${name}`;
    const kind = keywords[name];
    if (name.startsWith("x-")) continue;
    if (kind === undefined)
      throw no(
        `the keyword "${name}" is not supported.${didYouMean(name, Object.keys(keywords))} Extensions start with x-.`,
      );
    if (kind === "schema") checkSchema(value, path);
    if (kind === "schemas") {
      if (!isRecord(value)) throw no(`"${name}" should be an object of schemas`);
      for (const [key, one] of Object.entries(value)) checkSchema(one, `${path}.${key}`);
    }
    if (kind === "list of schemas") {
      if (!Array.isArray(value)) throw no(`"${name}" should be a list of schemas`);
      for (const [at, one] of value.entries()) checkSchema(one, `${path}.${at}`);
    }
    if (kind === "names" && !isNames(value)) throw no(`"${name}" should be a list of names`);
  }
}

const isNames = (value: unknown): boolean =>
  Array.isArray(value) && value.every((one) => typeof one === "string");

/** What is said in calls instead of text. */
interface Calls {
  tools(): readonly Tool[];
  /**
   * Whether the world looks at names and arguments itself, as an original does whose answers to
   * wrong ones are part of it. Otherwise a call that does not fit never reaches it.
   */
  readonly checksCalls?: boolean;
  admissibleActions?(): readonly ToolCall[];
  irreversible?(call: ToolCall): boolean;
}

/** A world in this process that is acted in by tool calls. */
export interface ToolEnv extends Omit<Env, "step" | "clone" | keyof Calls>, Calls {
  step(call: ToolCall): StepResult;
  clone(): ToolEnv;
}

/** The same behind a server. */
export interface RemoteToolEnv extends Omit<RemoteEnv, "step" | keyof Calls>, Calls {
  step(call: ToolCall, signal?: AbortSignal): Promise<StepResult>;
}

/** Whether a world is acted in by tool calls. */
function hasTools(env: Env | RemoteEnv | ToolEnv | RemoteToolEnv): env is ToolEnv | RemoteToolEnv {
  return env.tools !== undefined;
}

/** The world as a text environment. */
function textEnv(env: ToolEnv | RemoteToolEnv, started = false): Env | RemoteEnv {
  let live = started;
  let checks: ReadonlyMap<string, SchemaCheck> | undefined;
  const tools = (): readonly Tool[] => {
    const offered = env.tools();
    checks ??= checksOf(offered);
    return offered;
  };
  /** The call of an action, or what is wrong with it. */
  const read = (action: string): ToolCall | string => {
    const call = readCall(action);
    if (call === undefined)
      return 'Expected a tool call, {"tool": NAME, "arguments": {…}}, and got something else.';
    tools();
    if (env.checksCalls) return call;
    const check = checks!.get(call.tool);
    const names = [...checks!.keys()];
    if (check === undefined)
      return `There is no tool ${call.tool}.${didYouMean(call.tool, names)} The tools are: ${names.join(", ")}.`;
    const problem = check(call.arguments);
    return problem === undefined ? call : `The arguments of ${call.tool} do not fit: ${problem}.`;
  };
  const facts = {
    get goal() {
      return env.goal;
    },
    get taskType() {
      return env.taskType;
    },
    tools,
    ...(env.admissibleActions && {
      admissibleActions: () => textsOf(env.admissibleActions!()),
    }),
    ...(env.irreversible && {
      irreversible: (action: string) => {
        const call = read(action);
        return typeof call !== "string" && env.irreversible!(call);
      },
    }),
    ...(env.initialContext && { initialContext: () => env.initialContext!() }),
    ...(env.maxReturn && { maxReturn: () => env.maxReturn!() }),
  };
  /** The call of an action, or the answer to an action that is none. */
  const callOf = (action: string): ToolCall | StepResult => {
    if (!live)
      throw new EnvError("step was called before reset or after the end: call reset(task) first");
    const call = read(action);
    return typeof call === "string" ? refusal(call) : call;
  };
  const finished = (result: StepResult): StepResult => {
    live = !result.done;
    return result;
  };
  const text: Env | RemoteEnv =
    "close" in env
      ? Object.assign(facts, {
          reset: async (...args: Parameters<RemoteEnv["reset"]>) => {
            const observation = await env.reset(...args);
            live = true;
            return observation;
          },
          step: async (action: string, signal?: AbortSignal) => {
            const call = callOf(action);
            return "tool" in call ? finished(await env.step(call, signal)) : call;
          },
          close: () => env.close(),
        })
      : Object.assign(facts, {
          reset: (...args: Parameters<Env["reset"]>) => {
            const observation = env.reset(...args);
            live = true;
            return observation;
          },
          step: (action: string) => {
            const call = callOf(action);
            return "tool" in call ? finished(env.step(call)) : call;
          },
          clone: () => textEnv(env.clone(), live) as Env,
        });
  worlds.set(text, env);
  return text;
}

const worlds = new WeakMap<Env | RemoteEnv, ToolEnv | RemoteToolEnv>();

/** An environment whose worlds are acted in by tool calls. */
export interface ToolEnvironment extends Omit<Environment, "create" | "expert" | "seeker"> {
  create(): ToolEnv | RemoteToolEnv;
  readonly expert?: ToolExpert;
  readonly seeker?: ToolExpert;
}

/** Chooses the next call; may look at the true state of the world. */
export type ToolExpert = (env: ToolEnv) => ToolCall;

/** The environment as one of text; an environment of text stays as it is. */
export function textEnvironment(environment: Environment | ToolEnvironment): Environment {
  const create = (): Env | RemoteEnv => {
    const env = environment.create();
    return hasTools(env) ? textEnv(env) : env;
  };
  const player =
    (of: Expert | ToolExpert): Expert =>
    (env) => {
      const world = worlds.get(env);
      return world === undefined
        ? (of as Expert)(env)
        : callText((of as ToolExpert)(world as ToolEnv));
    };
  const { expert, seeker } = environment;
  const own = {
    create,
    ...(expert && { expert: player(expert) }),
    ...(seeker && { seeker: player(seeker) }),
  };
  // A copy that keeps getters and methods of a class, which spreading would not.
  return Object.create(Object.getPrototypeOf(environment), {
    ...Object.getOwnPropertyDescriptors(environment),
    ...Object.getOwnPropertyDescriptors(own),
  }) as Environment;
}

function refusal(observation: string): StepResult {
  return { observation, reward: 0, done: false, info: { valid: false, success: false } };
}

const texts = new WeakMap<readonly ToolCall[], readonly string[]>();

/** The calls as texts, sorted. A frozen list cannot change, so its texts are kept. */
function textsOf(calls: readonly ToolCall[]): readonly string[] {
  const made = texts.get(calls) ?? calls.map(callText).sort();
  if (Object.isFrozen(calls)) texts.set(calls, made);
  return made;
}

const checksByTools = new WeakMap<readonly Tool[], ReadonlyMap<string, SchemaCheck>>();

/** The check of each tool's arguments, made once for a list that many worlds share. */
function checksOf(tools: readonly Tool[]): ReadonlyMap<string, SchemaCheck> {
  const made = checksByTools.get(tools) ?? makeChecks(tools);
  checksByTools.set(tools, made);
  return made;
}

/** Tools that are none are refused by name. */
function makeChecks(tools: readonly Tool[]): ReadonlyMap<string, SchemaCheck> {
  const refuse = (message: string): never => {
    throw new EnvError(`tools(): ${message}`);
  };
  if (!Array.isArray(tools) || tools.length === 0)
    refuse("expected a list of one tool or more: {name, description, parameters}");
  const checks = new Map<string, SchemaCheck>();
  for (const tool of tools) {
    if (!isRecord(tool) || typeof tool.name !== "string" || !/^[\w.-]{1,64}$/.test(tool.name))
      refuse(
        `a tool's name is 1 to 64 letters, digits, dots, dashes and underscores; got ${JSON.stringify((tool as Partial<Tool>)?.name)}`,
      );
    if (typeof tool.description !== "string")
      refuse(`${tool.name}: expected a description, a text`);
    if (checks.has(tool.name)) refuse(`there are two tools named ${tool.name}`);
    try {
      checks.set(tool.name, schemaCheck(tool.parameters));
    } catch (error) {
      refuse(`the parameters of ${tool.name} are no JSON Schema: ${(error as Error).message}`);
    }
  }
  return checks;
}

// An episode of a tool environment as a set of tools for the AI SDK (`generateText({ tools })`,
// `ToolLoopAgent`): plain objects, made without that package.

/** A tool as the AI SDK takes it. */
interface SetTool {
  readonly description: string;
  readonly inputSchema: z.ZodType<Record<string, unknown>>;
  execute(input: Record<string, unknown>): Promise<string>;
}

/** An episode that is played by calling tools. */
interface ToolSet {
  /** By name, for `tools`. */
  readonly tools: Record<string, SetTool>;
  /** What each call was worth, so far. */
  readonly steps: readonly StepResult[];
  /** Whether the episode is over, for `stopWhen`. */
  readonly done: boolean;
}

/** The tools of a world in which an episode has begun. */
export function toolSet(env: Env | RemoteEnv): ToolSet {
  if (env.tools === undefined)
    throw new EnvError("this environment has no tools: its actions are texts, not tool calls");
  const steps: StepResult[] = [];
  const isDone = (): boolean => steps.at(-1)?.done ?? false;
  const tools = env.tools().map(({ name, description, parameters }): [string, SetTool] => [
    name,
    {
      description,
      inputSchema: zodSchema(parameters) as SetTool["inputSchema"],
      async execute(input) {
        if (isDone()) return "The episode is over.";
        const result = await env.step(callText({ tool: name, arguments: input }));
        steps.push(result);
        return result.observation;
      },
    },
  ]);
  return {
    tools: Object.fromEntries(tools),
    steps,
    get done() {
      return isDone();
    },
  };
}
