import { setImmediate } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { endedByEscaped, runOwned } from "./escaped-errors.js";

// Errors that really escape are tried in tests/attacks/agents.apart.test.ts, in processes of their own.

const EVENTS = ["uncaughtException", "unhandledRejection"] as const;
const listeners = (): readonly number[] => EVENTS.map((event) => process.listenerCount(event));
const plus = (counts: readonly number[], more: number): readonly number[] =>
  counts.map((count) => count + more);

describe("listening to errors that escape", () => {
  it("begins and ends with the work that programs are run in", async () => {
    const before = listeners();
    await endedByEscaped(undefined, async () => {
      expect(listeners()).toEqual(plus(before, 1));
      await runOwned(() => expect(listeners()).toEqual(plus(before, 1)));
      // What a program left behind may fail later.
      expect(listeners()).toEqual(plus(before, 1));
      await runOwned(() => undefined);
      expect(listeners()).toEqual(plus(before, 1));
    });
    expect(listeners()).toEqual(before);
  });

  it("ends with the last of several works, also if they fail", async () => {
    const before = listeners();
    let end: () => void = () => undefined;
    const first = endedByEscaped(undefined, async () => {
      await new Promise<void>((resolve) => {
        end = resolve;
      });
    });
    const second = endedByEscaped(undefined, () => runOwned(() => Promise.reject(new Error("no"))));
    await expect(second).rejects.toThrow("no");
    expect(listeners()).toEqual(plus(before, 1));
    end();
    await first;
    expect(listeners()).toEqual(before);
  });

  it("is left to the caller where there is no such work", async () => {
    const before = listeners();
    await runOwned(() => expect(listeners()).toEqual(before));
  });
});

it("a program's result and its errors are passed on", async () => {
  expect(await runOwned(async () => 3)).toBe(3);
  expect(await runOwned(() => 4)).toBe(4);
  const fail = (): never => {
    throw new Error("at once");
  };
  await expect(runOwned(fail)).rejects.toThrow("at once");
});

it("a caller's signal reaches the work with its reason, and an aborted one at once", async () => {
  const stop = new AbortController();
  const reason = new Error("enough");
  const work = endedByEscaped(stop.signal, async (signal) => {
    await setImmediate();
    signal.throwIfAborted();
  });
  stop.abort(reason);
  await expect(work).rejects.toBe(reason);
  const late = endedByEscaped(stop.signal, async (signal) => signal.throwIfAborted());
  await expect(late).rejects.toBe(reason);
});
