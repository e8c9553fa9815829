import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { keepHard, splitTriplets } from "./filter.js";
import { hasContrast, predictionGroups, rewardPredictions } from "./prediction-groups.js";
import {
  embeddingReward,
  judgeReward,
  rewardOptions,
  rougeL,
  stateDistances,
  VERDICT_REQUEST,
  verdictOf,
} from "./reward.js";
import { episode, letters, prediction } from "./testing.js";
import { tripletsOf } from "./triplet.js";

const triplets = tripletsOf([episode]);
const pair = (predicted: string, real: string) => ({ predicted, real, action: "look" });

describe("ROUGE-L", () => {
  it("is F1 of the longest common subsequence of words", () => {
    expect(rougeL("the cat sat", "the cat sat")).toBe(1);
    expect(rougeL("The cat, sat!", "the CAT sat")).toBe(1);
    // Common: "police the gunman", 3 of 4 and 3 of 4.
    expect(rougeL("police kill the gunman", "police ended the gunman")).toBe(0.75);
    // Common: "police the gunman" is not in this order: "the gunman".
    expect(rougeL("the gunman kill police", "police ended the gunman")).toBe(0.5);
    expect([rougeL("", ""), rougeL("a", ""), rougeL("", "a")]).toEqual([1, 0, 0]);
  });

  it("is symmetric, and between 0 and 1", () => {
    const text = fc.array(fc.constantFrom("a", "b", "c"), { maxLength: 8 }).map((w) => w.join(" "));
    fc.assert(
      fc.property(text, text, (a, b) => {
        expect(rougeL(a, b)).toBe(rougeL(b, a));
        expect(rougeL(a, b)).toBeLessThanOrEqual(1);
        expect(rougeL(a, a)).toBe(1);
      }),
    );
  });
});

describe("the reward by embeddings", () => {
  it("is the cosine distance against a threshold, or graded around it", async () => {
    const pairs = [pair("ab", "ab"), pair("ab", "ba"), pair("aab", "abb"), pair("aa", "bb")];
    const distances = await stateDistances(letters, pairs);
    expect(distances[0]).toBe(0);
    expect(distances[1]).toBeCloseTo(0, 6);
    expect(distances[2]).toBeCloseTo(0.2, 6);
    expect(distances[3]).toBeCloseTo(1, 6);
    const binary = embeddingReward(letters, { threshold: 0.3, graded: false });
    expect((await binary.rate(pairs)).values).toEqual([1, 1, 1, 0]);
    const graded = embeddingReward(letters, { threshold: 0.2, graded: true });
    const { values } = await graded.rate(pairs);
    expect(values[2]).toBeCloseTo(0.5, 6);
    expect(values[3]).toBe(0);
    expect(binary.name).toContain("26 dimensions");
  });

  it("is the default measure", () => {
    expect(rewardOptions.parse({ threshold: 0.1 })).toMatchObject({ name: "embedding" });
    expect(rewardOptions.parse({ name: "rouge" })).toEqual({ name: "rouge" });
    expect(() => rewardOptions.parse({ name: "rouge", threshold: 0.1 })).toThrow(/threshold/);
  });
});

describe("the reward by a judge", () => {
  it("is 1 for a yes; what is neither yes nor no is 0 and counted", async () => {
    const answers = [
      "YES",
      "<think>no, or yes?</think> No.",
      "perhaps",
      "YES. There is no difference.",
    ];
    const asked: string[] = [];
    const judge = judgeReward(async ([message]) => {
      asked.push(message!.content);
      return answers[asked.length - 1]!;
    }, "m");
    const { values, unreadable } = await judge.rate(
      answers.map((_, i) => pair(`predicted ${i}`, "real")),
    );
    expect(values).toEqual([1, 0, 0, 1]);
    expect(unreadable).toBe(1);
    expect(asked[2]).toContain("predicted 2");
    expect(asked[2]).toContain("look");
    expect(asked[2]).toContain(VERDICT_REQUEST);
  });
});

describe("rewarded predictions", () => {
  const reward = {
    name: "first letters",
    rate: async (pairs: readonly { predicted: string; real: string }[]) => ({
      values: pairs.map(({ predicted, real }) => (predicted[0] === real[0] ? 0.5 : 0)),
      unreadable: 0,
    }),
  };
  const predicted = [
    [prediction("The drawer 1 is closed."), prediction("The end"), prediction("", "empty")],
    [prediction("x", "unended"), prediction("x", "malformed"), prediction("x")],
    [prediction("", "empty"), prediction("", "empty"), prediction("no")],
  ];

  it("with the same text are measured once", async () => {
    const asked: string[] = [];
    const twice = [[prediction("yes"), prediction("yes"), prediction("no")]];
    const { rewards } = await rewardPredictions(triplets.slice(0, 1), twice, {
      name: "spy",
      async rate(pairs) {
        asked.push(...pairs.map(({ predicted }) => predicted));
        return { values: pairs.map(({ predicted }) => predicted.length / 4), unreadable: 0 };
      },
    });
    expect(asked).toEqual(["yes", "no"]);
    expect(rewards).toEqual([[0.75, 0.75, 0.5]]);
  });

  it("get 0 without an answer, 1 for the exact state, and are counted", async () => {
    const { rewards, summary } = await rewardPredictions(triplets, predicted, reward);
    expect(rewards).toEqual([
      [1, 0.5, 0],
      [0, 0, 0],
      [1, 1, 0],
    ]);
    expect(summary).toMatchObject({ predictions: 9, empty: 3, unended: 1, malformed: 1 });
    expect(summary.exact).toBeCloseTo(3 / 9, 12);
    expect(summary.meanReward).toBeCloseTo(3.5 / 9, 12);
    const groups = predictionGroups(triplets, predicted, rewards, 10);
    expect(groups.map(hasContrast)).toEqual([true, false, true]);
    expect(groups[0]!.index).toBe(10);
    expect(groups[0]!.episodes[1]).toMatchObject({ attempt: 1, return: 0.5, group: 10 });
    expect(groups[1]!.episodes[0]!.steps[0]!.valid).toBe(false);
  });
});

