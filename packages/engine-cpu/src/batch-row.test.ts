import { createRandom } from "@pawl/core/random.js";
import { describe, expect, it } from "vitest";
import { chooseToken } from "./batch-row.js";

const probabilities = Float32Array.of(0.1, 0, 0.4, 0.2, 0.3);

function frequencies(options: { topK?: number; topP?: number; temperature?: number }) {
  const random = createRandom(11);
  const counts = new Array<number>(probabilities.length).fill(0);
  const logprobs = new Map<number, number>();
  const draws = 20_000;
  for (let i = 0; i < draws; i++) {
    const choice = chooseToken(probabilities, { maxTokens: 1, ...options }, random);
    counts[choice.token]! += 1 / draws;
    logprobs.set(choice.token, choice.sampledLogprob);
  }
  return { counts, logprobs };
}

describe("the choice of a token", () => {
  it.each([
    ["everything", {}, [0.1, 0, 0.4, 0.2, 0.3]],
    ["the two most probable", { topK: 2 }, [0, 0, 4 / 7, 0, 3 / 7]],
    ["the tokens that reach a mass", { topP: 0.65 }, [0, 0, 4 / 7, 0, 3 / 7]],
    ["the one that reaches it too", { topP: 0.71 }, [0, 0, 4 / 9, 2 / 9, 3 / 9]],
    ["the smaller of both cuts", { topK: 1, topP: 0.9 }, [0, 0, 1, 0, 0]],
    ["the most probable at temperature 0", { temperature: 0 }, [0, 0, 1, 0, 0]],
  ])("keeps %s, renormalised", (_, options, expected) => {
    const { counts, logprobs } = frequencies(options);
    expected.forEach((p, token) => {
      // Five standard deviations of a frequency over 20,000 draws.
      expect(Math.abs(counts[token]! - p)).toBeLessThan(0.018);
      if (p > 0) expect(logprobs.get(token)).toBeCloseTo(Math.log(p), 5);
      else expect(counts[token]).toBe(0);
    });
  });

  it("takes the last possible token if rounding leaves the sum below one", () => {
    const short = Float32Array.of(0.5, 0.4999, 0);
    const random = { ...createRandom(0), next: () => 0.99999 };
    expect(chooseToken(short, { maxTokens: 1 }, random).token).toBe(1);
  });
});
