import { describe, expect, it } from "vitest";
import { EngineFailure } from "../engine/ask.js";
import type { Env, Environment, RemoteEnv, Task } from "../envs/env.js";
import { EnvError } from "../envs/env.js";
import { housePrompt } from "../envs/household/prompt.js";
import { promptStyle } from "../text/prompt.js";
import type { Episode } from "./episode.js";
import type { Policy, Situation } from "./policy.js";
import { play, type RolloutOptions, rollout } from "./rollout.js";
import { createTally, rates } from "./tally.js";

/** A world of one number: `up` adds one, and three is the goal. */
function counter(): Env {
  let n = 0;
  let started = false;
  const env: Env = {
    goal: "reach 3",
    taskType: "count",
    reset(task) {
      if (task.id === "train/broken") throw new EnvError("data of train/broken is damaged");
      n = 0;
      started = true;
      return "0";
    },
    step(action) {
      if (!started) throw new Error("step before reset");
      if (action === "explode") throw new Error("the world fell apart");
      const valid = action === "up" || action === "stay";
      if (action === "up") n++;
      const success = n === 3;
      return {
        observation: valid ? String(n) : "what?",
        reward: success ? 10 : 0,
        done: success,
        info: { valid, success, score: n / 3 },
      };
    },
    admissibleActions: () => ["stay", "up"],
    irreversible: () => false,
    initialContext: () => `n is ${n}`,
    clone: counter,
  };
  return env;
}

const tasks: Task[] = ["train/0", "train/1", "train/2"].map((id) => ({
  id,
  split: "train",
  type: id === "train/2" ? "other" : "count",
}));

const environment: Environment = {
  name: "counter",
  splits: ["train"],
  stepLimit: 5,
  maxReturn: 10,
  tasks: () => tasks,
  task: (id) => tasks.find((task) => task.id === id)!,
  create: counter,
};

const style = promptStyle(housePrompt, { style: "compact" });

/** A policy from a function that maps a situation to an action. */
function scripted(choose: (situation: Situation) => string, more: Partial<Policy> = {}): Policy {
  return {
    name: "scripted",
    batch: 1,
    act: async (situations) => situations.map((s) => ({ response: s.format(choose(s)) })),
    ...more,
  };
}

const base = { environment, style, tasks, groupSize: 2, seed: 1 };
const run = (policy: Policy, more: Partial<RolloutOptions> = {}) =>
  rollout({ ...base, policy, ...more });

