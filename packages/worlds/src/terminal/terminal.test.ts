import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { envChecks } from "@pawl/core/envs/conformance.js";
import { type Env, isRemote } from "@pawl/core/envs/env.js";
import { callText } from "@pawl/core/text/tool.js";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { writeHarborTask } from "./harbor-write.js";
import { madeTasks, taskKinds } from "./tasks.js";
import { terminal } from "./terminal.js";

const open = (options: object = {}) => terminal.open(terminal.options.parse(options));

function begin(options: object = {}, id = "train/0", seed = 0): Env {
  const environment = open(options);
  const env = environment.create();
  if (isRemote(env)) throw new Error("expected a world in this process");
  env.reset(environment.task(id), seed);
  return env;
}

describe.each([
  ["text", open()],
  ["tool", open({ actions: "tool", difficulty: 2, reward: "share" })],
])("made-up tasks, acted on by %s", (_, environment) => {
  for (const check of envChecks(environment, { steps: 4, tasksPerSplit: 3 }))
    it(check.name, check.run);
});

describe("a session", () => {
  it("shows output and exit code, and what was too much only at both ends", () => {
    const env = begin({ output: 100 });
    expect(env.step("echo a; false").observation).toBe("a\n[exit code 1]");
    expect(env.step("true").observation).toBe("[no output]");
    expect(env.step("seq 1000").observation).toMatch(
      /^1\n2\n.*\n\[… 3,792 characters left out …\]\n.*\n1000$/s,
    );
    expect(env.step("yes").observation).toMatch(/\[stopped: it wrote too much\]$/);
  });

  it("ends with exit, and is scored", () => {
    const environment = open();
    const env = environment.create() as Env;
    env.reset(environment.task("test/3"));
    while (environment.expert!(env) !== "exit") env.step(environment.expert!(env));
    const solved = env.clone();
    expect(solved.step("exit")).toMatchObject({ reward: 1, done: true, info: { score: 1 } });
    expect(() => solved.step("ls")).toThrow(/after the end/);
    expect(begin({}, "test/3").step("exit")).toMatchObject({
      reward: 0,
      done: true,
      info: { success: false, valid: true },
    });
  });

  it("can reward a part of what was asked", () => {
    const environment = open({ kinds: ["chain"], reward: "share" });
    const env = environment.create() as Env;
    env.reset(environment.task("train/0"));
    env.step(environment.expert!(env));
    const { reward, info } = env.step("exit");
    expect([reward, info.success, info.score]).toEqual([0.5, false, 0.5]);
  });

  it("has times, ids and random numbers that only the seed of the episode changes", () => {
    const noise = "date; echo $$ $RANDOM; stat -c %Y .; mktemp";
    const [one, same, other] = [1, 1, 2].map((seed) => begin({}, "train/0", seed).step(noise));
    expect(same).toEqual(one);
    expect(other!.observation).not.toBe(one!.observation);
    expect(begin({}, "train/0", 2).goal).toBe(begin({}, "train/0", 1).goal);
  });

  it("can end what every command shows with noise", () => {
    const [one, other] = [1, 2].map((seed) => begin({ noise: "status" }, "train/0", seed));
    const form = /^hi\n\[\d\d:\d\d:\d\d pid \d+ id [0-9a-f]{8}\]$/;
    const shown = [one!, other!].map((env) => env.step("echo hi").observation);
    for (const text of shown) expect(text).toMatch(form);
    expect(shown[0]).not.toBe(shown[1]);
    expect(one!.step("xyzzy").observation).toBe(
      "bash: line 1: xyzzy: command not found\n[exit code 127]",
    );
  });

  it("knows names and syntax that are no commands, and leaves everything as it was", () => {
    const env = begin();
    const before = env.clone().step("date +%N; echo $$").observation;
    for (const line of ["xyzzy", "echo 'a", "if", "", "  ", "fi", "a b | "])
      expect(env.step(line).info.valid, line).toBe(false);
    expect(env.step("date +%N; echo $$").observation).toBe(before);
    for (const line of ["cat none", "grep x", "xyzzy || true", "# nothing", "./none", "x=1"])
      expect(env.step(line).info.valid, line).toBe(true);
    env.step("printf 'exit 2' > /usr/local/bin/two; chmod +x /usr/local/bin/two");
    expect(env.step("two").info.valid).toBe(true);
  });

  it("offers one tool in the form of tools", () => {
    const env = begin({ actions: "tool" });
    expect(env.tools!().map(({ name }) => name)).toEqual(["bash"]);
    const run = (command: string) => env.step(callText({ tool: "bash", arguments: { command } }));
    expect(run("echo a\necho b").observation).toBe("a\nb");
    expect(env.step('{"tool":"bash","arguments":{}}').info.valid).toBe(false);
    expect(run("exit")).toMatchObject({ done: true });
  });
});

