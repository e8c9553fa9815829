import { expect, it } from "vitest";
import { initialWeights, presetConfig } from "./init.js";

const config = presetConfig("tiny", 100);
const query = "model.layers.1.self_attn.q_proj.weight";
const key = query.replace("q_proj", "k_proj");

it("starts with keys equal to queries, and with different weights for every seed and layer", () => {
  const weights = initialWeights(config, 3);
  expect(weights.get(key)).toEqual(weights.get(query));
  expect(weights.get(key)).not.toBe(weights.get(query));
  expect(weights.get(query)).not.toEqual(weights.get(query.replace("layers.1", "layers.0")));
  expect(weights.get(query)).not.toEqual(initialWeights(config, 4).get(query));
  expect(weights.get(query)).toEqual(initialWeights(config, 3).get(query));
});

it("starts shared keys equal to the first queries of each group", () => {
  const weights = initialWeights({ ...config, kvHeads: 2 }, 3);
  const [q, k] = [weights.get(query)!, weights.get(key)!];
  expect(k.length).toBe(q.length / 2);
  expect(k).toEqual(q.slice(0, k.length));
});
