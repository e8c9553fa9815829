import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createAnalyser, porterStem } from "./analyser.js";

const analyse = createAnalyser();

describe("the Porter stemmer", () => {
  // The examples of Porter's paper, step by step.
  it.each([
    ["caresses", "caress"],
    ["ponies", "poni"],
    ["cats", "cat"],
    ["feed", "feed"],
    ["agreed", "agre"],
    ["plastered", "plaster"],
    ["bled", "bled"],
    ["motoring", "motor"],
    ["sing", "sing"],
    ["conflated", "conflat"],
    ["sized", "size"],
    ["hopping", "hop"],
    ["falling", "fall"],
    ["hissing", "hiss"],
    ["filing", "file"],
    ["happy", "happi"],
    ["sky", "sky"],
    ["relational", "relat"],
    ["digitizer", "digit"],
    ["radicalli", "radic"],
    ["hopefulness", "hope"],
    ["sensibiliti", "sensibl"],
    ["electrical", "electr"],
    ["goodness", "good"],
    ["replacement", "replac"],
    ["adoption", "adopt"],
    ["probate", "probat"],
    ["rate", "rate"],
    ["controll", "control"],
    ["possibly", "possibl"],
    ["analogies", "analog"],
    ["is", "is"],
  ])("makes %s into %s", (word, stem) => {
    expect(porterStem(word)).toBe(stem);
  });
});

describe("the analyser", () => {
  it.each([
    ["The women's shoes, and the MEN’S hats", ["women", "shoe", "men", "hat"]],
    [
      "finish/frame description:solid v1.5 12,000 3.5.2",
      ["finish", "frame", "description:solid", "v1.5", "12,000", "3.5.2"],
    ],
    ["don't e.g. 1,a a.1 _x_ __", ["don't", "e.g", "1", "1", "_x_"]],
    ["★sale★ ☆red✿ 100% ™", ["★", "sale", "★", "red", "100", "™"]],
    ["❤️👨‍👩‍👧 🇩🇪🇫🇷 👍🏽", ["❤️", "👨‍👩‍👧", "🇩🇪", "🇫🇷", "👍🏽"]],
    ["中文 ひら カタカナ 한국어", ["中", "文", "ひ", "ら", "カタカナ", "한국어"]],
    ["ΣΟΦΟΣ İstanbul", ["σοφοσ", "istanbul"]],
    ["cafe\u0301 soft\u00adware", ["cafe\u0301", "soft\u00adwar"]],
  ])("finds the terms of %j", (text, terms) => {
    expect(analyse(text)).toEqual(terms);
  });

  it("splits words of more than 255 characters", () => {
    expect(analyse("x".repeat(600)).map((term) => term.length)).toEqual([255, 255, 90]);
  });

  it("accepts any text, and finds the same terms in two texts as in their concatenation", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "grapheme" }), (a, b) => {
        expect(analyse(`${a} \n ${b}`)).toEqual([...analyse(a), ...analyse(b)]);
      }),
    );
  });

  it("takes 100 kB without spaces in one go", () => {
    expect(analyse(`${"'.".repeat(50_000)}end`)).toEqual(["end"]);
    expect(analyse("a:".repeat(50_000)).join("").length).toBeGreaterThan(90_000);
  });
});
