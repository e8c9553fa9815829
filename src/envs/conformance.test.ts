/** Tests the suite against a sound toy environment and against one with each fault in turn. */
import { describe, expect, it } from "vitest";
import { envChecks } from "./conformance.js";
import { type Env, EnvError, type Environment, type RemoteEnv, type Task } from "./env.js";
import { limitOptions } from "./limits.js";

const tasks: readonly Task[] = ["train", "test"].flatMap((split) =>
  [0, 1, 2].map((index) => ({ id: `${split}/${index}`, split, type: index % 2 ? "far" : "near" })),
);

/** A corridor: walk right to its end, 2 to 4 steps away. */
interface Corridor {
  task: Task | undefined;
  seed: number;
  position: number;
  end: number;
  over: boolean;
  /** Something that a careless copy shares by reference. */
  visited: number[];
}

function corridorEnv(state: Corridor): Env {
  const possible = () => {
    if (state.over) return [];
    return state.position > 0 ? ["left", "right", "wait"] : ["right", "wait"];
  };
  return {
    get goal() {
      return state.task === undefined ? "" : `Walk to ${state.end}.`;
    },
    get taskType() {
      return state.task?.type ?? "";
    },
    reset(task, seed = 0) {
      const known = findTask(task.id);
      Object.assign(state, { task: known, seed, position: 0, over: false, visited: [0] });
      state.end = known.type === "far" ? 4 : 2;
      return `You are at 0. Tag ${seed}.`;
    },
    step(action) {
      if (state.task === undefined) throw new EnvError("corridor: call reset first");
      if (state.over) throw new EnvError("corridor: the episode is over, call reset");
      const valid = possible().includes(action);
      if (valid && action !== "wait") state.position += action === "right" ? 1 : -1;
      if (valid) state.visited.push(state.position);
      state.over = valid && state.position === state.end;
      return {
        observation: valid ? `You saw ${state.visited.join(" ")}.` : "You cannot do that.",
        reward: state.over ? 1 : 0,
        done: state.over,
        info: { valid, success: state.over },
      };
    },
    admissibleActions: possible,
    initialContext: () => `The corridor ends at ${state.end}.`,
    clone: () => corridorEnv({ ...state, visited: [...state.visited] }),
  };
}

function findTask(id: string): Task {
  const task = tasks.find((known) => known.id === id);
  if (task === undefined)
    throw new EnvError(`corridor has no task "${id}"; it has ${tasks.map((t) => t.id).join(", ")}`);
  return task;
}

function newState(): Corridor {
  return { task: undefined, seed: 0, position: 0, end: 0, over: false, visited: [] };
}

const corridor: Environment = {
  name: "corridor",
  splits: ["train", "test"],
  stepLimit: 20,
  maxReturn: 1,
  tasks(split) {
    if (!this.splits.includes(split))
      throw new EnvError(`corridor has no split "${split}"; it has train and test`);
    return tasks.filter((task) => task.split === split);
  },
  task: findTask,
  create: () => corridorEnv(newState()),
  expert: () => "right",
};

/** An environment in which `change` is applied to every env, including clones. */
function withEnv(change: (env: Env, state: Corridor) => Partial<Env>): Environment {
  const wrap = (state: Corridor): Env => {
    const env = corridorEnv(state);
    env.clone = () => wrap({ ...state, visited: [...state.visited] });
    const descriptors = Object.getOwnPropertyDescriptors(change({ ...env }, state));
    return Object.defineProperties(env, descriptors);
  };
  return { ...corridor, create: () => wrap(newState()) };
}

async function failures(environment: Environment): Promise<Map<string, string>> {
  const failed = new Map<string, string>();
  for (const check of envChecks(environment))
    await check.run().catch((error: Error) => failed.set(check.name, error.message));
  return failed;
}

let shared = 0;

