/**
 * Checks that every environment must pass, as plain functions that throw.
 *
 * They run in a test (`for (const check of envChecks(environment)) it(check.name, check.run)`), in
 * `pawl env check`, and wherever else someone wants to know whether an environment keeps the
 * contract. Checks that need `clone`, admissible actions or an expert are skipped if the
 * environment has none.
 */
import { UserError } from "../errors.js";
import { createRandom, mixSeed } from "../random.js";
import { checkAdmissible, checkStep, checkText } from "./bounded-env.js";
import {
  askExpert,
  chooseAction,
  closing,
  type EnvCheckOptions,
  errorOf,
  midway,
  must,
  playFresh,
  playToEnd,
  retrace,
  type Setup,
  same,
  sameReset,
  sampleTasks,
  viewOf,
  withinLimits,
} from "./conformance-play.js";
import type { Environment, StepResult, Task } from "./env.js";
import { DEFAULT_LIMITS } from "./limits.js";

export type { EnvCheckOptions } from "./conformance-play.js";

/** One property of the contract; `run` throws with the details if it does not hold. */
export interface EnvCheck {
  readonly name: string;
  /** The checks after it say nothing if it fails. */
  readonly essential?: boolean;
  run(): Promise<void>;
}

/** The checks that apply to an environment. */
export function envChecks(given: Environment, options: EnvCheckOptions = {}): readonly EnvCheck[] {
  const { limits = DEFAULT_LIMITS } = given;
  const environment = Object.assign(Object.create(given) as Environment, {
    create: () => withinLimits(given.create(), limits),
  });
  const tasksPerSplit = options.tasksPerSplit ?? 6;
  let drawn: readonly Task[] | undefined;
  const setup: Setup = {
    environment,
    tasksPerSplit,
    steps: Math.min(options.steps ?? 30, environment.stepLimit),
    seed: options.seed ?? 0,
    invalidActions:
      options.invalidActions ?? (given.freeText ? [] : ["", "xyzzy", "go to nowhere 99"]),
    actions: options.actions ?? (given.freeText ? ["I do not know.", "42"] : []),
    // Listed by the first check that needs it, so that a broken list fails a check and not the
    // caller.
    get tasks() {
      drawn ??= environment.splits.flatMap((split) =>
        sampleTasks(environment.tasks(split), tasksPerSplit),
      );
      return drawn;
    },
  };
  const probe = environment.create();
  const checks: [string, (setup: Setup) => Promise<void>][] = [
    ["lists its tasks", listsTasks],
    ["answers with text, finite rewards and info", answersWell],
    ["names unknown splits and tasks", namesUnknown],
    ["knows goal and task type after reset", knowsGoal],
    ["refuses to step before reset", refusesBeforeReset],
    ["refuses to step after the end", refusesAfterEnd],
    ["repeats an episode from task, seed and actions", repeats],
    ["keeps episodes apart", keepsEpisodesApart],
    ["never returns more than its maximum", staysBelowMaximum],
  ];
  if (setup.invalidActions.length > 0)
    checks.push(["flags invalid actions and leaves the state alone", flagsInvalid]);
  if (probe.admissibleActions !== undefined)
    checks.push(["lists admissible actions sorted and once", sortsAdmissible]);
  if (probe.clone !== undefined) {
    checks.push(
      ["clones exactly", clonesExactly],
      ["keeps clones independent", clonesIndependently],
    );
    if (probe.admissibleActions !== undefined)
      checks.push(["carries out every admissible action", carriesOutAdmissible]);
    if (environment.expert !== undefined)
      checks.push(["lets its expert solve every task", expertSolves]);
  }
  return checks.map(([name, run]) => ({
    name,
    essential: run === listsTasks || run === answersWell,
    run: () => run(setup),
  }));
}

async function listsTasks({ environment }: Setup): Promise<void> {
  must(environment.splits.length > 0, "splits: expected at least one split, got none");
  const seen = new Set<string>();
  for (const split of environment.splits) {
    const tasks = environment.tasks(split);
    must(tasks.length > 0, `tasks("${split}"): expected at least one task, got none`);
    for (const task of tasks) {
      must(!seen.has(task.id), `tasks("${split}"): the id "${task.id}" occurs twice`);
      seen.add(task.id);
      same(task.split, split, `tasks("${split}"), task ${task.id}, its split`);
    }
    for (const task of sampleTasks(tasks, 20))
      same(environment.task(task.id), task, `task("${task.id}") and the list of its split`);
    same(environment.tasks(split), tasks, `tasks("${split}") asked twice`);
  }
}

