import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { correctionsNotice } from "@pawl/training/recorded-config.js";
import { replayRun } from "@pawl/training/replay.js";
import { trainRun } from "@pawl/training/run.js";
import { tinyConfig } from "@pawl/training/testing.js";
import { describe, expect, it } from "vitest";
import { openEnvironment } from "../envs/open.js";
import type { Group } from "../rollout/episode.js";
import { randomPolicy } from "../rollout/policies/random.js";
import { rollout } from "../rollout/rollout.js";
import { readManifest, writeManifest } from "../runs/manifest.js";
import { openRun } from "../runs/run-folder.js";
import { promptStyle } from "../text/prompt.js";
import { buildTokenizer } from "../text/tokenizer-builder.js";
import { checkCorrections, correct, correctEpisodes, correctionOptions } from "./corrections.js";
import { imitationSequences } from "./sft.js";

const environment = openEnvironment({ name: "household", rooms: 1, receptacles: 4, objects: 3 });
const style = promptStyle(environment.prompt, { style: "compact", history: "all" });
const setup = { environment, style, stepLimit: 20, seed: 5 };
const options = (changes: object) =>
  correctionOptions.parse({ episodes: 100, teacher: "seeker", ...changes });

/** Random attempts: most fail. */
async function attempts(): Promise<readonly Group[]> {
  return rollout({
    environment,
    style,
    policy: randomPolicy(),
    tasks: environment.tasks("train").slice(0, 6),
    groupSize: 4,
    seed: 1,
    stepLimit: 12,
  });
}

const key = ({ group, attempt }: { group: number; attempt: number }) => `${group}.${attempt}`;

