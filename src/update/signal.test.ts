import { describe, expect, it } from "vitest";
import { pawOptions } from "../objectives/paw-options.js";
import { skippedGroups } from "./signal.js";
import { prepareUpdate, scaleWorld } from "./update.js";
import { groupsOf } from "./update-testing.js";

const episode = (reward: number, broken = false) => ({
  steps: [{ action: [Math.log(0.5)], reward }],
  broken,
});
/** Group 0 has signal; in group 1 all fail; in group 2 only a broken episode succeeds. */
const mixed = groupsOf([
  [episode(10), episode(0)],
  [episode(0), episode(0)],
  [episode(0), episode(10, true)],
]);
const failing = groupsOf([
  [episode(0), episode(0)],
  [episode(0), episode(0)],
]);

describe("groups without signal", () => {
  it("are those whose unbroken episodes all earned the same", () => {
    expect(skippedGroups(mixed, "off", false)).toEqual([false, false, false]);
    expect(skippedGroups(mixed, "groups", false)).toEqual([false, true, true]);
    expect(skippedGroups(mixed, "updates", false)).toEqual([false, false, false]);
    expect(skippedGroups(failing, "updates", false)).toEqual([true, true]);
    // One task each, and different returns across tasks: signal for a critic, none within a group.
    const singles = groupsOf([[episode(10)], [episode(0)]]);
    expect(skippedGroups(singles, "groups", false)).toEqual([true, true]);
    expect(skippedGroups(singles, "groups", true)).toEqual([false, false]);
  });
});

describe("an update", () => {
  const prepare = (groups: typeof mixed, paw: object, ownGroups = false) =>
    prepareUpdate(
      groups,
      {
        advantages: groups.map((group) =>
          group.episodes.map((e) => (e.stop === "broken" ? [] : [1])),
        ),
      },
      {
        paw: pawOptions.parse({ alpha: 1, ...paw }),
        aggregation: "token-mean",
        maxReturn: 10,
        ownGroups,
      },
    );
  const observed = (update: ReturnType<typeof prepare>) =>
    update.sequences.map(({ ids }) => ids.length === 5);

  it("leaves out the observations of skipped groups, and leaves the policy's part unchanged", () => {
    const update = prepare(mixed, { skipWithoutSignal: "groups" });
    expect(update.lambdas).toEqual([0.5, 0, 0]);
    expect(observed(update)).toEqual([true, true, false, false, false]);
    const off = prepare(mixed, {});
    expect(off.lambdas).toEqual([0.5, 1, 1]);
    expect(update.sequences.map(({ inputs }) => inputs.policyWeight![2])).toEqual(
      off.sequences.map(({ inputs }) => inputs.policyWeight![2]),
    );
    expect(prepare(failing, { skipWithoutSignal: "updates" }).summary.meanLambda).toBe(0);
  });

  it("looks for signal in the whole update if each episode is its own group", () => {
    const update = prepare(mixed, { skipWithoutSignal: "groups" }, true);
    expect(update.lambdas).toEqual([0, 1, 1, 1, 1, 0]);
    expect(prepare(failing, { skipWithoutSignal: "groups" }, true).lambdas).toEqual([0, 0, 0, 0]);
  });

  it("can have its world model scaled, and nothing else", () => {
    const update = prepare(mixed, {});
    const scaled = scaleWorld(update, 0.25);
    expect(scaled.lambdas).toEqual([0.125, 0.25, 0.25]);
    expect(scaled.summary).toEqual({
      ...update.summary,
      meanLambda: update.summary.meanLambda / 4,
    });
    update.sequences.forEach(({ inputs }, i) => {
      const { worldWeight, ...rest } = scaled.sequences[i]!.inputs;
      expect({ ...rest, worldWeight: inputs.worldWeight }).toEqual(inputs);
      expect(Array.from(worldWeight!)).toEqual(Array.from(inputs.worldWeight!, (w) => w / 4));
    });
    const off = prepare(mixed, { loss: "off" });
    expect(scaleWorld(off, 0.5).sequences).toEqual(off.sequences);
  });
});
