import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createEmbeddedEngine } from "../engine/embedded/embedded-engine.js";
import type { Engine } from "../engine/engine.js";
import { pawOptions } from "../objectives/paw-options.js";
import { worldObjective } from "../objectives/world.js";
import { createRandom } from "../random.js";
import { prepareUpdate, scaleWorld } from "../update/update.js";
import { groupsOf } from "../update/update-testing.js";
import { checkGradientLength, lengthScale } from "./gradient-length.js";

const ce = pawOptions.parse({ loss: "ce", gradientLength: "cmae", rho: 1 });
const random = createRandom(3);
const step = () => ({ action: [Math.log(0.4 + 0.2 * random.next())], observation: 3 });
const groups = groupsOf([[{ steps: [step(), step()] }, { steps: [step()] }]]);
const update = prepareUpdate(
  groups,
  { advantages: [[[1, -1], [1]]] },
  { paw: ce, aggregation: "token-mean", maxReturn: 10 },
);

let engine: Engine;
beforeAll(async () => {
  const model = { preset: "tiny", vocabularySize: 400, maxContext: 64 } as const;
  engine = await createEmbeddedEngine({ model, threads: 1 });
});
afterAll(() => engine.dispose());

const lengthOf = async (loss: "ce" | "cmae", { sequences }: typeof update): Promise<number> => {
  await engine.forwardBackward(sequences, worldObjective({ ...ce, loss }));
  return (await engine.discardGradients()).gradNorm;
};

describe("the world model's gradient at the norm of clipped MAE's", () => {
  it("has that norm, measured on the whole update", async () => {
    const scale = await lengthScale(engine, update, ce);
    const wanted = await lengthOf("cmae", update);
    // In an untrained model p is near 1 / 400, and so is the slope of 1 − p relative to that of
    // −log p.
    expect(scale).toBeGreaterThan(1 / 4000);
    expect(scale).toBeLessThan(1 / 40);
    const scaled = await lengthOf("ce", scaleWorld(update, scale));
    expect(scaled / wanted).toBeCloseTo(1, 4);
    // Part of the update has a different norm: half of its sequences would not do.
    const half = { sequences: update.sequences.slice(0, 1) };
    expect(Math.abs((await lengthScale(engine, half, ce)) / scale - 1)).toBeGreaterThan(1e-3);
  });

  it("is measured on a share of the sequences that predict, spread over the update", async () => {
    const wide = prepareUpdate(
      groupsOf(
        [2, 3, 4, 5].map((observation) => [{ steps: [{ ...step(), observation }, step()] }]),
      ),
      { advantages: [1, 2, 3, 4].map((advantage) => [[advantage, -advantage]]) },
      { paw: { ...ce, alpha: 1 }, aggregation: "token-mean", maxReturn: 10 },
    ).sequences;
    const measured = async (sequences: typeof wide, share: number): Promise<number> =>
      lengthScale(engine, { sequences }, { ...ce, gradientLengthShare: share });
    const every = (step: number) => wide.filter((_, index) => index % step === 0);
    const all = await measured(wide, 1);
    for (const [share, step] of [
      [0.5, 2],
      [0.25, 4],
      [0.01, wide.length],
    ] as const) {
      const part = await measured(wide, share);
      expect(part).toBe(await measured(every(step), 1));
      expect(Math.abs(part / all - 1)).toBeGreaterThan(1e-6);
    }
    // Sequences that predict nothing are left out before the share is taken.
    const { worldWeight: _, ...inputs } = wide[0]!.inputs;
    const mixed = every(2).flatMap((one) => [{ ...one, inputs }, one]);
    expect(await measured(mixed, 0.5)).toBe(await measured(every(4), 1));
  });

  it("is 0 if clipped MAE masks everything, and unchanged if there is nothing to scale", async () => {
    const scale = await lengthScale(engine, update, { ...ce, rho: 0 });
    expect(scale).toBe(0);
    expect(await lengthScale(engine, scaleWorld(update, 0), ce)).toBe(1);
    expect(await lengthScale(engine, { sequences: [] }, ce)).toBe(1);
  });

  it("is refused if it would change nothing, and together with a cap", () => {
    const check = (paw: object) => () => checkGradientLength({ paw: pawOptions.parse(paw) });
    expect(check({ gradientLength: "cmae" })).toThrow(/paw\.loss is cmae; set that to ce or mae/);
    expect(check({ loss: "off", gradientLength: "cmae" })).toThrow(/paw\.loss is off/);
    expect(check({ loss: "ce", gradientLength: "cmae", gradientCap: 1 })).toThrow(
      /gradientCap sets the length of the same gradient/,
    );
    check({ loss: "ce", gradientLength: "cmae", gradientLengthShare: 0.25 })();
    check({ loss: "ce", gradientLength: "cmae" })();
    check({})();
  });
});