describe("the filter of easy samples", () => {
  const many = tripletsOf(Array.from({ length: 100 }, (_, group) => ({ ...episode, group })));

  it("draws a share, and nothing is in both parts", () => {
    const [drawn, rest] = splitTriplets(many, 0.1, 3);
    expect([drawn.length, rest.length]).toEqual([30, 270]);
    expect(new Set([...drawn, ...rest]).size).toBe(300);
    expect(splitTriplets(many, 0.1, 3)[0]).toEqual(drawn);
    expect(splitTriplets(many, 0, 3)[0]).toEqual([]);
  });

  it("keeps all hard ones, and about a tenth of the easy ones", () => {
    const rewards = many.map((_, i) => (i % 3 === 0 ? 0 : 1));
    const { kept, easy, hard } = keepHard(many, rewards, { keep: 0.1, easyReward: 0.9 }, 1);
    expect([easy, hard]).toEqual([200, 100]);
    expect(kept.filter(({ step }) => step === 0)).toHaveLength(100);
    // 200 draws of 0.1: within four standard deviations of 20.
    expect(kept.length - 100).toBeGreaterThan(3);
    expect(kept.length - 100).toBeLessThan(37);
    expect(keepHard(many, rewards, { keep: 0, easyReward: 0.9 }, 1).kept).toHaveLength(100);
    expect(keepHard(many, rewards, { keep: 1, easyReward: 0.9 }, 1).kept).toHaveLength(300);
  });
});

const yes = [
  "YES",
  "yes",
  "Yes.",
  "YES. There is no difference.",
  "Yes, no object is missing.",
  "Yes - no change.",
  "Yes it does. No detail differs.",
  "**Yes**",
  "**YES** — there is no mug in either.",
  '"Yes"',
  "`yes`",
  "VERDICT: YES",
  "Verdict: **YES**",
  "**Verdict:** yes",
  "There is no mug in the real answer, and no mug in the prediction.\nVERDICT: YES",
  "No detail is missing and no detail is added.\n\nAnswer: yes",
  "Both say so. The answer is yes.",
  "Final answer: YES.",
  '{"reason": "no difference", "verdict": "yes"}',
  "The answer is \\boxed{YES}.",
  "Nothing is missing, no thing was added.\n\nYes",
  "They agree, so yes.",
  "Is a thing missing? It is not. I would say: yes",
  "<think>No, wait: VERDICT: NO</think>YES",
  "<think>no</think>\n\nThere is no difference.\nVERDICT: YES",
  "YES or NO: YES",
  `I was told: "${VERDICT_REQUEST}"\nVERDICT: YES`,
];

const no = [
  "NO",
  "no",
  "No.",
  "NO. Yes would need the mug to be there.",
  "No, the mug is missing.",
  "No it does not say where the mug is.",
  "No: the drawer is open.",
  "No\n\nThe prediction lacks the mug.",
  "**No**",
  "**No.** It names yesterday's room.",
  "Answer: no",
  "Answer: **No**",
  "Verdict - NO",
  "At first sight yes, but the drawer is closed.\nVERDICT: NO",
  "One could say yes to most of it.\n\nAnswer: no",
  "The prediction adds a knife. So no.",
  "The prediction adds a knife. No!",
  "The prediction adds a knife; the answer is no.",
  "Yes, the room is right. But the mug is missing.\nFinal verdict: NO",
  "<think>YES</think>NO",
];

const neither = [
  "",
  "I cannot say.",
  "There is no difference.",
  "No difference between the two.",
  "No objects are missing.",
  "No longer there.",
  "No. 5 is missing from the list.",
  "Yes and no.",
  "Yes/No",
  "YES or NO",
  "VERDICT: YES or NO",
  "Answer with YES or NO.",
  "YES\nNO",
  "VERDICT: YES\nVERDICT: NO",
  "Yes, most of it. But the mug? No.",
  "The notes say nothing about yesterday.",
  "Nothing is known. Noise.",
  "<think>VERDICT: YES, I think, but let me",
  "True",
];

describe("the verdict of a judge", () => {
  it.each(yes)("yes: %j", (answer) => expect(verdictOf(answer)).toBe(true));
  it.each(no)("no: %j", (answer) => expect(verdictOf(answer)).toBe(false));
  it.each(neither)("neither: %j", (answer) => expect(verdictOf(answer)).toBeUndefined());
});
