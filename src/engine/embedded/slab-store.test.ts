import { expect, it } from "vitest";
import type { Slab } from "./slab.js";
import { createSlabStore } from "./slab-store.js";

/** A slab of 80 bytes with so many rows. */
function slabOf(rows: number): Slab {
  const half = () => [new Float32Array(10)];
  return { keys: half(), values: half(), room: 5, tokens: new Int32Array(rows) };
}

it("hands rows over once, and lets the oldest slab go where room is short", () => {
  const store = createSlabStore(200);
  const [one, two, three] = [slabOf(2), slabOf(1), slabOf(1)];
  store.put(1, { slab: one, row: 0, tokens: 3 });
  store.put(2, { slab: one, row: 1, tokens: 4 });
  store.put(3, { slab: two, row: 0, tokens: 5 });
  expect(store.take(2)).toEqual({ slab: one, row: 1, tokens: 4 });
  expect(store.take(2)).toBeUndefined();
  store.put(4, { slab: three, row: 0, tokens: 1 });
  expect(store.take(1)).toBeUndefined();
  expect([store.take(3)?.slab, store.take(4)?.slab]).toEqual([two, three]);
  // Slabs that nobody wants any more take no room.
  store.put(5, { slab: one, row: 0, tokens: 1 });
  store.put(6, { slab: two, row: 0, tokens: 1 });
  expect(store.take(5)?.slab).toBe(one);
  store.clear();
  expect(store.take(6)).toBeUndefined();
});
