import { expect, it } from "vitest";
import { askEngine, EngineFailure } from "./ask.js";
import { EngineError } from "./engine.js";

/** A call that fails the given number of times before it answers. */
function failing(times: number) {
  let calls = 0;
  return {
    calls: () => calls,
    call: async (): Promise<string> => {
      calls += 1;
      if (calls <= times) throw new EngineError(`failure ${calls}`);
      return "answer";
    },
  };
}

it("repeats a failed call once, and then reports the failure", async () => {
  for (const [times, calls] of [
    [0, 1],
    [1, 2],
  ] as const) {
    const engine = failing(times);
    expect(await askEngine(engine.call)).toBe("answer");
    expect(engine.calls()).toBe(calls);
  }
  const engine = failing(5);
  const failure = askEngine(engine.call);
  await expect(failure).rejects.toThrow(EngineFailure);
  await expect(failure).rejects.toThrow(/failed twice in a row: failure 2/);
  expect(engine.calls()).toBe(2);
});
