import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isWhole } from "@pawl/core/dose-testing.js";
import { envChecks } from "@pawl/core/envs/conformance.js";
import { EnvError, type Environment, type RemoteEnv, type Task } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { createRandom } from "@pawl/core/random.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { runCli } from "@pawl/pawl/cli/testing.js";
import { GAMES, officialDataThere, unpacked } from "@pawl/worlds/alfworld/fixtures/official.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { actionRule, checkAnswer, observationText } from "./action-rule.js";
import { openenvOptions, openOpenEnv } from "./openenv.js";
import { describeServer, type ServerFacts } from "./server-facts.js";
import { badServer, served } from "./testing.js";

/** The built command as a process of its own: an environment is opened while this thread waits. */
async function serve(...args: readonly string[]) {
  const cli = join(process.cwd(), "dist/lib/main.js");
  const child = spawn(process.execPath, [cli, "serve", "env", ...args, "--port", "0"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = (await once(child.stdout!, "data")) as [Buffer];
  return { child, url: /http:\S+(?=,)/.exec(String(line))![0] };
}

async function stop(child: ChildProcess): Promise<unknown> {
  const exit = once(child, "exit");
  child.kill("SIGINT");
  return (await exit)[0];
}

const fail = (problem: string): never => {
  throw new Error(problem);
};

/** Everything that a random player sees. */
async function played(environment: Environment, task: Task, seed: number) {
  const env = environment.create();
  const random = createRandom(seed);
  const seen: unknown[] = [await env.reset(task, seed), env.goal, env.taskType];
  seen.push(env.initialContext?.());
  for (let count = 0; count < 25; count++) {
    const actions = env.admissibleActions!();
    const action = count % 7 === 3 ? "fly away" : random.pick(actions);
    const result = await env.step(action);
    seen.push(actions, action, result);
    if (result.done) break;
  }
  if ("close" in env) await env.close();
  return seen;
}

it("a world's own largest return comes through pawl serve env, and out of a process", async () => {
  const { child, url } = await serve("textworld", "--env.data", "made-up");
  const local = openEnvironment({ name: "textworld", data: "made-up" });
  const isolated = { name: "textworld", data: "made-up", limits: { isolate: true } };
  const own = local.create();
  const others = [openEnvironment({ name: "openenv", url }), openEnvironment(isolated)];
  const largest = new Set<number>();
  for (const task of local.tasks("train").slice(0, 6)) {
    await own.reset(task, 0);
    largest.add(own.maxReturn!()!);
    for (const environment of others) {
      const env = environment.create();
      await env.reset(task, 0);
      expect(env.maxReturn!(), environment.name).toBe(own.maxReturn!());
      if ("close" in env) await env.close();
    }
  }
  expect(largest.size).toBeGreaterThan(1);
  for (const environment of others) await environment.close?.();
  await stop(child);
}, 60_000);

describe("through pawl serve env", () => {
  let house: Awaited<ReturnType<typeof serve>>;
  beforeAll(async () => {
    house = await serve("household", "--env.noise", "all", "--max-sessions", "6");
  });
  afterAll(async () => expect(await stop(house.child)).toBe(0));

  it("household is the same environment, and keeps the contract", async () => {
    const own = openEnvironment({ name: "household", noise: "all" });
    const remote = openEnvironment({ name: "openenv", url: house.url });
    expect(remote).toMatchObject({
      ...{ splits: own.splits, stepLimit: own.stepLimit, maxReturn: own.maxReturn },
      ...{ parallel: 6, prompt: own.prompt },
    });
    for (const split of own.splits) expect(remote.tasks(split)).toEqual(own.tasks(split));
    for (const [split, index] of [
      ["train", 5],
      ["valid_unseen", 3],
    ] as const) {
      const task = own.tasks(split)[index]!;
      expect(await played(remote, task, 9)).toEqual(await played(own, task, 9));
    }
    for (const check of envChecks(remote, { tasksPerSplit: 1, steps: 6 })) await check.run();
  });

  it("rollouts play it, as many episodes at once as it allows", async () => {
    const folder = mkdtempSync(join(tmpdir(), "pawl-openenv-"));
    const play = (name: string, ...env: readonly string[]) =>
      runCli([
        ...["rollout", "--policy", "random", "--groups", "4", "--group-size", "4"],
        ...["--step-limit", "5", "--out", join(folder, name), ...env],
      ]);
    const url = ["--env", "openenv", "--env.url", house.url];
    expect(await play("remote", ...url)).toMatchObject({ code: 0 });
    await play("own", "--env", "household", "--env.noise", "all");
    const episodes = (name: string) =>
      [...openRun(join(folder, name), fail).episodes()]
        .map(({ group, attempt, task, stop, firstObservation, steps }) => ({
          ...{ group, attempt, task, stop, firstObservation },
          steps: steps.map(({ action, observation, reward }) => [action, observation, reward]),
        }))
        // Episodes are recorded as they end.
        .sort((a, b) => a.group - b.group || a.attempt - b.attempt);
    expect(episodes("remote")).toHaveLength(16);
    expect(episodes("remote")).toEqual(episodes("own"));
    rmSync(folder, { recursive: true });
  });

  it("asks for no more sessions than there are", () => {
    expect(() => openEnvironment({ name: "openenv", url: house.url, parallel: 7 })).toThrow(
      "7 sessions are asked for, and the server has 6",
    );
  });

  it("refuses seeds as tasks of a server that has tasks, and keeps the goal that it is given", async () => {
    expect(() => openEnvironment({ name: "openenv", url: house.url, seeds: 5 })).toThrow(
      "seeds: 5 are the tasks of a server without task lists",
    );
    const remote = openEnvironment({ name: "openenv", url: house.url, goal: "look around" });
    const env = remote.create();
    await env.reset(remote.tasks("train")[0]!, 1);
    expect(env.goal).toBe("look around");
    if ("close" in env) await env.close();
  });
});

it.runIf(isWhole && officialDataThere)("ALFWorld is the same through the socket", async () => {
  const data = unpacked(GAMES);
  const { child, url } = await serve("alfworld", "--env.data", data);
  const own = openEnvironment({ name: "alfworld", data });
  const remote = openEnvironment({ name: "openenv", url });
  expect(remote.splits).toEqual(own.splits);
  const task = own.tasks("valid_seen")[17]!;
  expect(await played(remote, task, 2)).toEqual(await played(own, task, 2));
  expect(await stop(child)).toBe(0);
});

it("a desk of tools is the same through the socket", async () => {
  const { child, url } = await serve("desk");
  const own = openEnvironment({ name: "desk" });
  const remote = openEnvironment({ name: "openenv", url });
  const task = own.tasks("valid_seen")[2]!;
  expect(await played(remote, task, 4)).toEqual(await played(own, task, 4));
  const env = remote.create();
  await env.reset(task);
  const same = own.create();
  await same.reset(task);
  expect(env.tools!()).toEqual(same.tools!());
  await (env as RemoteEnv).close();
  expect(await stop(child)).toBe(0);
});

describe("a server that is not there, or not one", () => {
  it("is named when the environment is opened", async () => {
    expect(() => openEnvironment({ name: "openenv", url: "http://127.0.0.1:9" })).toThrow(
      /GET http:\/\/127\.0\.0\.1:9\/schema failed: .*Is the server running/,
    );
    expect(() => openEnvironment({ name: "openenv", url: "localhost:8000" })).toThrow(
      "expected http://",
    );
    const { code, stderr } = await runCli([
      ...["rollout", "--env", "openenv", "--env.url", "http://127.0.0.1:9"],
    ]);
    expect([code, stderr]).toEqual([1, expect.stringContaining("Is the server running")]);
  });
});

/** What is found out from canned answers. */
function found(answers: Readonly<Record<string, unknown>>): ServerFacts {
  const dialogue = describeServer();
  let next = dialogue.next();
  while (!next.done) {
    const answer = answers[next.value.path];
    next = dialogue.next(
      answer === undefined
        ? { status: 501, text: "" }
        : { status: 200, text: JSON.stringify(answer) },
    );
  }
  return next.value;
}

const echo = {
  title: "EchoAction",
  properties: { message: { type: "string" } },
  required: ["message"],
};

describe("what a server says about itself", () => {
  it("is its schema, its words and its tasks, as far as it has them", () => {
    expect(found({ "/schema": { action: echo } })).toEqual({
      ...{ name: "openenv", description: "", action: echo, hasTools: false },
    });
    const facts = found({
      "/schema": { action: { title: "CallToolAction" } },
      "/metadata": { name: "e", description: "Echoes." },
      "/list_environments": ["E x"],
      "/E%20x/splits": [{ name: "train", type: "train" }, "test"],
      "/E%20x/num_tasks": { num_tasks: 3 },
      "/E%20x/tasks": { tasks: [{ id: "a", type: "easy" }, 7] },
    });
    expect(facts).toMatchObject({ name: "E x", description: "Echoes.", hasTools: true });
    expect(facts.splits).toEqual([
      { name: "train", tasks: [{ id: "a", type: "easy" }, {}, {}] },
      { name: "test", tasks: [{ id: "a", type: "easy" }, {}, {}] },
    ]);
    expect(() => found({ "/schema": [] })).toThrow("Is this an OpenEnv server?");
    expect(() => found({})).toThrow("GET /schema: status 501");
    expect(() =>
      found({
        "/schema": { action: echo },
        "/list_environments": ["e"],
        "/e/splits": ["train"],
        "/e/num_tasks": { num_tasks: -1 },
      }),
    ).toThrow("num_tasks");
    expect(() =>
      found({ "/schema": { action: echo, observation: { title: "PawlObservation" } } }),
    ).toThrow("another version of Pawl");
  });
});

describe("text in, text out", () => {
  it("makes actions of answers by the schema", () => {
    const rule = actionRule(echo);
    expect(rule("hello")).toEqual({ message: "hello" });
    expect(rule('```json\n{"message": "a", "n": 1}\n```')).toEqual({ message: "a", n: 1 });
    expect(rule("{not json")).toEqual({ message: "{not json" });
    const two = actionRule({ properties: { a: {}, b: {} }, required: ["a", "b"] });
    expect(two("x")).toBe("Expected an action as a JSON object with a, b.");
    expect(two('{"a":1,"b":2}')).toEqual({ a: 1, b: 2 });
    const number = actionRule({ properties: { n: { type: "integer" } } });
    expect([number("12"), number("twelve")]).toEqual([
      { n: 12 },
      "Expected integer for n, or a JSON object.",
    ]);
  });

  it("shows an observation as its one text, or as JSON", () => {
    expect(observationText({ text: "hi", metadata: { a: 1 }, extra: null })).toBe("hi");
    expect(observationText({ text: "hi", length: 2, metadata: {} })).toBe(
      '{"text":"hi","length":2}',
    );
  });

  it("takes no reward for 0, and anything else that is no number for a fault", () => {
    const data = { observation: {}, reward: null, done: false };
    expect(checkAnswer("observation", data).reward).toBe(0);
    expect(checkAnswer("observation", { ...data, reward: true }).reward).toBe(1);
    for (const wrong of [{ reward: "1" }, { reward: {} }, { done: 1 }, { observation: "hi" }])
      expect(() => checkAnswer("observation", { ...data, ...wrong })).toThrow(EnvError);
    expect(() => checkAnswer("state", data)).toThrow('answered with "state"');
  });
});

describe("a server that misbehaves", () => {
  const facts: ServerFacts = {
    name: "bad",
    description: "Be good.",
    action: echo,
    hasTools: false,
  };
  const seen = (
    reward: unknown = 0,
    done: unknown = false,
    observation: unknown = { text: "ok" },
  ) => JSON.stringify({ type: "observation", data: { observation, reward, done } });
  const failed = (code: string) =>
    JSON.stringify({ type: "error", data: { code, message: `${code}!` } });
  const open = (at: string, more: object = {}, known = facts) => {
    const options = openenvOptions.parse({ url: `http://${at}`, connectSeconds: 0.5, ...more });
    return openOpenEnv(options, known);
  };
  /** An episode's first step at a server that is good until then. */
  const firstStep = async (answer: Parameters<typeof badServer>[0], known = facts) => {
    const server = await badServer((text, socket, count) => {
      if (count === 0) socket.send(seen());
      else answer(text, socket, count);
    });
    const environment = open(server.at, {}, known);
    const env = environment.create() as RemoteEnv;
    try {
      await env.reset(environment.tasks("train")[3]!);
      return await env.step("go").catch((error: unknown) => error);
    } finally {
      await env.close();
      await server.stop();
    }
  };

  it("breaks the episode, and never counts as a reward of 0", async () => {
    const faults: Parameters<typeof badServer>[0][] = [
      (_, socket) => socket.terminate(),
      (_, socket) => socket.close(1011, "out of memory"),
      (_, socket) => socket.send(Buffer.from("binary"), { binary: true }),
      (_, socket) => socket.send("{"),
      (_, socket) => socket.send("[1]"),
      (_, socket) => socket.send(seen("much")),
      (_, socket) => socket.send(seen(0, "no")),
      (_, socket) => socket.send(seen(0, false, null)),
      (_, socket) => socket.send('{"type":"state","data":{}}'),
      (_, socket) => socket.send(failed("SESSION_ERROR")),
      // It throws, and then does not even know its state.
      (text, socket) =>
        socket.send(failed(text.includes("state") ? "SESSION_ERROR" : "EXECUTION_ERROR")),
    ];
    for (const fault of faults) expect(await firstStep(fault)).toBeInstanceOf(EnvError);
  });

  it("is not blamed for what the agent did", async () => {
    const refused = await firstStep((_, socket) => socket.send(failed("VALIDATION_ERROR")));
    expect(refused).toMatchObject({ observation: "VALIDATION_ERROR!", info: { valid: false } });
    const thrown = await firstStep((text, socket) =>
      socket.send(
        text.includes('"state"') ? '{"type":"state","data":{}}' : failed("EXECUTION_ERROR"),
      ),
    );
    expect(thrown).toMatchObject({ reward: 0, info: { valid: false } });
    expect(await firstStep((_, socket) => socket.send(seen(null)))).toMatchObject({ reward: 0 });
    expect(await firstStep((_, socket) => socket.send(seen(1, true)))).toMatchObject({
      ...{ reward: 1, done: true, info: { success: true } },
    });
  });

  it("that hangs is left when nobody waits any more", async () => {
    const server = await badServer((_, socket, count) => {
      if (count === 0) socket.send(seen());
    });
    const environment = open(server.at);
    const env = environment.create() as RemoteEnv;
    await env.reset(environment.tasks("train")[0]!);
    const waited = new AbortController();
    const step = env.step("go", waited.signal);
    waited.abort(new Error("too late"));
    await expect(step).rejects.toThrow("nobody waits");
    await expect(env.step("go")).rejects.toThrow(EnvError);
    // The next episode has a new session.
    expect(await env.reset(environment.tasks("train")[1]!)).toBe("ok");
    expect(server.connections()).toBe(2);
    await env.close();
    await server.stop();
  });

  it("is asked again while it starts, or has no free session, for a while", async () => {
    let refusals = 2;
    const server = await badServer((_, socket) => {
      if (refusals-- > 0) {
        socket.send(failed("CAPACITY_REACHED"));
        socket.close();
      } else socket.send(seen());
    });
    const environment = open(server.at, { connectSeconds: 60 });
    const env = environment.create() as RemoteEnv;
    expect(await env.reset(environment.tasks("train")[0]!)).toBe("ok");
    expect(server.connections()).toBe(3);
    await env.close();
    const busy = await served({ limits: { maxSessions: 1 } });
    const other = open(busy.at);
    const first = other.create() as RemoteEnv;
    await first.reset(other.tasks("train")[0]!);
    const second = other.create() as RemoteEnv;
    await expect(second.reset(other.tasks("train")[0]!)).rejects.toThrow(
      "no free session (it has 1): set --env.parallel",
    );
    await first.close();
    expect(await second.reset(other.tasks("train")[0]!)).toContain("text");
    await second.close();
    await busy.stop();
    await server.stop();
  });

  it("that lies about its tools is found out", async () => {
    const tools = { ...facts, hasTools: true };
    const lie = (observation: unknown) =>
      firstStep((_, socket) => socket.send(seen(null, false, observation)), tools);
    await expect(lie({ text: "no tools here" })).rejects.toThrow("observation.tools");
    await expect(lie({ tools: [{ name: "x" }] })).rejects.toThrow("input_schema");
    // A tool whose call fails for a reason that is not the agent's breaks the episode.
    const call = async (error: object | null, result: unknown = null) => {
      const server = await badServer((_, socket, count) => {
        const parameters = { type: "object", properties: {} };
        const listed = { tools: [{ name: "go", description: "", input_schema: parameters }] };
        socket.send(
          seen(null, false, [{ text: "ok" }, listed, { tool_name: "go", result, error }][count]),
        );
      });
      const environment = open(server.at, {}, tools);
      const env = environment.create() as RemoteEnv;
      await env.reset(environment.tasks("train")[0]!);
      const answer = await env
        .step('{"tool":"go","arguments":{}}')
        .catch((thrown: unknown) => thrown);
      await env.close();
      await server.stop();
      return answer;
    };
    expect(await call(null, { content: [{ text: "gone" }] })).toMatchObject({
      ...{ observation: "gone", info: { valid: true } },
    });
    expect(await call({ error_type: "invalid_args", message: "no" })).toMatchObject({
      ...{ observation: "no", info: { valid: false } },
    });
    expect(await call({ error_type: "timeout", message: "late" })).toBeInstanceOf(EnvError);
  });
});
