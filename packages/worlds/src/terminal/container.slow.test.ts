import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RemoteEnv } from "@pawl/core/envs/env.js";
import { callText } from "@pawl/core/text/tool.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasBash } from "./bash-testing.js";
import { openContainer, rewardOf } from "./container.js";
import { readHarborFolder } from "./harbor-folder.js";
import { writeHarborTask } from "./harbor-write.js";
import { madeTasks, taskKinds } from "./tasks.js";
import { terminal } from "./terminal.js";

/**
 * No Docker: a program of that name that keeps what it is told in a log, and runs what it should
 * run in a container in this machine's bash, in a folder in place of `/`. It is given only the tasks
 * made here.
 */
const FAKE_DOCKER = `#!/bin/bash
here=$(dirname "$0")
echo "$*" | head -n 1 >> "$here/log"
verb=$1; shift
case $verb in
  image) [ -e "$here/images/$2" ] ;;
  build)
    mkdir -p "$here/images/$3/logs/verifier" "$here/images/$3/tests"
    cp -r "$4/files/." "$here/images/$3" ;;
  run)
    n=$(ls "$here/containers" | wc -l)
    while [ $# -gt 2 ]; do shift; done
    cp -r "$here/images/$1" "$here/containers/c$n"; echo "c$n" ;;
  cp)
    id=\${2%%:*}
    cp -r "$1" "$here/containers/$id/tests"
    sed -i "s#/logs/verifier#$here/containers/$id/logs/verifier#g" "$here/containers/$id/tests/test.sh" ;;
  exec)
    while [ "$1" = --env ]; do export "$2"; shift 2; done
    root=$here/containers/$1; shift 2
    cd "$root/app" || exit 1
    args=("\${@//\\/tests/$root/tests}")
    exec bash "\${args[@]//\\/logs\\/verifier/$root/logs/verifier}" ;;
  rm) rm -rf "$here/containers/$2" ;;
esac
`;

const write = (command: string, actions: "text" | "tool"): string =>
  actions === "text" ? command : callText({ tool: "bash", arguments: { command } });

describe.skipIf(!hasBash)("a task in a container, with a fake docker", () => {
  let folder: string;
  const before = process.env.PATH;
  const log = () => readFileSync(join(folder, "log"), "utf8");

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "pawl-docker-"));
    mkdirSync(join(folder, "containers"));
    writeFileSync(join(folder, "docker"), FAKE_DOCKER);
    chmodSync(join(folder, "docker"), 0o755);
    process.env.PATH = `${folder}:${before}`;
  });
  afterAll(() => {
    process.env.PATH = before;
    rmSync(folder, { recursive: true, force: true });
  });

  it("is solved by its solution alone, and leaves nothing behind", async () => {
    const source = madeTasks({ seed: 3, difficulty: 2, kinds: taskKinds });
    const tasks = source.lists.train!().slice(0, 8).map(source.load);
    for (const made of tasks) {
      await writeHarborTask(folder, made);
      const task = readHarborFolder(folder, made.id);
      const container = await openContainer(task, "docker");
      expect(await container.score(), made.instruction).toBeLessThan(1);
      for (const command of made.solution) await container.run(command);
      expect(await container.score(), made.instruction).toBe(1);
      await container.close();
    }
    expect(log()).toMatch(/run --detach --rm .*--network none .*--workdir \/app/);
    expect(log()).toContain("rm --force c0");
  });

  it.each(["text", "tool"] as const)("is played as a world, acted on by %s", async (actions) => {
    const tasks = join(folder, `tasks-${actions}`);
    const source = madeTasks({ seed: 4, difficulty: 1, kinds: ["chain"] });
    for (const made of source.lists.test!().slice(0, 2).map(source.load))
      await writeHarborTask(tasks, made);
    const options = terminal.options.parse({ tasks, runner: "docker", actions });
    terminal.ready!(options);
    const environment = terminal.open(options);
    for (const task of environment.tasks("test")) {
      const env = environment.create() as RemoteEnv;
      expect(await env.reset(task, 0)).toMatch(/^In .*: .*\.txt/);
      let result = await env.step(write("nothing-here", actions));
      expect(result).toMatchObject({ done: false, info: { valid: false } });
      while (!result.done) result = await env.step(environment.expert!(env));
      expect(result).toMatchObject({ reward: 1, info: { success: true, score: 1 } });
      await env.reset(task, 0);
      expect(await env.step(write("exit", actions))).toMatchObject({ reward: 0, done: true });
      await env.close();
    }
    expect(readdirSync(join(folder, "containers"))).toEqual([]);
  });

  it("keeps its folder between commands, also after exit, and says what went wrong", async () => {
    const container = await openContainer(readHarborFolder(folder, "train/0"), "docker");
    expect(await container.run("mkdir x && cd x")).toEqual({ output: "", code: 0 });
    expect(await container.run("pwd; cd ..; exit 3")).toMatchObject({ code: 3 });
    expect(await container.run("basename $PWD")).toEqual({ output: "app\n", code: 0 });
    expect(await container.run("echo one; echo two >&2; echo three")).toMatchObject({
      output: "one\ntwo\nthree\n",
    });
    const late = container.run("sleep 60", AbortSignal.timeout(300));
    await expect(late).rejects.toThrow(/docker exec took too long/);
    await container.close();
  });
});

describe("a test's reward", () => {
  it("is read as Harbor reads it", () => {
    expect(rewardOf("", "0.5\n", "one")).toBe(0.5);
    expect(rewardOf("0.25", "1", "one")).toBe(0.25);
    expect(rewardOf('{"reward": 0.75, "style": 0}', "", "one")).toBe(0.75);
    expect(rewardOf('{"passed": 1}', "", "one")).toBe(1);
  });

  it("is missed by name", () => {
    expect(() => rewardOf("", "", "one")).toThrow(/one: its test wrote no .*reward.txt/);
    expect(() => rewardOf("", "nan", "one")).toThrow(/wrote "nan" as its reward/);
    expect(() => rewardOf('{"a": 1, "b": 0}', "", "one")).toThrow(/without one number named/);
    expect(() => rewardOf("{", "", "one")).toThrow(/no JSON/);
  });
});
