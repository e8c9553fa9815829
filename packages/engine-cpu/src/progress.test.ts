import { supervisedObjective } from "@pawl/core/objectives/supervised.js";
import { expect, it } from "vitest";
import { createEmbeddedEngine } from "./embedded-engine.js";

it("says how many tokens are learnt while it learns them", async () => {
  const model = { preset: "tiny", vocabularySize: 64, maxContext: 512 } as const;
  const engine = await createEmbeddedEngine({ model, threads: 1 });
  try {
    const ids = Array.from({ length: 400 }, (_, i) => i % 64);
    const sequence = { ids, inputs: { weight: ids.map(() => 1) } };
    const told: number[] = [];
    const batch = Array.from({ length: 6 }, () => sequence);
    await engine.forwardBackward(batch, supervisedObjective, (done) => told.push(done));
    expect(told.length).toBeGreaterThan(1);
    expect(told).toEqual(told.toSorted((a, b) => a - b));
    expect(told.at(-1)).toBeGreaterThanOrEqual(6 * 399);
    // The next call has nobody to tell.
    await engine.forwardBackward(batch, supervisedObjective);
  } finally {
    await engine.dispose();
  }
});
