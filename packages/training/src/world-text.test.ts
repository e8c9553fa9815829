import type { Environment, RemoteEnv } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { expect, it } from "vitest";
import { tinyConfig } from "./testing.js";
import { textsForRun, worldTexts } from "./world-text.js";

/** Texts for a run, and how many episodes were played for them. */
async function textsOf(changes: Readonly<Record<string, unknown>>) {
  const config = tinyConfig(changes);
  const environment = openEnvironment({ ...config.env, name: String(config.env.name) });
  let played = 0;
  const counted = {
    ...environment,
    create: () => {
      played += 1;
      return environment.create();
    },
  };
  const style = promptStyle(environment.prompt, config.prompt);
  const texts = await textsForRun(config, counted, style);
  return { texts, played, anew: () => worldTexts(environment, style) };
}

it("texts of a made-up world are played once, and again for other settings", async () => {
  // Worlds of no other test: those in the same process keep texts, too.
  const world = { name: "household", rooms: 1, receptacles: 5, objects: 7, families: ["look"] };
  const first = await textsOf({ env: world });
  expect(first.played).toBeGreaterThan(600);
  const second = await textsOf({ env: world });
  expect(second.played).toBe(0);
  expect(second.texts).toEqual(await first.anew());
  const other = await textsOf({ env: { ...world, objects: 8 } });
  expect(other.played).toBeGreaterThan(600);
  expect(other.texts).not.toEqual(first.texts);
});

it("of a world that cannot be closed are the same", async () => {
  const config = tinyConfig();
  const environment = openEnvironment({ ...config.env, name: "household" });
  const style = promptStyle(environment.prompt, config.prompt);
  const create = () => {
    const close = (): never => {
      throw new Error("cannot close");
    };
    return Object.setPrototypeOf({ close }, environment.create()) as RemoteEnv;
  };
  const stubborn: Environment = { ...environment, create };
  expect(await worldTexts(stubborn, style)).toEqual(await worldTexts(environment, style));
});