describe("rollout", () => {
  it("records groups of episodes with everything that happened", async () => {
    const groups = await run(scripted(() => "up"));
    expect(groups.map((group) => group.episodes.length)).toEqual([2, 2, 2]);
    const episode = groups[1]!.episodes[1]!;
    expect(episode).toMatchObject({
      task: tasks[1],
      group: 1,
      attempt: 1,
      policy: "scripted",
      goal: "reach 3",
      firstObservation: "0",
      initialContext: "n is 0",
      return: 10,
      success: true,
      score: 1,
      stop: "done",
    });
    expect(episode.steps.map((step) => step.observation)).toEqual(["1", "2", "3"]);
    expect(episode.steps[1]!.prompt.some((piece) => piece.origin === "observation")).toBe(true);
    expect(new Set(groups.flatMap((g) => g.episodes.map((e) => e.seed))).size).toBe(6);
  });

  it("gives up after as many invalid actions in a row as invalidActionLimit allows", async () => {
    const dancesFrom = (first: number) =>
      scripted(({ index }) => (index < first ? "stay" : "dance"));
    const [group] = await run(dancesFrom(1), { invalidActionLimit: 2 });
    expect(group!.episodes[0]).toMatchObject({ stop: "stuck", success: false, return: 0 });
    expect(group!.episodes[0]!.steps.map(({ valid }) => valid)).toEqual([true, false, false]);
    const [patient] = await run(
      scripted(({ index }) => (index % 2 === 0 ? "dance" : "stay")),
      {
        invalidActionLimit: 2,
      },
    );
    expect(patient!.episodes[0]!.stop).toBe("step-limit");
  });

  it("ends at the step limit and accounts for invalid actions", async () => {
    const groups = await run(scripted(({ index }) => (index % 2 === 0 ? "dance" : "stay")));
    const tally = createTally();
    for (const group of groups) for (const episode of group.episodes) tally.add(episode);
    expect(groups[0]!.episodes[0]!.stop).toBe("step-limit");
    expect(tally.all).toMatchObject({
      episodes: 6,
      successes: 0,
      steps: 30,
      refused: 18,
      malformed: 0,
    });
    expect(rates(tally.all).invalid).toBeCloseTo(0.6);
    expect(tally.byType.get("other")).toMatchObject({ episodes: 2 });
  });

  it("counts a malformed response as invalid and still sends the action it contains", async () => {
    const full = promptStyle(housePrompt, { style: "full" });
    const policy: Policy = {
      ...scripted(() => ""),
      act: async (situations) => situations.map(() => ({ response: "<action>up</action>" })),
    };
    const [group] = await run(policy, { style: full });
    expect(group!.episodes[0]).toMatchObject({ success: true });
    expect(group!.episodes[0]!.steps[0]).toMatchObject({
      action: "up",
      wellFormed: false,
      valid: false,
    });
  });

  it("keeps white space inside an action, unless the environment says otherwise", async () => {
    const policy = scripted(() => "", {
      act: async (situations) => situations.map(() => ({ response: "put  it\tdown" })),
    });
    const kept = await run(policy);
    expect(kept[0]!.episodes[0]!.steps[0]!.action).toBe("put  it\tdown");
    const collapsing: Environment = { ...environment, whiteSpace: "collapse" };
    const collapsed = await run(policy, { environment: collapsing });
    expect(collapsed[0]!.episodes[0]!.steps[0]!.action).toBe("put it down");
  });

  it("puts actions into lower case where the settings say so, with their white space", async () => {
    const policy = scripted(() => "", {
      act: async (situations) => situations.map(() => ({ response: "Put  IT\tdown" })),
    });
    const actionWith = async (lowerCase: boolean) => {
      const lowering = promptStyle(housePrompt, { style: "compact", lowerCase });
      const [group] = await run(policy, { style: lowering });
      return group!.episodes[0]!.steps[0]!;
    };
    expect(await actionWith(true)).toMatchObject({
      action: "put  it\tdown",
      response: "Put  IT\tdown",
      wellFormed: true,
    });
    expect((await actionWith(false)).action).toBe("Put  IT\tdown");
  });

  it("counts a truncated response as malformed in every style, but sends its action", async () => {
    for (const name of ["compact", "full"] as const) {
      const form = promptStyle(housePrompt, { style: name });
      const act: Policy["act"] = async (situations) =>
        situations.map((s) => ({ response: s.format("up"), ...(s.index === 1 && { cut: true }) }));
      const [group] = await run(
        scripted(() => "up", { act }),
        { style: form },
      );
      const { success, steps } = group!.episodes[0]!;
      expect(success).toBe(true);
      expect(steps.map(({ wellFormed, valid }) => wellFormed && valid)).toEqual([
        true,
        false,
        true,
      ]);
      expect(steps[1]).toMatchObject({ action: "up", wellFormed: false, valid: false, cut: true });
      expect(steps[0]).not.toHaveProperty("cut");
    }
  });

  it("gives the same episodes for any concurrency", async () => {
    const policy = (batch: number) =>
      scripted((s) => (s.seed % 3 === 0 ? "stay" : "up"), { batch });
    const one = await run(policy(1));
    expect(await run(policy(1), { concurrency: 4 })).toEqual(one);
    expect(await run(policy(100))).toEqual(one);
  });

  it("advances a batch in lock-step for policies that answer many episodes at once", async () => {
    const sizes: number[] = [];
    const policy: Policy = {
      name: "batched",
      batch: 4,
      act: async (situations) => {
        sizes.push(situations.length);
        return situations.map((s) => ({ response: s.format(s.attempt === 0 ? "up" : "stay") }));
      },
    };
    await run(policy);
    expect(sizes).toEqual([4, 4, 4, 2, 2, 2, 2, 2, 1, 1]);
  });

  it("runs the attempts of a group in sequence if the policy learns between them", async () => {
    const log: string[] = [];
    const policy = scripted(() => "up", {
      sequential: true,
      finished: async ({ group, attempt }) => void log.push(`${group}.${attempt}`),
    });
    await run(policy, {
      onStart: ({ group, attempt }) => void log.push(`start ${group}.${attempt}`),
    });
    expect(log.slice(0, 4)).toEqual(["start 0.0", "0.0", "start 0.1", "0.1"]);
  });

  it("continues when the policy fails to learn from an episode, and reports it", async () => {
    const problems: string[] = [];
    const policy = scripted(() => "up", {
      finished: async () => {
        throw new Error("no answer");
      },
    });
    const groups = await run(policy, { onProblem: (message) => void problems.push(message) });
    expect(groups.every((group) => group.episodes.every((episode) => episode.success))).toBe(true);
    expect(problems[0]).toBe("scripted learnt nothing from 0.0: no answer");
  });

  it("marks an episode as broken when its world fails, never as a failure", async () => {
    const broken = { id: "train/broken", split: "train", type: "count" };
    const groups = await run(
      scripted(({ group, index }) => (group === 0 && index === 1 ? "explode" : "up")),
      { tasks: [tasks[0]!, broken, tasks[1]!] },
    );
    const episodes = groups.flatMap((group) => group.episodes);
    expect(episodes.map((episode) => episode.stop)).toEqual([
      "broken",
      "broken",
      "broken",
      "broken",
      "done",
      "done",
    ]);
    expect(episodes[0]).toMatchObject({ error: "the world fell apart", steps: [{ action: "up" }] });
    expect(episodes[2]!.error).toBe("data of train/broken is damaged");
    const tally = createTally();
    for (const episode of episodes) tally.add(episode);
    expect(tally.all).toMatchObject({ episodes: 2, broken: 4, successes: 2 });
  });

  it("breaks the episodes whose policy fails, and gives up when nothing works", async () => {
    const failing = scripted(() => {
      throw new Error("the model does not answer");
    });
    const seen: Episode[] = [];
    // The ten of the first task might be that task's fault; the next one shows that they are not.
    await expect(
      play({ ...base, groupSize: 10, policy: failing, onEpisode: (e) => void seen.push(e) }),
    ).rejects.toThrow(/first 11 episodes all broke.*does not answer/);
    expect(seen).toHaveLength(11);
    expect(seen[0]).toMatchObject({ stop: "broken", error: "the model does not answer" });
    const silent = { ...scripted(() => ""), act: async () => [] };
    await expect(run(silent, { tasks: tasks.slice(0, 1), groupSize: 1 })).rejects.toThrow(
      /^the only episode broke\. The first error, of task train\/0: .*gave 0 replies to 1 situations/,
    );
    await expect(run(silent)).rejects.toThrow(/^all 6 episodes broke\. The first error/);
  });

  it("fails as a whole if a policy that answers for many episodes fails", async () => {
    const seen: Episode[] = [];
    const onEpisode = (episode: Episode): void => void seen.push(episode);
    const failing = (choose: (situation: Situation) => string, batch: number) =>
      run(scripted(choose, { batch }), { onEpisode });
    // Attempt 0 is over after its third step; the others would have been dropped with the fourth.
    const late = ({ attempt, index }: Situation): string => {
      if (index === 3) throw new Error("no memory left");
      return attempt === 0 ? "up" : "stay";
    };
    await expect(failing(late, 100)).rejects.toThrow("no memory left");
    expect(seen.map(({ stop }) => stop)).toEqual(["done", "done", "done"]);
    const short = scripted(() => "up", { batch: 100, act: async () => [{ response: "up" }] });
    await expect(run(short)).rejects.toThrow("gave 1 replies to 6 situations");
    // An engine's failure does not belong to the episode, even for one episode at a time or in a
    // simulated world.
    const broken = (): never => {
      throw new EngineFailure("the engine failed");
    };
    await expect(failing(broken, 1)).rejects.toThrow("the engine failed");
    const simulated = { ...environment, create: () => ({ ...counter(), step: broken }) };
    await expect(
      run(
        scripted(() => "up"),
        { environment: simulated },
      ),
    ).rejects.toThrow("the engine failed");
  });

  it("breaks only the episode whose world cannot list its admissible actions", async () => {
    const create = (): Env => {
      const world = counter();
      let mute = false;
      return {
        ...world,
        reset: (task, seed) => {
          mute = task.id === "train/1";
          return world.reset(task, seed);
        },
        admissibleActions: () => {
          if (mute) throw new Error("the list is gone");
          return ["up"];
        },
      };
    };
    const groups = await run(
      scripted(() => "up", { batch: 100 }),
      {
        environment: { ...environment, create },
        groupSize: 1,
      },
    );
    expect(groups.map(({ episodes }) => episodes[0]!.stop)).toEqual(["done", "broken", "done"]);
    expect(groups[1]!.episodes[0]!.error).toBe("the list is gone");
  });

  it("ends an episode whose prompt no longer fits, without a step", async () => {
    const policy: Policy = {
      ...scripted(() => "up"),
      act: async (situations) =>
        situations.map((s) =>
          s.index === 1 ? { response: "", overflow: true } : { response: "up" },
        ),
    };
    const [group] = await run(policy);
    expect(group!.episodes[0]).toMatchObject({ stop: "context-limit", steps: [{ action: "up" }] });
  });

  it("stops on abort, and has reported the finished episodes", async () => {
    const controller = new AbortController();
    const seen: Episode[] = [];
    const promise = play({
      ...base,
      policy: scripted(() => "up"),
      signal: controller.signal,
      onEpisode(episode) {
        seen.push(episode);
        if (seen.length === 2) controller.abort();
      },
    });
    await expect(promise).rejects.toThrow(/abort/);
    expect(seen).toHaveLength(2);
  });

  it("plays and closes worlds behind a server", async () => {
    let open = 0;
    const remote: Environment = {
      ...environment,
      create(): RemoteEnv {
        const env = counter();
        const { clone: _, ...facts } = env;
        open++;
        return {
          ...facts,
          reset: async (task) => env.reset(task),
          step: async (action) => env.step(action),
          close: async () => void open--,
        };
      },
    };
    const groups = await run(
      scripted(() => "up"),
      { environment: remote, concurrency: 3 },
    );
    expect(groups.every((group) => group.episodes.every((episode) => episode.success))).toBe(true);
    expect(open).toBe(0);
  });

  it.each([
    { concurrency: 1, batch: Number.POSITIVE_INFINITY },
    { concurrency: 2, batch: Number.POSITIVE_INFINITY },
    { concurrency: 9, batch: 1 },
  ])(
    "opens no more worlds than there is room for ($concurrency)",
    async ({ concurrency, batch }) => {
      let open = 0;
      let most = 0;
      const crowded: Environment = {
        ...environment,
        parallel: 3,
        create(): RemoteEnv {
          const env = counter();
          const { clone: _, ...facts } = env;
          open++;
          most = Math.max(most, open);
          return {
            ...facts,
            reset: async (task) => env.reset(task),
            step: async (action) => env.step(action),
            close: async () => void open--,
          };
        },
      };
      const policy = { ...scripted(() => "up"), batch };
      const groups = await run(policy, { environment: crowded, concurrency, groupSize: 5 });
      expect(groups.every(({ episodes }) => episodes.length === 5)).toBe(true);
      expect(most).toBe(concurrency === 2 ? 2 : 3);
    },
  );
});
