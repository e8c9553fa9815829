import { expect, it } from "vitest";
import { changing } from "./noisy-text.js";

const marked = (text: string, versions: readonly string[]): string =>
  changing(text, versions)!
    .map((noisy, i) => (noisy ? text[i] : "."))
    .join("");

it("marks what changes from version to version", () => {
  expect(marked("a Belano apple1 #17, a fork.", ["a Tavdex apple1 #953, a fork."])).toBe(
    "..Belano.........17.........",
  );
  // What agrees by chance in one version does not in another.
  expect(marked("#17", ["#19", "#53"])).toBe(".17");
  expect(marked("#17", ["#17"])).toBe("...");
});

it("returns nothing if the texts say different things", () => {
  expect(changing("you see a fork", ["you see nothing"])).toBeUndefined();
  expect(changing("you see a fork", [undefined])).toBeUndefined();
});