const faults: readonly [check: string, fault: string, message: RegExp, Environment][] = [
  [
    "answers with text, finite rewards and info",
    "an observation that is an image",
    /after 0 steps: the observation is bytes, expected text/,
    withEnv((env) => ({
      step: (action) => ({
        ...env.step(action),
        observation: new Uint8Array(4) as unknown as string,
      }),
    })),
  ],
  [
    "answers with text, finite rewards and info",
    "a reward that is not a number",
    /the reward is NaN/,
    withEnv((env) => ({ step: (action) => ({ ...env.step(action), reward: Number.NaN }) })),
  ],
  [
    "answers with text, finite rewards and info",
    "a mistake of its own",
    /after 0 steps: my bug \(TypeError, at conformance\.test\.ts:\d+\)$/,
    withEnv(() => ({
      step: () => {
        throw new TypeError("my bug");
      },
    })),
  ],
  [
    "answers with text, finite rewards and info",
    "a server that never answers",
    /after 0 steps: a step took longer than env.limits.stepSeconds/,
    {
      ...corridor,
      limits: limitOptions.parse({ stepSeconds: 0.4 }),
      create: (): RemoteEnv => ({
        goal: "wait",
        taskType: "hang",
        reset: async () => "start",
        step: () => new Promise(() => undefined),
        close: async () => undefined,
      }),
    },
  ],
  [
    "lists its tasks",
    "two tasks with the same id",
    /"train\/0" occurs twice/,
    { ...corridor, tasks: (split) => [...corridor.tasks(split), ...corridor.tasks(split)] },
  ],
  [
    "lists its tasks",
    "a task that differs when looked up by id",
    /task\("train\/0"\)/,
    { ...corridor, task: (id) => ({ ...findTask(id), type: "other" }) },
  ],
  [
    "lists its tasks",
    "no tasks",
    /at least one task/,
    {
      ...corridor,
      splits: ["train", "none"],
      tasks: (s) => (s === "none" ? [] : corridor.tasks(s)),
    },
  ],
  [
    "names unknown splits and tasks",
    "an unknown split is an empty list",
    /expected an error, got none/,
    { ...corridor, tasks: (split) => tasks.filter((task) => task.split === split) },
  ],
  [
    "names unknown splits and tasks",
    "the unknown name is missing from the error",
    /must name "no-such-thing"/,
    {
      ...corridor,
      task: (id) => {
        const task = tasks.find((known) => known.id === id);
        if (task === undefined) throw new EnvError("unknown task; there is train/0");
        return task;
      },
    },
  ],
  [
    "names unknown splits and tasks",
    "what exists is missing from the error",
    /a split or task that exists/,
    withEnv((env) => ({
      reset(task, seed) {
        if (!tasks.some((known) => known.id === task.id)) throw new EnvError(`no ${task.id}`);
        return env.reset(task, seed);
      },
    })),
  ],
  [
    "knows goal and task type after reset",
    "no goal",
    /the goal is empty/,
    withEnv(() => ({ goal: "" })),
  ],
  [
    "knows goal and task type after reset",
    "the wrong task type",
    /expected "near", got "any"/,
    withEnv(() => ({ taskType: "any" })),
  ],
  [
    "refuses to step before reset",
    "it steps anyway",
    /expected an error, got none/,
    withEnv((env, state) => ({
      step: (action) => {
        state.task ??= tasks[0];
        return env.step(action);
      },
    })),
  ],
  [
    "refuses to step before reset",
    "an unhelpful error",
    /must say to reset; it says "undefined is not/,
    withEnv((env, state) => ({
      step: (action) => {
        if (state.task === undefined) throw new TypeError("undefined is not a function");
        return env.step(action);
      },
    })),
  ],
  [
    "refuses to step after the end",
    "it continues",
    /step after the end: got no error/,
    withEnv((env, state) => ({
      step(action) {
        state.over = false;
        return env.step(action);
      },
    })),
  ],
  [
    "repeats an episode from task, seed and actions",
    "observations that differ each time",
    /replayed, task train\/0/,
    withEnv((env) => ({
      step(action) {
        const result = env.step(action);
        return { ...result, observation: `${result.observation} ${shared++}` };
      },
    })),
  ],
  [
    "keeps episodes apart",
    "a reset that leaves something behind",
    /in a used environment/,
    withEnv((env, state) => ({
      reset(task, seed) {
        const { visited } = state;
        const observation = env.reset(task, seed);
        state.visited = visited;
        return observation;
      },
    })),
  ],
  [
    "never returns more than its maximum",
    "a reward larger than the maximum",
    /the return 1 exceeds maxReturn 0.5/,
    { ...corridor, maxReturn: 0.5 },
  ],
  [
    "never returns more than its maximum",
    "a reward that is not a number",
    /not a finite number/,
    withEnv((env) => ({ step: (action) => ({ ...env.step(action), reward: Number.NaN }) })),
  ],
  [
    "flags invalid actions and leaves the state alone",
    "nonsense called valid",
    /"xyzzy": expected valid: false/,
    withEnv((env) => ({
      step(action) {
        const result = env.step(action);
        return action === "xyzzy" ? { ...result, info: { ...result.info, valid: true } } : result;
      },
    })),
  ],
  [
    "flags invalid actions and leaves the state alone",
    "nonsense that changes the state",
    /after invalid actions, task train\/0, step 1/,
    withEnv((env, state) => ({
      step(action) {
        const result = env.step(action);
        if (!result.info.valid) state.visited.push(-1);
        return result;
      },
    })),
  ],
  [
    "lists admissible actions sorted and once",
    "an action listed twice",
    /sorted and once each/,
    withEnv((env) => ({
      admissibleActions: () => env.admissibleActions!().flatMap((action) => [action, action]),
    })),
  ],
  [
    "lists admissible actions sorted and once",
    "unsorted actions",
    /sorted and once each/,
    withEnv((env) => ({ admissibleActions: () => [...env.admissibleActions!()].reverse() })),
  ],
  [
    "clones exactly",
    "a clone at the start of the episode",
    /clone made after|a clone after/,
    withEnv((_, state) => ({
      clone: () => corridorEnv({ ...state, position: 0, visited: [0] }),
    })),
  ],
  [
    "clones exactly",
    "a clone that is the original",
    /cloned after|clone made after/,
    withEnv(() => ({
      clone() {
        return this as Env;
      },
    })),
  ],
  [
    "keeps clones independent",
    "a shallow copy",
    /its clone stepped elsewhere/,
    withEnv((_, state) => ({ clone: () => corridorEnv({ ...state }) })),
  ],
  [
    "carries out every admissible action",
    "an action that is listed but invalid",
    /"jump" is listed as admissible, but was invalid: "You cannot do that."/,
    withEnv((env) => ({
      admissibleActions: () => {
        const actions = env.admissibleActions!();
        return actions.length === 0 ? [] : ["jump", ...actions].sort();
      },
    })),
  ],
  [
    "lets its expert solve every task",
    "an expert that waits",
    /the expert did not succeed within 20 steps/,
    { ...corridor, expert: () => "wait" },
  ],
];

