import { setImmediate } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { Sample, SampleRequest } from "../engine/engine.js";
import { createLockstep } from "./lockstep.js";

const request = (seed: number): SampleRequest => ({ prompt: [seed], maxTokens: 1, seed });
const answer = ({ seed }: SampleRequest): readonly Sample[] => [
  { tokens: [seed], logprobs: [0], stopReason: "stop" },
];

/** Programs in lock-step, and the seeds of every batch that was sampled. */
function start(fails = (_: readonly SampleRequest[]): boolean => false) {
  const batches: number[][] = [];
  const lockstep = createLockstep(async (requests) => {
    batches.push(requests.map(({ seed }) => seed));
    if (fails(requests)) throw new Error("no engine");
    await setImmediate();
    return requests.map(answer);
  });
  return { lockstep, batches };
}

describe("programs in lock-step", () => {
  it("are sampled together when all of them wait, in the order of their places", async () => {
    const { lockstep, batches } = start();
    const seats = [0, 1, 2].map(() => lockstep.join());
    const play = async (seat: number, turns: number) => {
      for (let turn = 0; turn < turns; turn++) {
        // The first to take a place is the last to ask.
        for (let later = seat; later < 2; later++) await setImmediate();
        const { tokens } = await seats[seat]!.sample(request(10 * turn + seat));
        expect(tokens).toEqual([10 * turn + seat]);
      }
      seats[seat]!.leave();
    };
    await Promise.all([play(0, 2), play(1, 3), play(2, 1)]);
    expect(batches).toEqual([[0, 1, 2], [10, 11], [21]]);
  });

  it("may ask several things at once", async () => {
    const { lockstep, batches } = start();
    const [one, two] = [lockstep.join(), lockstep.join()];
    await Promise.all([one.sample(request(1)), two.sample(request(3)), one.sample(request(2))]);
    expect(batches).toEqual([[1, 2, 3]]);
  });

  it("do not wait for ever for one that is busy", async () => {
    const { lockstep, batches } = start();
    const [one, busy] = [lockstep.join(), lockstep.join()];
    await one.sample(request(1));
    expect(batches).toEqual([[1]]);
    busy.leave();
  });

  it("are not held up by a call that is aborted", async () => {
    const { lockstep, batches } = start();
    const [one, two] = [lockstep.join(), lockstep.join()];
    const stop = new AbortController();
    const aborted = one.sample(request(1), stop.signal);
    stop.abort(new Error("gone"));
    await expect(aborted).rejects.toThrow("gone");
    one.leave();
    await two.sample(request(2));
    expect(batches).toEqual([[2]]);
  });

  it("all get the engine's error, and may ask again", async () => {
    let failing = true;
    const { lockstep } = start(() => failing);
    const seats = [lockstep.join(), lockstep.join()];
    const asked = seats.map((seat, at) => seat.sample(request(at)));
    for (const one of asked) await expect(one).rejects.toThrow("no engine");
    failing = false;
    const again = await Promise.all(seats.map((seat, at) => seat.sample(request(at))));
    expect(again.map(({ tokens }) => tokens)).toEqual([[0], [1]]);
  });
});
