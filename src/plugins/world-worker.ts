/** The process of an isolated world (`envs/isolated-environment.ts`): loads plugins, opens, plays. */
import { serve } from "../calls.js";
import { type Env, EnvError, type Environment } from "../envs/env.js";
import type {
  Advice,
  ValueOrError,
  VisibleState,
  WorldStart,
} from "../envs/isolated-environment.js";
import { openEnvironment } from "../envs/open.js";
import { loadEnvKinds } from "../envs/registry.js";
import { processPort } from "../process-calls.js";

let opening: Promise<Environment> | undefined;
let env: Env | undefined;

async function open({ plugins, config }: WorldStart): Promise<Environment> {
  // Loaded only if needed: every process has its own copy.
  if (plugins.length > 0) {
    const { loadPlugin } = await import("./load.js");
    for (const path of plugins) await loadPlugin(path);
  }
  await loadEnvKinds([config.name]);
  return openEnvironment(config);
}

serve(processPort(), async (method, args) => {
  // The first call; those after it report its error.
  if (method === "open") opening ??= open(args[0] as WorldStart);
  if (opening === undefined) throw new Error("expected open first");
  const environment = await opening;
  if (method === "open") return { result: undefined };
  const started = (): Env => {
    if (env === undefined) throw new EnvError("call reset(task) first");
    return env;
  };
  if (method === "reset") {
    const [id, seed, fresh] = args as readonly [string, number | undefined, boolean];
    if (fresh || env === undefined) env = environment.create() as Env;
    const observation = await env.reset(environment.task(id), seed);
    return { result: { observation, shown: show(env) } };
  }
  if (method === "step") {
    const result = await started().step(args[0] as string);
    return { result: { result, shown: show(env!) } };
  }
  const world = started();
  const advice: Advice = {
    expert: tell(() => environment.expert?.(world) ?? ""),
    seeker: tell(() => environment.seeker?.(world) ?? ""),
  };
  return { result: advice };
});

/** Everything is asked for, because the other process cannot wait for it later. */
function show(world: Env): VisibleState {
  return {
    goal: tell(() => world.goal),
    taskType: tell(() => world.taskType),
    admissibleActions: tell(() => world.admissibleActions?.() ?? []),
    tools: tell(() => world.tools?.() ?? []),
    initialContext: tell(() => world.initialContext?.()),
    maxReturn: tell(() => world.maxReturn?.()),
  };
}

function tell<T>(ask: () => T): ValueOrError<T> {
  try {
    return { value: ask() };
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}
