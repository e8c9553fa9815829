import { setImmediate } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createEmbeddedEngine } from "../engine/embedded/embedded-engine.js";
import type {
  ActingEngine,
  Capabilities,
  Engine,
  Sample,
  SampleRequest,
} from "../engine/engine.js";
import { createRandom } from "../random.js";
import { createScheduler, type SchedulerOptions } from "./scheduler.js";

const request = (id: number, more: Partial<SampleRequest> = {}): SampleRequest => ({
  ...{ prompt: [id], maxTokens: 1, seed: id, ...more },
});
const answer = (asked: SampleRequest): readonly Sample[] => [
  { tokens: [asked.prompt[0]!], logprobs: [0], stopReason: "stop" },
];

/** An engine whose calls end when the test says so; each answers with its prompt. */
function heldEngine(capabilities: Partial<Capabilities> = {}) {
  const calls: { readonly requests: readonly SampleRequest[]; end(error?: Error): void }[] = [];
  const engine: ActingEngine = {
    capabilities: capabilities as Capabilities,
    sample: (requests) =>
      new Promise((resolve, reject) => {
        const end = (error?: Error): void =>
          error === undefined ? resolve(requests.map(answer)) : reject(error);
        calls.push({ requests, end });
      }),
  };
  return { engine, calls };
}

/** Lets everything happen that needs no time. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await setImmediate();
}

const idsOf = (requests: readonly SampleRequest[]): readonly number[] =>
  requests.map(({ prompt }) => prompt[0]!);

const ownPace = (engine: ActingEngine, rows: number) =>
  createScheduler(engine, { pace: "own", rows });

describe("requests at their own pace", () => {
  it("samples whoever waits when the engine is free, the oldest first, and answers each", async () => {
    const { engine, calls } = heldEngine();
    const scheduler = ownPace(engine, 2);
    const answers = [1, 2, 3].map((id) => scheduler.engine.sample([request(id)]));
    await settle();
    expect(calls.map(({ requests }) => idsOf(requests))).toEqual([[1, 2]]);
    answers.push(scheduler.engine.sample([request(4)]), scheduler.engine.sample([request(5)]));
    await settle();
    // The engine is still at work.
    expect(calls.length).toBe(1);
    for (const at of [0, 1, 2]) {
      calls[at]!.end();
      await settle();
    }
    expect(calls.map(({ requests }) => idsOf(requests))).toEqual([[1, 2], [3, 4], [5]]);
    const tokens = (await Promise.all(answers)).map(([samples]) => samples![0]!.tokens[0]);
    expect(tokens).toEqual([1, 2, 3, 4, 5]);
    expect(scheduler.load()).toMatchObject({ calls: 3, rows: 5 });
    expect(scheduler.load()).toMatchObject({ calls: 0, rows: 0 });
  });

  it("fails those that were sampled together, and goes on with the others", async () => {
    const { engine, calls } = heldEngine();
    const scheduler = ownPace(engine, 2);
    const answers = [1, 2, 3].map((id) => scheduler.engine.sample([request(id)]));
    const ends = Promise.allSettled(answers);
    await settle();
    calls[0]!.end(new Error("out of memory"));
    await settle();
    calls[1]!.end();
    expect((await ends).map(({ status }) => status)).toEqual(["rejected", "rejected", "fulfilled"]);
  });

  it("samples nothing while it is closed", async () => {
    const { engine, calls } = heldEngine();
    const scheduler = ownPace(engine, 2);
    scheduler.close();
    void scheduler.engine.sample([request(1)]);
    await settle();
    expect(calls.length).toBe(0);
    scheduler.open();
    await settle();
    expect(calls.length).toBe(1);
  });

  it("tells the engine that rows which came together do not continue together", async () => {
    const { engine, calls } = heldEngine();
    const scheduler = ownPace(engine, 4);
    void scheduler.engine.sample([request(1, { continued: true })]);
    void scheduler.engine.sample([request(2)]);
    await settle();
    expect(calls[0]!.requests.map(({ continued }) => continued)).toEqual(["apart", undefined]);
  });

  it("passes requests on as they come to a server that batches by itself, within its limit", async () => {
    const { engine, calls } = heldEngine({ otherSampler: true });
    const scheduler = ownPace(engine, 2);
    for (const id of [1, 2, 3]) void scheduler.engine.sample([request(id)]);
    await settle();
    expect(calls.map(({ requests }) => idsOf(requests))).toEqual([[1], [2]]);
    calls[1]!.end();
    await settle();
    expect(calls.map(({ requests }) => idsOf(requests))).toEqual([[1], [2], [3]]);
  });

  it("starts episodes until the engine's batch is full, and none while more wait", async () => {
    const { engine, calls } = heldEngine();
    const scheduler = ownPace(engine, 2);
    let inside = 0;
    for (let one = 0; one < 9; one++) void scheduler.admission.enter().then(() => inside++);
    await settle();
    expect(inside).toBe(2);
    // Both ask, and nobody waits behind them: there is room for two more.
    for (const id of [1, 2]) void scheduler.engine.sample([request(id)]);
    await settle();
    calls[0]!.end();
    await settle();
    expect(inside).toBe(4);
    // All four ask, one by one, and the two that were answered ask again: enough.
    for (const id of [1, 2, 3, 4, 5, 6]) void scheduler.engine.sample([request(id)]);
    await settle();
    calls[1]!.end();
    await settle();
    expect(inside).toBe(4);
    scheduler.admission.leave();
    await settle();
    // Four still wait for a batch of two, so one that ends is not replaced.
    expect(inside).toBe(4);
  });
});

/** Programs in lock-step, and the seeds of every batch that was sampled. */
function start(fails = (_: readonly SampleRequest[]): boolean => false) {
  const batches: number[][] = [];
  const sample: ActingEngine["sample"] = async (requests) => {
    batches.push(requests.map(({ seed }) => seed));
    if (fails(requests)) throw new Error("no engine");
    await setImmediate();
    return requests.map(answer);
  };
  const engine: ActingEngine = { capabilities: {} as Capabilities, sample };
  return { scheduler: createScheduler(engine, { pace: "together" }), batches };
}

