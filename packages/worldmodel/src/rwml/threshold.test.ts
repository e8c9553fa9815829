import { findEnvKind } from "@pawl/core/envs/registry.js";
import { createRandom } from "@pawl/core/random.js";
import { distancesOf, thresholdPage } from "@pawl/ui/report/threshold-page.js";
import type { ThresholdView } from "@pawl/ui/report/views.js";
import { describe, expect, it } from "vitest";
import { stateDistances } from "./reward.js";
import { letters } from "./testing.js";
import {
  alter,
  effectOf,
  pairKinds,
  paraphrase,
  proposeThresholds,
  respell,
  statePairs,
} from "./threshold.js";

const household = findEnvKind("household");
const environment = household.open(household.options.parse({}));

describe("rewording", () => {
  const random = createRandom(1);
  const text = "On shelf 1: bottle 1, knife 2, watch 1. You hold nothing.";

  it("paraphrases, with lists in another order", () => {
    const other = paraphrase(text, random)!;
    expect(other).toMatch(/Your hands are empty\.$/);
    for (const thing of ["bottle 1", "knife 2", "watch 1"]) expect(other).toContain(thing);
    expect(paraphrase("zzz", random)).toBeUndefined();
    expect(paraphrase("You see a bed 1, a desk 2, and a mug 3.", random)).toMatch(
      /^You notice (a (bed|desk|mug) \d, ){2}and a (bed|desk|mug) \d\.$/,
    );
    expect(respell(text)).toBe(text.toLowerCase().slice(0, -1));
  });

  it("replaces one fact by one from another state", () => {
    const altered = alter(text, ["In sink 1: soap 3."], random)!;
    expect(altered).toMatch(/sink 1|soap 3/);
    expect(altered).not.toBe(text);
    expect(alter("Alpha beta", ["Gamma delta"], random)).toMatch(/Gamma|delta/);
    expect(alter(text, [text], random)).toBeUndefined();
  });
});

describe("pairs of states", () => {
  const options = { split: "train", tasks: 6, steps: 6, seed: 1 };

  it("come in all kinds, differ, and are reproducible", async () => {
    const pairs = await statePairs(environment, options);
    const kinds = new Set(pairs.map(({ kind }) => kind));
    expect([...kinds].sort()).toEqual([...pairKinds.right, ...pairKinds.wrong].sort());
    expect(pairs.filter(({ real, predicted }) => real === predicted)).toEqual([]);
    expect(await statePairs(environment, options)).toEqual(pairs);
  });

  it("have nothing about other actions in a world that lists none", async () => {
    const silent = {
      ...environment,
      create: () => Object.assign(environment.create(), { admissibleActions: undefined }),
    } as unknown as typeof environment;
    const pairs = await statePairs(silent, options);
    const kinds = new Set(pairs.map(({ kind }) => kind));
    expect([...kinds]).toContain("other moment");
    expect([...kinds]).not.toContain("other action");
  });

  it("may have custom paraphrases", async () => {
    const paraphrases = [{ state: "The lamp is on.", paraphrase: "It is bright." }];
    const pairs = await statePairs(environment, { ...options, paraphrases });
    expect(pairs.filter(({ kind }) => kind === "paraphrase")).toEqual([
      { kind: "paraphrase", real: "The lamp is on.", predicted: "It is bright." },
    ]);
    await expect(statePairs(environment, { ...options, tasks: 1, steps: 1 })).rejects.toThrow(
      /showed 1 different states in 1 tasks/,
    );
  });
});

describe("a threshold", () => {
  const distances = {
    same: [0, 0.01],
    paraphrase: [0.1, 0.2, 0.2],
    altered: [0.15, 0.6],
    "other action": [0.5, 0.7],
    "other moment": [],
  };

  it("best separates right from wrong; the strict one rejects altered states", () => {
    const { best, strict } = proposeThresholds(distances);
    expect(best.threshold).toBeCloseTo(0.35, 12);
    expect(best.accepted).toMatchObject({ paraphrase: 1, altered: 0.5, "other action": 0 });
    expect(best.accuracy).toBeCloseTo((1 + 1 - 0.25) / 2, 12);
    expect(strict.threshold).toBeCloseTo(0.125, 12);
    expect(effectOf(distances, 0.125).accepted.paraphrase).toBeCloseTo(1 / 3, 12);
    const none = { same: [], paraphrase: [], altered: [], "other action": [], "other moment": [] };
    expect(() => proposeThresholds(none)).toThrow(/there are none/);
  });

  it("is shown with curves, shares and examples, all text escaped", async () => {
    const pairs = await statePairs(environment, { split: "train", tasks: 4, steps: 5, seed: 1 });
    const measured = await stateDistances(letters, pairs);
    const labelled = pairs.map((pair, i) => ({ ...pair, distance: measured[i]! }));
    const { best, strict } = proposeThresholds(distancesOf(labelled));
    const page = thresholdPage({
      environment: "<house>",
      encoder: letters.name,
      dimension: 26,
      best,
      strict,
      pairs: labelled,
    });
    expect(page).not.toContain("<house>");
    const [, data] = /id="data">(.*?)<\/script>/s.exec(page)!;
    const view = JSON.parse(data!) as ThresholdView;
    expect(view.title).toBe("Distances of states: <house>");
    expect(view.curves).toHaveLength(5);
    for (const { points } of view.curves)
      expect([points[0], points.at(-1)![1]]).toEqual([[0, 0], 1]);
  });
});
