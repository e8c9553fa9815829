import { expect, it } from "vitest";
import { table } from "./format.js";

it("aligns columns by what they take on the screen, numbers to the right", () => {
  const lines = table(
    ["run", "kind", "updates"],
    [
      ["訓練", "train", "3"],
      ["e\u0301tude", "eval", "1,000"],
    ],
  );
  expect(lines).toEqual([
    "run    kind   updates",
    "訓練   train        3",
    "e\u0301tude  eval     1,000",
  ]);
});
