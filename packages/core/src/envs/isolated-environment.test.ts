import { expect, it } from "vitest";
import type { Caller } from "../processes/calls.js";
import { createWorldProcesses, MAX_PROCESSES } from "./isolated-environment.js";

const never = new AbortController().signal;

/** Processes that end when they are told to, and how many there are. */
function counted() {
  const counts = { started: 0, alive: 0, most: 0 };
  const processes = createWorldProcesses((onGone) => {
    counts.started += 1;
    counts.alive += 1;
    counts.most = Math.max(counts.most, counts.alive);
    let ended = false;
    const caller: Caller = {
      call: async () => undefined,
      get ended() {
        return ended;
      },
      async end() {
        if (ended) return;
        ended = true;
        // As with a real one, it takes a while.
        await new Promise((resolve) => setImmediate(resolve));
        counts.alive -= 1;
        onGone();
      },
    };
    return caller;
  });
  return { processes, counts };
}

it("starts no more than the limit, and lets the others wait", async () => {
  const { processes, counts } = counted();
  let served = 0;
  await Promise.all(
    Array.from({ length: 5 * MAX_PROCESSES }, async (_, i) => {
      const one = await processes.take(never);
      await new Promise((resolve) => setImmediate(resolve));
      served += 1;
      if (i % 3 === 0) await one.end();
      else processes.giveBack(one);
    }),
  );
  expect(served).toBe(5 * MAX_PROCESSES);
  expect(counts.most).toBe(MAX_PROCESSES);
  await processes.close();
  expect(counts.alive).toBe(0);
});

it("lets go of who does not wait any more, and of nobody else", async () => {
  const { processes } = counted();
  const taken = await Promise.all(
    Array.from({ length: MAX_PROCESSES }, () => processes.take(never)),
  );
  expect(processes.takeNow()).toBeUndefined();
  const stop = new AbortController();
  const left = processes.take(stop.signal);
  const stays = processes.take(never);
  stop.abort(new Error("gone"));
  await expect(left).rejects.toThrow("gone");
  processes.giveBack(taken[0]!);
  expect(await stays).toBe(taken[0]);
});

it("does not lend one that has ended while it was idle", async () => {
  const { processes, counts } = counted();
  const one = await processes.take(never);
  processes.giveBack(one);
  expect(processes.takeNow()).toBe(one);
  processes.giveBack(one);
  await one.end();
  expect(processes.takeNow()).not.toBe(one);
  expect(counts.started).toBe(2);
});
