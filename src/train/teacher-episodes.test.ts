import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { openEnvironment } from "../envs/open.js";
import { createRun } from "../runs/run-folder.js";
import { promptStyle } from "../text/prompt.js";
import { teacherEpisodes } from "./teacher-episodes.js";
import { tinyConfig } from "./testing.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-teacher-"));
afterAll(() => rmSync(folder, { recursive: true }));

const TASKS = 2;

function play(warmStart: object) {
  const config = tinyConfig({ warmStart });
  const opened = openEnvironment({
    ...config.env,
    families: ["pick"],
    name: String(config.env.name),
  });
  const environment = { ...opened, tasks: () => opened.tasks(config.split).slice(0, TASKS) };
  const style = promptStyle(environment.prompt, config.prompt);
  return teacherEpisodes({ environment, style }, config);
}

describe("the teacher's episodes", () => {
  it("are as many as asked for, with other random actions if a task is repeated", async () => {
    const episodes = await play({ episodes: TASKS + 1, epsilon: 0.5 });
    expect(episodes).toHaveLength(TASKS + 1);
    const [first, again] = [episodes[0]!, episodes[TASKS]!];
    expect(again.task).toEqual(first.task);
    expect(again.steps.map(({ action }) => action)).not.toEqual(first.steps.map((s) => s.action));
  });

  it("may be recorded ones, of the same world and the same prompts", async () => {
    const { env, prompt } = tinyConfig({});
    const played = await play({ episodes: 5, epsilon: 0.5 });
    const broken = { ...played[0]!, stop: "broken" as const, error: "gone" };
    const record = (name: string, config: Readonly<Record<string, unknown>>): string => {
      const path = join(folder, name);
      const run = createRun({ folder: path, kind: "rollout", seed: 0, config }, () => undefined);
      run.recordEpisodes([broken, ...played]);
      run.finish("done");
      return path;
    };
    const run = record("same", { env, prompt });
    expect(await play({ episodes: 4, runs: [run] })).toEqual(played.slice(0, 4));
    await expect(play({ episodes: 6, runs: [run] })).rejects.toThrow(/is 6, but .* hold 5/);
    const runs = [record("elsewhere", { env: { name: "webshop" }, prompt })];
    await expect(play({ episodes: 1, runs })).rejects.toThrow(/played in webshop; expected/);
    const others = [record("otherwise", { env, prompt: { ...prompt, history: 7 } })];
    await expect(play({ episodes: 1, runs: others })).rejects.toThrow(/"history":7.*; expected/);
  });
});