describe("the conformance suite", () => {
  it("passes a sound environment, and runs every check on it", async () => {
    expect(await failures(corridor)).toEqual(new Map());
    const names = envChecks(corridor).map((check) => check.name);
    expect(new Set(faults.map(([check]) => check))).toEqual(new Set(names));
  });

  it.each(faults)("%s: catches %s", async (check, _, message, environment) => {
    const failed = await failures(environment);
    expect(failed.get(check)).toMatch(message);
  });

  it("checks a remote environment without what it does not have", async () => {
    const remote: Environment = {
      ...corridor,
      create(): RemoteEnv {
        const env = corridorEnv(newState());
        const { clone, admissibleActions, reset, step, ...facts } =
          Object.getOwnPropertyDescriptors(env);
        return Object.defineProperties(
          {},
          {
            ...facts,
            reset: { value: async (task: Task, seed?: number) => env.reset(task, seed) },
            step: { value: async (action: string) => env.step(action) },
            close: { value: async () => undefined },
          },
        ) as RemoteEnv;
      },
    };
    const names = envChecks(remote, { actions: ["right"] }).map((check) => check.name);
    expect(names).toContain("keeps episodes apart");
    expect(names).not.toContain("clones exactly");
    expect(names).not.toContain("lists admissible actions sorted and once");
    expect(names).not.toContain("lets its expert solve every task");
    expect(await failures(remote)).toEqual(new Map());
  });

  it("skips invalid actions if the environment accepts any text", () => {
    const names = envChecks(corridor, { invalidActions: [] }).map((check) => check.name);
    expect(names).not.toContain("flags invalid actions and leaves the state alone");
  });
});