describe("programs in lock-step", () => {
  it("are sampled together when all of them wait, in the order of their places", async () => {
    const { scheduler, batches } = start();
    const seats = [0, 1, 2].map(() => scheduler.join());
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
    const { scheduler, batches } = start();
    const [one, two] = [scheduler.join(), scheduler.join()];
    await Promise.all([one.sample(request(1)), two.sample(request(3)), one.sample(request(2))]);
    expect(batches).toEqual([[1, 2, 3]]);
  });

  it("do not wait for ever for one that is busy", async () => {
    const { scheduler, batches } = start();
    const [one, busy] = [scheduler.join(), scheduler.join()];
    await one.sample(request(1));
    expect(batches).toEqual([[1]]);
    busy.leave();
  });

  it("are not held up by a call that is aborted", async () => {
    const { scheduler, batches } = start();
    const [one, two] = [scheduler.join(), scheduler.join()];
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
    const { scheduler } = start(() => failing);
    const seats = [scheduler.join(), scheduler.join()];
    const asked = seats.map((seat, at) => seat.sample(request(at)));
    for (const one of asked) await expect(one).rejects.toThrow("no engine");
    failing = false;
    const again = await Promise.all(seats.map((seat, at) => seat.sample(request(at))));
    expect(again.map(({ tokens }) => tokens)).toEqual([[0], [1]]);
  });
});

let engine: Engine;
beforeAll(async () => {
  const model = { preset: "tiny", vocabularySize: 40, maxContext: 256 } as const;
  engine = await createEmbeddedEngine({ model, seed: 3, threads: 1 });
});
afterAll(() => engine.dispose());

const serve = (to: ActingEngine, options: Omit<SchedulerOptions, "pace"> = {}) =>
  createScheduler(to, { pace: "served", ...options });
const random = createRandom(1);
const draw = (count: number) => Array.from({ length: count }, () => random.int(40));
const longRequests = (count: number) =>
  Array.from({ length: count }, (_, seed) => ({
    prompt: draw(17 + seed),
    maxTokens: 10 + 9 * seed,
    stop: [[7, 8]],
    continued: true,
    seed,
  }));

/** The engine, with a list of what it was asked. */
function watched() {
  const calls: (readonly SampleRequest[])[] = [];
  const sample = (requests: readonly SampleRequest[]) => {
    calls.push(requests);
    return engine.sample(requests);
  };
  return { calls, engine: { sample, capabilities: engine.capabilities } };
}

it("gives a request the same tokens in any company, with the model's own log-probabilities", async () => {
  const requests = longRequests(9);
  const alone: Sample[] = [];
  for (const request of requests)
    alone.push(await serve(engine, { sliceTokens: 8 }).sample(request));
  const { calls, engine: seen } = watched();
  const scheduler = serve(seen, { sliceTokens: 8 });
  const together = await Promise.all(requests.map((request) => scheduler.sample(request)));
  expect(together.map(({ tokens }) => tokens)).toEqual(alone.map(({ tokens }) => tokens));
  expect(together.map(({ stopReason }) => stopReason)).toContain("length");
  expect(calls[0]).toHaveLength(9);
  expect(calls.at(-1)!.length).toBeLessThan(9);
  const scored = await engine.forward(
    together.map(({ tokens }, i) => ({ ids: [...requests[i]!.prompt, ...tokens] })),
  );
  together.forEach(({ tokens, logprobs, sampledLogprobs }, i) => {
    const expected = scored[i]!.logprobs.slice(-tokens.length);
    expect([logprobs.length, sampledLogprobs!.length]).toEqual([tokens.length, tokens.length]);
    logprobs.forEach((value, at) => {
      expect(Math.abs(value - expected[at]!)).toBeLessThan(1e-4);
    });
  });
});