/** Where a world's own code failed: the first place of its stack. */
function thrownAt(error: unknown): string {
  if (error instanceof UserError || !(error instanceof Error)) return "";
  const place = /\n\s+at .*?([^/\\(]+:\d+):\d+\)?/.exec(error.stack?.slice(0, 4000) ?? "")?.[1];
  return place === undefined ? "" : ` (${error.name}, at ${place})`;
}

async function answersWell(setup: Setup): Promise<void> {
  const { limits = DEFAULT_LIMITS } = setup.environment;
  for (const task of setup.tasks)
    await closing(setup.environment.create(), async (env) => {
      const where = (error: unknown): Error =>
        new Error(
          `task ${task.id}, after ${steps} ${steps === 1 ? "step" : "steps"}: ${(error as Error).message}${thrownAt(error)}`,
        );
      let steps = 0;
      try {
        checkText(await env.reset(task, 0), "the first observation", limits);
        checkText(env.goal, "the goal", limits);
        const random = createRandom(mixSeed(setup.seed, "answers", task.id));
        for (let done = false; steps < setup.steps && !done; steps++) {
          checkAdmissible(env.admissibleActions?.());
          const action = await chooseAction(setup, env, random);
          if (action === undefined) break;
          ({ done } = checkStep(await env.step(action), limits));
        }
      } catch (error) {
        throw where(error);
      }
    });
}

async function namesUnknown({ environment, tasks }: Setup): Promise<void> {
  const offender = "no-such-thing";
  const known = [...environment.splits, ...tasks.map((task) => task.id)];
  const env = environment.create();
  const attempts: [string, () => unknown][] = [
    [`tasks("${offender}")`, () => environment.tasks(offender)],
    [`task("${offender}")`, () => environment.task(offender)],
    ["reset of an unknown task", () => env.reset({ id: offender, split: offender, type: "" })],
  ];
  await closing(env, async () => {
    for (const [what, attempt] of attempts) {
      const message = await errorOf(attempt);
      must(message !== undefined, `${what}: expected an error, got none`);
      must(
        message.includes(offender),
        `${what}: the error must name "${offender}"; it says "${message}"`,
      );
      must(
        known.some((name) => message.includes(name)),
        `${what}: the error must name a split or task that exists; it says "${message}"`,
      );
    }
  });
}

async function knowsGoal(setup: Setup): Promise<void> {
  for (const task of setup.tasks) {
    const { firstObservation, firstView } = await playFresh(setup, task, 0);
    must(firstObservation.trim() !== "", `task ${task.id}: the first observation is empty`);
    must(firstView.goal.trim() !== "", `task ${task.id}: the goal is empty after reset`);
    same(firstView.taskType, task.type, `task ${task.id}, taskType after reset`);
  }
}

async function refusesBeforeReset({ environment }: Setup): Promise<void> {
  const message = await closing(environment.create(), (env) => errorOf(() => env.step("look")));
  must(message !== undefined, "step before reset: expected an error, got none");
  must(
    /reset/i.test(message),
    `step before reset: the error must say to reset; it says "${message}"`,
  );
}

async function refusesAfterEnd(setup: Setup): Promise<void> {
  for (const task of setup.tasks)
    await closing(setup.environment.create(), async (env) => {
      const actions = await playToEnd(setup, env, task);
      if (actions === undefined) return;
      const message = await errorOf(() => env.step(actions.at(-1)!));
      must(message !== undefined, `task ${task.id}, step after the end: got no error`);
      must(
        /reset/i.test(message),
        `task ${task.id}, step after the end: the error must say to reset; it says "${message}"`,
      );
    });
}

async function repeats(setup: Setup): Promise<void> {
  for (const task of setup.tasks) {
    const trace = await playFresh(setup, task, 7);
    await closing(setup.environment.create(), async (env) => {
      sameReset(env, await env.reset(task, 7), trace, "replayed");
      await retrace(env, trace, "replayed");
    });
  }
}

async function keepsEpisodesApart(setup: Setup): Promise<void> {
  await closing(setup.environment.create(), async (used) => {
    for (const task of setup.tasks) {
      // Twice each: an earlier episode of the same task must not show either.
      for (const seed of [1, 2]) {
        const trace = await playFresh(setup, task, seed);
        sameReset(used, await used.reset(task, seed), trace, "in a used environment");
        await retrace(used, trace, "in a used environment");
      }
    }
  });
}

