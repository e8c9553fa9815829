import { describe, expect, it } from "vitest";
import { type Candidate, rateFactor, type Trial, type TunePlan, tune } from "./tune.js";

const given: Candidate = { rate: 0.0025, imitation: 100, groupSize: 8 };
const plan: TunePlan = { given, imitates: true, updates: 36, early: 12, seed: 7 };
const EPISODES = 400;

/**
 * A stand-in for the runs: success is a function of candidate and seed. `rounds` is how many rounds
 * there is time for, `judges` how many seeds can judge.
 */
function scripted(
  success: (candidate: Candidate, seed: number, updates: number) => number | "fails",
  { rounds = 99, judges = 1 } = {},
) {
  const calls: { readonly trials: readonly Trial[]; readonly updates: number }[] = [];
  const outcomesOf = (trials: readonly Trial[], updates: number) =>
    trials.map(({ candidate, seed }) => {
      const share = success(candidate, seed, updates);
      return share === "fails"
        ? { failed: "NaN" }
        : { successes: Math.round(share * EPISODES), episodes: EPISODES };
    });
  let [left, judging] = [rounds, judges];
  return {
    calls,
    runner: {
      train: async (trials: readonly Trial[], updates: number) => {
        if (left-- <= 0) return undefined;
        calls.push({ trials, updates });
        return outcomesOf(trials, updates);
      },
      judge: async (trials: readonly Trial[]) =>
        judging-- <= 0 ? undefined : outcomesOf(trials, plan.updates),
    },
  };
}

/** Success that falls with the distance from a rate, and is 0 above ten times it. */
const peak =
  (rate: number, top = 0.5) =>
  (candidate: Candidate): number =>
    candidate.rate > 3 * rate ? 0 : top - 0.1 * Math.abs(Math.log10(candidate.rate / rate));

describe("the search", () => {
  it("steps by round factors of about the root of ten", () => {
    expect([-3, -2, -1, 0, 1, 2, 3].map(rateFactor)).toEqual([0.03, 0.1, 0.3, 1, 3, 10, 30]);
  });

  it("looks at five rates, keeps the better half, and decides with a second seed", async () => {
    const { runner, calls } = scripted(({ rate }) => 0.4 + 0.01 * Number(rate === 0.0025));
    const { chosen, rounds, isCut } = await tune({ ...plan, imitates: false }, runner);
    expect(chosen).toEqual(given);
    expect(isCut).toBe(false);
    expect(
      rounds
        .filter(({ about }) => about === "learning rate")
        .map(({ updates, seeds, tried, kept }) => [updates, seeds, tried.length, kept.length]),
    ).toEqual([
      [12, [7], 5, 3],
      [36, [7], 3, 2],
      [36, [7, 8], 2, 1],
    ]);
    expect(calls[0]!.trials.map(({ candidate }) => candidate.rate)).toEqual([
      0.00025, 0.00075, 0.0025, 0.0075, 0.025,
    ]);
    expect(calls[2]!.trials).toHaveLength(4);
    expect(rounds.map(({ about }) => about)).not.toContain("imitation");
  });

  it("finds a rate a hundred times off to either side, by going on while it helps", async () => {
    for (const [rate, found] of [
      [2.5e-5, 2.5e-5],
      [2.5e-1, 2.5e-1],
    ] as const) {
      const { runner } = scripted(peak(rate));
      expect((await tune(plan, runner)).chosen.rate).toBeCloseTo(found, 10);
    }
    // Where everything collapses, too.
    const { runner } = scripted(({ rate }) => (rate > 3e-5 ? 0 : 0.4));
    expect((await tune(plan, runner)).chosen.rate).toBe(0.000025);
  });

  it("leaves out at once what is clearly worse, and does not compare one with itself", async () => {
    const { runner, calls } = scripted(({ rate }) => (rate < 0.0005 && rate > 0.0001 ? 0.4 : 0.05));
    const { chosen } = await tune(plan, runner);
    expect(chosen.rate).toBe(0.00025);
    // After the first look, only the next rate is compared with it.
    expect(calls[1]!.trials.map(({ candidate }) => candidate.rate)).toEqual([0.00025, 0.000075]);
    expect(calls[1]!.updates).toBe(12);
  });

  it("then searches imitation and group size, each from the best so far", async () => {
    const { runner } = scripted(
      ({ rate, imitation, groupSize }) =>
        (rate === 0.0025 ? 0.2 : 0) + (imitation === 200 ? 0.2 : 0) + (groupSize === 4 ? 0.2 : 0),
    );
    const { chosen, judged } = await tune(plan, runner);
    expect(chosen).toEqual({ rate: 0.0025, imitation: 200, groupSize: 4 });
    expect(judged).toEqual([
      {
        seed: 9,
        chosen: { successes: 240, episodes: EPISODES },
        given: { successes: 80, episodes: EPISODES },
      },
    ]);
  });

  it("takes the leader of the last whole round when time is up, and says so", async () => {
    const success = ({ rate, imitation }: Candidate): number =>
      (rate === 0.00025 ? 0.2 : 0) + (imitation === 200 ? 0.3 : 0);
    const cut = await tune(plan, scripted(success, { rounds: 1, judges: 0 }).runner);
    expect(cut).toMatchObject({ chosen: { rate: 0.00025, imitation: 100 }, isCut: true });
    expect(cut.judged).toEqual([]);
    const none = await tune(plan, scripted(success, { rounds: 0 }).runner);
    expect(none).toMatchObject({ chosen: given, rounds: [], isCut: true, judged: [] });
  });

  it("decides the same when it goes on, however often it was stopped", async () => {
    const noisy = ({ rate, imitation, groupSize }: Candidate, seed: number, updates: number) =>
      0.3 + 0.2 * Math.abs(Math.sin(1e5 * rate + imitation + groupSize + seed + updates));
    const whole = await tune(plan, scripted(noisy, { rounds: 99 }).runner);
    for (let rounds = 1; rounds < whole.rounds.length; rounds++) {
      const part = await tune(plan, scripted(noisy, { rounds }).runner);
      expect(part.rounds).toEqual(whole.rounds.slice(0, rounds));
    }
  });

  it("leaves out what fails, and judges the given settings alone if nothing is better", async () => {
    const best = peak(given.rate);
    const { runner } = scripted(
      (candidate) =>
        candidate.rate > given.rate
          ? "fails"
          : best(candidate) -
            0.1 * Number(candidate.imitation !== 100 || candidate.groupSize !== 8),
      { judges: 9 },
    );
    const { chosen, rounds, judged } = await tune(plan, runner);
    expect(chosen).toEqual(given);
    expect(rounds[0]!.tried.at(-1)).toMatchObject({ score: undefined, failed: "NaN" });
    expect(rounds[0]!.why).toMatch(/2 failed/);
    expect(judged).toHaveLength(5);
    expect(judged[0]).not.toHaveProperty("given");
  });
});