it("takes the slices of an engine that gives no log-probabilities of what was drawn", async () => {
  const bare = {
    capabilities: engine.capabilities,
    sample: async (requests: readonly SampleRequest[]) =>
      (await engine.sample(requests)).map((group) =>
        group.map(({ sampledLogprobs: _, ...sample }) => sample),
      ),
  };
  const request = { prompt: draw(20), maxTokens: 12, seed: 5 };
  const sample = await serve(bare, { sliceTokens: 4 }).sample(request);
  expect(sample.logprobs).toHaveLength(sample.tokens.length);
  expect(sample.sampledLogprobs).toBeUndefined();
});

it("samples a short answer as the engine would", async () => {
  const request = { prompt: draw(20), maxTokens: 12, seed: 5 };
  const [[direct]] = (await engine.sample([request])) as [[Sample]];
  expect((await serve(engine).sample(request)).tokens).toEqual(direct.tokens);
});

it("ends at a stop sequence that lies across two slices", async () => {
  const request = { prompt: draw(20), maxTokens: 40, seed: 0 };
  const plain = await serve(engine, { sliceTokens: 4 }).sample(request);
  const stop = [plain.tokens.slice(2, 6)];
  const stopped = await serve(engine, { sliceTokens: 4 }).sample({ ...request, stop });
  expect(stopped.tokens).toEqual(plain.tokens.slice(0, 6));
  expect([stopped.logprobs.length, stopped.stopReason]).toEqual([6, "stop"]);
});

describe("served requests that come and go", () => {
  it("lets a short request join a long one and leave before it", async () => {
    const { calls, engine: seen } = watched();
    const scheduler = serve(seen, { sliceTokens: 4 });
    const ended: string[] = [];
    const long = scheduler.sample({ prompt: draw(20), maxTokens: 200, seed: 0 });
    void long.then(() => ended.push("long"));
    while (calls.length < 2) await setImmediate();
    await scheduler.sample({ prompt: draw(30), maxTokens: 6, seed: 1 });
    ended.push("short");
    expect((await long).tokens).toHaveLength(200);
    expect(ended).toEqual(["short", "long"]);
    expect(calls.map((call) => call.length).filter((rows) => rows === 2)).toHaveLength(2);
  });

  it("takes at most so many at once, in the order they came", async () => {
    const { calls, engine: seen } = watched();
    const scheduler = serve(seen, { rows: 2 });
    const order: number[] = [];
    await Promise.all(
      [0, 1, 2, 3, 4].map(async (seed) => {
        await scheduler.sample({ prompt: draw(20), maxTokens: 3, seed });
        order.push(seed);
      }),
    );
    expect(calls.map((call) => call.length)).toEqual([2, 2, 1]);
    expect(order).toEqual([0, 1, 2, 3, 4]);
  });

  it("rejects an aborted request at once, and samples no more of it", async () => {
    const { calls, engine: seen } = watched();
    const scheduler = serve(seen, { sliceTokens: 4 });
    const [running, early] = [new AbortController(), new AbortController()];
    const other = scheduler.sample({ prompt: draw(20), maxTokens: 30, seed: 0 });
    const left = scheduler.sample({ prompt: draw(20), maxTokens: 200, seed: 1 }, running.signal);
    while (calls.length < 1) await setImmediate();
    const waits = scheduler.sample({ prompt: draw(20), maxTokens: 9, seed: 2 }, early.signal);
    const begun = calls.length;
    running.abort(new Error("gone"));
    early.abort(new Error("never mind"));
    await expect(left).rejects.toThrow("gone");
    await expect(waits).rejects.toThrow("never mind");
    expect((await other).tokens).toHaveLength(30);
    expect(calls.slice(begun).every((call) => call.length === 1)).toBe(true);
    await expect(
      scheduler.sample({ prompt: [1], maxTokens: 1, seed: 0 }, running.signal),
    ).rejects.toThrow("gone");
  });

  it("gives a bad request its own error, and the others their answers", async () => {
    const scheduler = serve(engine);
    const ends = await Promise.allSettled([
      scheduler.sample({ prompt: draw(20), maxTokens: 5, seed: 0 }),
      scheduler.sample({ prompt: [1, 2, 99], maxTokens: 5, seed: 0 }),
      scheduler.sample({ prompt: draw(20), maxTokens: 999, seed: 0 }),
      scheduler.sample({ prompt: draw(20), maxTokens: 5, seed: 1 }),
    ]);
    expect(ends.map((end) => end.status)).toEqual([
      "fulfilled",
      "rejected",
      "rejected",
      "fulfilled",
    ]);
    const reasons = ends.flatMap((end) => (end.status === "rejected" ? [String(end.reason)] : []));
    expect(reasons[0]).toContain("token 2 is 99");
    expect(reasons[1]).toContain("20 tokens and 999 new ones exceed the model's context of 256");
  });
});