async function staysBelowMaximum(setup: Setup): Promise<void> {
  const { maxReturn, stepLimit } = setup.environment;
  const check = (task: Task, player: string, rewards: readonly number[]): void => {
    const total = rewards.reduce((sum, reward) => sum + reward, 0);
    must(Number.isFinite(total), `task ${task.id}, ${player}: a reward is not a finite number`);
    must(
      total <= maxReturn,
      `task ${task.id}, ${player}: the return ${total} exceeds maxReturn ${maxReturn}`,
    );
  };
  for (const task of setup.tasks) {
    const { steps } = await playFresh({ ...setup, steps: stepLimit }, task, 0);
    check(
      task,
      "at random",
      steps.map((step) => step.result.reward),
    );
    await closing(setup.environment.create(), async (env) => {
      const actions = await playToEnd(setup, env, task);
      if (actions === undefined) return;
      await env.reset(task, 0);
      const rewards: number[] = [];
      for (const action of actions) rewards.push((await env.step(action)).reward);
      check(task, "played to the end", rewards);
    });
  }
}

async function flagsInvalid(setup: Setup): Promise<void> {
  for (const task of setup.tasks) {
    const trace = await playFresh(setup, task, 3);
    await closing(setup.environment.create(), async (env) => {
      await env.reset(task, 3);
      for (let i = 0; i < trace.steps.length; i++) {
        for (const action of setup.invalidActions) {
          const where = `task ${task.id}, after ${i} steps, the invalid action "${action}"`;
          const { info, observation, reward } = await env.step(action);
          must(!info.valid, `${where}: expected valid: false, got valid: true`);
          must(observation.trim() !== "", `${where}: expected an observation, got an empty one`);
          must(reward <= 0, `${where}: expected no reward, got ${reward}`);
        }
        await retrace(env, trace, "after invalid actions", i, i + 1);
      }
    });
  }
}

async function sortsAdmissible(setup: Setup): Promise<void> {
  for (const task of setup.tasks) {
    const trace = await playFresh(setup, task, 4);
    const views = [trace.firstView, ...trace.steps.map((step) => step.view)];
    for (const [i, { admissible = [] }] of views.entries()) {
      const where = `task ${task.id}, after ${i} steps, admissible actions`;
      same(admissible, [...new Set(admissible)].sort(), `${where} sorted and once each`);
      const over = i > 0 && trace.steps[i - 1]!.result.done;
      must(over || admissible.length > 0, `${where}: expected at least one, got none`);
    }
  }
}

async function clonesExactly(setup: Setup): Promise<void> {
  await midway(setup, async (env, trace, middle) => {
    await closing(await env.clone!(), async (copy) => {
      same(viewOf(copy), viewOf(env), `task ${trace.task.id}, a clone after ${middle} steps`);
      for (let i = middle; i < trace.steps.length; i++) {
        await retrace(env, trace, `original cloned after ${middle} steps`, i, i + 1);
        await retrace(copy, trace, `clone made after ${middle} steps`, i, i + 1);
      }
    });
  });
}

async function clonesIndependently(setup: Setup): Promise<void> {
  await midway(setup, async (env, trace, middle) => {
    await closing(await env.clone!(), async (stepped) =>
      closing(await env.clone!(), async (kept) => {
        const random = createRandom(mixSeed(setup.seed, "other way", trace.task.id, middle));
        for (let i = 0; i < setup.steps; i++) {
          const action = await chooseAction(setup, stepped, random);
          if (action === undefined || (await stepped.step(action)).done) break;
        }
        await retrace(env, trace, "original, its clone stepped elsewhere", middle);
        await retrace(kept, trace, "clone, its original stepped to the end", middle);
      }),
    );
  });
}

async function carriesOutAdmissible(setup: Setup): Promise<void> {
  await midway(setup, async (env, trace, middle) => {
    for (const action of env.admissibleActions?.() ?? [])
      await closing(await env.clone!(), async (copy) => {
        const { info, observation } = await copy.step(action);
        must(
          info.valid,
          `task ${trace.task.id}, after ${middle} steps: "${action}" is listed as admissible, ` +
            `but was invalid: "${observation}"`,
        );
      });
  });
}

async function expertSolves(setup: Setup): Promise<void> {
  const { stepLimit, expertMayFail = false } = setup.environment;
  const failures: string[] = [];
  for (const task of setup.tasks) {
    const last = await closing(setup.environment.create(), async (env) => {
      let result: StepResult | undefined;
      await env.reset(task, 6);
      for (let i = 0; i < stepLimit && result?.done !== true; i++)
        result = await env.step(await askExpert(setup, env));
      return result;
    });
    if (last?.info.success !== true)
      failures.push(
        `task ${task.id}: the expert did not succeed within ${stepLimit} steps; ` +
          `the last observation was "${last?.observation}"`,
      );
  }
  // Where tasks may be beyond anyone, most of them must still be solved.
  const allowed = expertMayFail ? setup.tasks.length / 2 : 0;
  must(failures.length <= allowed, failures[0]!);
}
