import type { Episode } from "@pawl/core/rollout/episode.js";
import { expect, it } from "vitest";
import { changing, noisyByRules } from "./noisy-text.js";

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

it("by the paper's rules for WebShop, marks product ids and brands on result pages only", () => {
  const page =
    "Back to Search [SEP] Page 1 (Total results: 50) [SEP] Next > [SEP] B09KP78G37 [SEP] SHARK27 USB Lamp by ACME, McDonald";
  const steps = [page, "[SEP] B09KP78G37 [SEP] Buy Now"].map((observation) => ({ observation }));
  const [results, item] = noisyByRules({ steps } as unknown as Episode);
  const noise = results!.map((noisy, i) => (noisy ? page[i] : " ")).join("");
  expect(noise.trim().split(/ +/)).toEqual(["B09KP78G37", "SHARK27", "ACME"]);
  expect(results).toHaveLength(page.length);
  expect(item).toBeUndefined();
});