describe("options that would change nothing", () => {
  it.each([
    [{ runner: "docker" }, /runner is about tasks of a folder/],
    [{ skip: true }, /skip is about tasks of a folder/],
    [{ tasks: "x", runner: "podman", noise: "status" }, /noise is added by the shell/],
    [{ tasks: "x", difficulty: 2 }, /difficulty is about made-up tasks, and x has tasks/],
    [{ tasks: "x", kinds: ["logs"] }, /kinds is about made-up tasks/],
  ])("are refused: %j", (options, message) => {
    expect(() => open(options)).toThrow(message);
  });
});

describe("tasks in a folder", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "pawl-terminal-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const put = (files: Readonly<Record<string, string>>): void => {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(join(folder, path, ".."), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
  };
  const task = (name: string, test: string, dockerfile = "FROM debian:12\nWORKDIR /srv\n") =>
    put({
      [`${name}/task.toml`]: '[metadata]\ncategory = "small"\n[verifier.env]\nNAME = "a b"\n',
      [`${name}/instruction.md`]: "Write the word done to out.txt.",
      [`${name}/environment/Dockerfile`]: dockerfile,
      [`${name}/tests/test.sh`]: test,
      [`${name}/solution/solve.sh`]: "#!/bin/bash\nset -e\nword=done\necho $word > out.txt\n",
    });
  const good = 'bash "$(dirname $0)/more.sh" && echo 1 > /logs/verifier/reward.txt';

  it("are played as the made-up ones that they were", async () => {
    const source = madeTasks({ seed: 5, difficulty: 1, kinds: taskKinds });
    for (const split of ["train", "test"])
      for (const one of source.lists[split]!().slice(0, 3))
        await writeHarborTask(folder, source.load(one));
    const environment = open({ tasks: folder });
    expect(environment.splits).toEqual(["train", "test"]);
    for (const check of envChecks(environment, { steps: 4, tasksPerSplit: 3 })) await check.run();
  });

  it("are made ready by their Dockerfile, solved by solve.sh, scored by test.sh", () => {
    task("one", good, "FROM a\nWORKDIR /srv\nENV WHO=me\nRUN echo $WHO > who.txt\n");
    put({ "one/tests/more.sh": '[ "$NAME" = "a b" ] && grep -qx done /srv/out.txt' });
    const environment = open({ tasks: folder });
    const env = environment.create() as Env;
    const [only] = environment.tasks("train");
    expect(only).toEqual({ id: "one", split: "train", type: "small" });
    expect(env.reset(only!)).toBe("In /srv: who.txt");
    expect(env.clone().step("cat who.txt; echo $WHO; ls /tests").observation).toBe(
      "me\nme\nls: cannot access '/tests': No such file or directory\n[exit code 2]",
    );
    expect(env.clone().step("exit").reward).toBe(0);
    env.step(environment.expert!(env));
    expect(environment.expert!(env)).toBe("exit");
    expect(env.step("exit")).toMatchObject({ reward: 1, info: { success: true } });
  });

  it("that need what is not here are refused by name, or left out", () => {
    task("bad", "uvx pytest /tests || pip install x\n");
    task("wrong", "true", "FROM a\nRUN apt-get update && make\n");
    expect(() => open({ tasks: folder }).tasks("train")).toThrow(
      /bad\/tests\/test.sh: in process there is no uvx, pip; play it with --env.runner docker\n.*Dockerfile: in process there is no apt-get, make.*\n2 of the tasks .* cannot be played; --env.skip/s,
    );
    expect(() => open({ tasks: folder, skip: true }).tasks("train")).toThrow(/2 of the tasks/);
    task("fine", good);
    const left = open({ tasks: folder, skip: true });
    expect(left.tasks("train").map(({ id }) => id)).toEqual(["fine"]);
    const about = terminal.describe!(terminal.options.parse({ tasks: folder }));
    expect(about[0]).toContain("2 cannot be played");
    expect(about.join("\n")).toContain("no apt-get, make");
  });

  it("whose preparation fails break the episode", () => {
    task("one", good, "FROM a\nRUN cat none\n");
    const environment = open({ tasks: folder });
    const env = environment.create() as Env;
    expect(() => env.reset(environment.tasks("train")[0]!)).toThrow(
      /task one: "cat none" failed while its machine was made ready: cat: none: No such file/,
    );
  });
});