describe("corrections", () => {
  it("follow the learner up to some step, then the teacher to the goal", async () => {
    const groups = await attempts();
    const failed = groups.flatMap(({ episodes }) => episodes.filter(({ success }) => !success));
    expect(failed.length).toBeGreaterThan(10);
    const corrected = await correctEpisodes(groups, options({}), setup);
    // Each failed episode once; successful ones are left alone.
    expect(corrected.map(key).sort()).toEqual(failed.map(key).sort());
    const kept = corrected.map((episode) => {
      const own = failed.find((one) => key(one) === key(episode))!;
      const count = episode.steps.filter(({ strayed }) => strayed).length;
      expect(episode.steps.slice(0, count).map(({ action }) => action)).toEqual(
        own.steps.slice(0, count).map(({ action }) => action),
      );
      expect(episode.steps.slice(count).every(({ strayed }) => strayed === undefined)).toBe(true);
      expect(episode.steps.length).toBeGreaterThan(count);
      return count;
    });
    expect(Math.min(...kept)).toBe(0);
    expect(Math.max(...kept)).toBeGreaterThan(8);
    // The seeker needs fewer than twenty steps from nearly everywhere.
    const solved = corrected.filter(({ success }) => success).length;
    expect(solved / corrected.length).toBeGreaterThan(0.7);
  });

  it("show the goal and the start, also where the learner took the first step", async () => {
    const groups = await attempts();
    const corrected = await correctEpisodes(groups, options({}), setup);
    expect(corrected.filter(({ steps }) => steps[0]!.strayed).length).toBeGreaterThan(5);
    for (const { goal, firstObservation, steps } of corrected)
      for (const { prompt } of steps) {
        const text = prompt.map((piece) => piece.text).join("");
        expect(text).toContain(goal);
        expect(text).toContain(firstObservation);
      }
  });

  it("can be limited to groups without a success, and to the number asked for", async () => {
    const groups = await attempts();
    const [first] = groups;
    const saved = [{ ...first!.episodes[0]!, success: true }, ...first!.episodes.slice(1)];
    const changed = [{ ...first!, episodes: saved }, ...groups.slice(1)];
    const from = async (which: string) =>
      new Set(
        (await correctEpisodes(changed, options({ from: which }), setup)).map(({ group }) => group),
      );
    expect((await from("episodes")).has(0)).toBe(true);
    expect((await from("groups")).has(0)).toBe(false);
    expect(await correctEpisodes(groups, options({ episodes: 3 }), setup)).toHaveLength(3);
    expect(await correctEpisodes(groups, options({ episodes: 0 }), setup)).toEqual([]);
  });

  it("may be the best attempt of a group in which others failed", async () => {
    const [a, b, c] = await attempts();
    const as = (group: Group, outcomes: readonly [boolean, number][]): Group => ({
      ...group,
      episodes: group.episodes.map((episode, i) => ({
        ...episode,
        success: outcomes[i]![0],
        return: outcomes[i]![1],
      })),
    });
    const mixed = as(a!, [
      [false, 0],
      [true, 9],
      [true, 10],
      [true, 10],
    ]);
    const [, , third, fourth] = mixed.episodes;
    const shorter = { ...fourth!, hint: 1, steps: third!.steps.slice(0, 4) };
    const groups = [
      { ...mixed, episodes: [...mixed.episodes.slice(0, 3), shorter] },
      as(b!, [
        [false, 0],
        [false, 0],
        [false, 0],
        [false, 0],
      ]),
      as(c!, [
        [true, 10],
        [true, 10],
        [true, 10],
        [true, 10],
      ]),
    ];
    const [best, ...others] = await correctEpisodes(groups, options({ teacher: "best" }), setup);
    expect(others).toEqual([]);
    expect(key(best!)).toBe(key(shorter));
    // Neither a teacher's first step nor what was refused is imitated.
    expect(best!.steps.map(({ strayed = false }) => strayed)).toEqual(
      shorter.steps.map(({ valid }, at) => at === 0 || !valid),
    );
    expect(() =>
      checkCorrections(options({ teacher: "best", from: "groups" }), environment),
    ).toThrow(/corrections.teacher best: .*leave corrections.from out/);
    checkCorrections(options({ teacher: "best" }), { ...environment, expert: undefined });
  });

  it("teach the teacher's actions and nothing else", async () => {
    const groups = await attempts();
    const episodes = await correctEpisodes(groups, options({ episodes: 4 }), setup);
    const texts = episodes.flatMap(({ steps }) =>
      steps.flatMap(({ prompt, response, observation }) => [
        ...prompt.map(({ text }) => text),
        response,
        observation,
      ]),
    );
    const tokenizer = buildTokenizer(texts);
    const whole = { ...setup, tokenizer, maxTokens: 10_000 };
    const made = (await correct(groups, options({ episodes: 4, weight: 0.3 }), whole))!;
    expect(made).toMatchObject({ episodes: 4, weight: 0.3 });
    const weights = (
      sequences: readonly { inputs: Readonly<Record<string, ArrayLike<number>>> }[],
    ) => sequences.flatMap(({ inputs }) => Array.from(inputs.weight!)).filter((w) => w > 0).length;
    const own = episodes.flatMap((episode) =>
      imitationSequences(
        { ...episode, steps: episode.steps.filter(({ strayed }) => !strayed) },
        { tokenizer, style },
        { observationWeight: 0, randomActions: true },
      ),
    );
    expect(weights(made.sequences)).toBe(weights(own));
    // Sequences too long for the engine are left out.
    expect(await correct(groups, options({ episodes: 4 }), { ...whole, maxTokens: 10 })).toBe(
      undefined,
    );
  });

  it("need a teacher that the environment has", () => {
    const { seeker: _, ...without } = environment;
    expect(() => checkCorrections(options({}), without)).toThrow(
      "corrections.teacher: household has no seeker to take over; name another teacher, or set corrections.episodes to 0",
    );
    expect(() => checkCorrections(options({ episodes: 0 }), without)).not.toThrow();
  });

  it("are part of the update: recorded, and reproduced by replay", async () => {
    const folder = join(mkdtempSync(join(tmpdir(), "pawl-corrections-")), "run");
    const corrections = { episodes: 2, teacher: "seeker", weight: 0.5 };
    await trainRun(tinyConfig({ updates: 1, corrections }), { folder });
    const run = openRun(folder, (message) => expect.fail(message));
    const line = run.metrics().find(({ update }) => update === 0)!;
    expect(line["corrections.episodes"]).toBe(2);
    expect(line["corrections.loss"]).toBeGreaterThan(0);
    for await (const update of replayRun(run, { losses: true, tolerance: 1e-3 })) {
      expect(update.divergences).toEqual([]);
      expect(update.compared).toContain("corrections.loss");
      expect(update.compared).toContain("gradNorm");
    }
    // As recorded before corrections showed the goal in every step.
    const manifest = readManifest(folder);
    const { shuffle: _, ...evaluation } = manifest.config.evaluation as { shuffle: boolean };
    writeManifest(folder, { ...manifest, config: { ...manifest.config, evaluation } });
    expect(correctionsNotice(folder)).toMatch(/did not show the goal where the learner took/);
    for await (const update of replayRun(run, { losses: true, tolerance: 1e-3 })) {
      expect(update.divergences).toEqual([]);
      expect(update.compared).not.toContain("corrections.loss");
    }
  });
});
