/** Some of what was recorded from the originals; `.ci/run` replays all of it. */
import { createReadStream, existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { createGunzip } from "node:zlib";
import type { Env, Environment } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { beforeAll, describe, expect, it } from "vitest";
import { openDomain } from "./domains.js";
import { evaluate } from "./evaluate.js";
import { taskSource } from "./tasks.js";

const FOLDER = "../shared/data/tau";
const there = existsSync(FOLDER);

async function firstLines(name: string, count: number): Promise<readonly string[]> {
  const file = createReadStream(`${FOLDER}/golden-${name}.jsonl.gz`).pipe(createGunzip());
  const lines: string[] = [];
  for await (const line of createInterface({ input: file })) {
    lines.push(line);
    if (lines.length === count) break;
  }
  return lines;
}

const open = (domain: string, user = "scripted"): Environment =>
  openEnvironment({ name: "tau", data: `${FOLDER}/data`, domain, user });

describe.skipIf(!there)(`the originals${there ? "" : ` (skipped: no ${FOLDER})`}`, () => {
  let environment: Environment;
  beforeAll(() => {
    environment = open("tau2-mock");
  });

  it("count the state of tasks whose reference has no call", () => {
    const domain = openDomain(`${FOLDER}/data`, "tau2-retail");
    const tasks = taskSource(domain);
    for (const id of ["24", "57"]) {
      const task = tasks.find("base", id);
      expect(task.reference).toEqual([]);
      const { breakdown, reward } = evaluate(domain.fresh, task, [], true);
      expect([breakdown, reward]).toEqual([{ DB: 1 }, 1]);
    }
  });

  it.each([
    ["tau2_mock", 10],
    ["tau2_extra", 5],
    ["tau2_telecom", 4],
    ["tau2_retail", 2],
    ["tau1_retail", 3],
    ["tau1_airline", 1],
  ])("%s is reproduced", async (name, count) => {
    const lines = await firstLines(name, count);
    const result = await environment.replayRecords!([], lines);
    expect(result.mismatches).toEqual([]);
    expect(result.traces).toBe(count);
    expect(result.states).toBeGreaterThan(count);
  });

  it("a difference is found", async () => {
    const [line] = await firstLines("tau2_mock", 1);
    const broken = line!.replace('"error": false', '"error": true');
    expect((await environment.replayRecords!([], [broken])).mismatches).toHaveLength(1);
  });

  it.each([
    ["tau2-retail", "scripted", "test"],
    ["tau1-airline", "scripted", "test"],
    ["tau2-telecom", "scripted", "small"],
    ["tau2-telecom", "none", "small"],
  ])("%s with user: %s is solved by its expert", (domain, user, split) => {
    const world = open(domain, user);
    for (const task of world.tasks(split).slice(0, 5)) {
      const env = world.create() as Env;
      env.reset(task, 0);
      let last = env.step(world.expert!(env));
      while (!last.done) last = env.step(world.expert!(env));
      expect(last.info.success, task.id).toBe(true);
    }
  });
});
