/** Inputs that once made a reader fail (`npm run fuzz`), read again; and that every target can be run. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createRandom } from "@pawl/core/random.js";
import { expect, it } from "vitest";
import { failureOf } from "./fuzz.js";
import { mutate } from "./mutate.js";
import { targets } from "./targets.js";

const folder = "tests/fuzz/findings";

it.each(readdirSync(folder).filter((name) => name !== "README.md"))(
  "%s is read or refused",
  async (name) => {
    const target = targets[name.slice(0, name.lastIndexOf("."))]!;
    expect(await failureOf(target, readFileSync(join(folder, name)))).toBeUndefined();
  },
);

it.each(Object.entries(targets))(
  "%s reads its good inputs, and a few damaged ones",
  async (_, target) => {
    const inputs = target.inputs();
    for (const input of inputs) expect(await failureOf(target, input)).toBeUndefined();
    for (let seed = 0; seed < 5; seed++)
      expect(await failureOf(target, mutate(createRandom(seed), inputs))).toBeUndefined();
  },
);

it("notices a reader that fails", async () => {
  const broken = { inputs: () => [], run: () => JSON.parse("{") };
  expect(await failureOf(broken, Buffer.alloc(0))).toMatch(/SyntaxError/);
});
