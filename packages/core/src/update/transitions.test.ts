import { describe, expect, it } from "vitest";
import type { Episode, Group } from "../rollout/episode.js";
import type { Sequence } from "../text/sequence.js";
import { actionSequences, transitionsOf } from "./transitions.js";
import { groupsOf } from "./update-testing.js";

/** A group of one step with a changed sequence. */
function changed(change: (sequence: Sequence) => Partial<Sequence>): readonly Group[] {
  const [group] = groupsOf([[{ steps: [{ action: [-1, -2], prompt: 1, observation: 1 }] }]]);
  const episode = group!.episodes[0]!;
  const step = episode.steps[0]!;
  const sequence = { ...step.sequence!, ...change(step.sequence!) };
  const steps = [{ ...step, sequence }];
  return [{ ...group!, episodes: [{ ...episode, steps } as Episode] }];
}

/** The spans from a list such as `prompt 0 1`. */
const spans = (...texts: readonly string[]): Pick<Sequence, "spans"> => ({
  spans: texts.map((text) => {
    const [kind, start, end] = text.split(" ");
    const place = { start: Number(start), end: Number(end), origin: "test" };
    return { kind: kind as "prompt" | "action" | "observation", ...place };
  }),
});

describe("transitions", () => {
  it("know where the action is, after a prompt of one token or more", () => {
    const [transition, ...others] = transitionsOf(changed(() => ({})));
    expect(others).toEqual([]);
    expect(transition).toMatchObject({ actionStart: 1, actionEnd: 3 });
    expect(actionSequences([transition!])).toEqual([
      { ids: [100, 200, 201], targets: Uint8Array.of(0, 1, 1) },
    ]);
    // An action may consist of several spans.
    const pieces = spans("prompt 0 1", "action 1 2", "action 2 3", "observation 3 4");
    expect(transitionsOf(changed(() => pieces))[0]).toMatchObject({ actionStart: 1, actionEnd: 3 });
  });

  it("know where the observation is: from its first span to its last, or nowhere", () => {
    const at = (...texts: readonly string[]) =>
      transitionsOf(changed(() => ({ ...spans(...texts), logprobs: undefined! })))[0];
    expect(at("prompt 0 1", "action 1 2", "observation 2 3", "observation 3 4")).toMatchObject({
      observationStart: 2,
      observationEnd: 4,
    });
    expect(at("prompt 0 1", "action 1 3")).toMatchObject({
      observationStart: 3,
      observationEnd: 3,
    });
  });

  it("are rejected without a prompt or an action, beyond the tokens, or out of order", () => {
    const refused = (change: Partial<Sequence>, message: RegExp) =>
      expect(() => transitionsOf(changed(() => change))).toThrow(message);
    const bounds = /expected a prompt and an action of one token or more/;
    refused(spans("action 0 2", "observation 2 4"), bounds);
    refused(spans("prompt 0 1", "observation 1 4"), bounds);
    refused(spans("prompt 0 2", "action 2 2", "observation 2 4"), bounds);
    refused(spans("prompt 0 3", "action 3 5"), bounds);
    refused(spans("prompt 0 1", "observation 1 2", "action 2 4"), /spans in the order/);
    refused({ logprobs: [-1] }, /the action has 2 tokens, but 1 log-probabilities/);
  });
});
