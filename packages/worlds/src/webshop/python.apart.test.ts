/**
 * Compared with values from CPython 3.11; `fixtures/make.py` regenerates them.
 *
 * It needs a process of its own: where ONNX Runtime makes the first session of a process in the thread
 * of the tests, that thread takes denormal numbers for zero from then on.
 */
import { readFileSync } from "node:fs";
import { floatText, jsonText, strip, textRepr } from "@pawl/core/envs/python-text.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createPythonRandom } from "./python-random.js";
import { tokenSetRatio } from "./score.js";

function fixture<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(`fixtures/${name}.json`, import.meta.url), "utf8")) as T;
}

interface Draws {
  readonly seed: number;
  readonly random: readonly number[];
  readonly uniform: readonly number[];
  readonly sample: readonly (readonly number[])[];
  readonly shuffled: readonly number[];
  readonly later: number;
}

describe("CPython's random numbers", () => {
  it.each(fixture<Draws[]>("python-random"))("are the same for seed $seed", (draws) => {
    const random = createPythonRandom(draws.seed);
    expect([random.random(), random.random(), random.random()]).toEqual(draws.random);
    expect([random.uniform(19.99, 27.99), random.uniform(5.5, -3.25)]).toEqual(draws.uniform);
    const upTo = (count: number) => Array.from({ length: count }, (_, at) => at);
    expect([
      random.sample([10, 20, 30, 40], 2),
      random.sample(upTo(21), 5),
      random.sample([7], 1),
    ]).toEqual(draws.sample);
    const items = upTo(30);
    random.shuffle(items);
    expect(items).toEqual(draws.shuffled);
    for (let drawn = 0; drawn < 700; drawn++) random.random();
    expect(random.random()).toBe(draws.later);
  });

  it("reject seeds and samples that Python would treat differently", () => {
    expect(() => createPythonRandom(-1)).toThrow(/an integer from 0 to 4294967295, not -1/);
    expect(() => createPythonRandom(0.5)).toThrow(/not 0.5/);
    expect(() => createPythonRandom(1).sample([1], 2)).toThrow(/cannot sample 2 of 1/);
  });
});

describe("Python's texts", () => {
  const texts = fixture<{
    repr: [string, string][];
    float: [number, string][];
    strip: [string, string][];
  }>("python-text");
  it.each(texts.repr)("repr of %j", (text, expected) => expect(textRepr(text)).toBe(expected));
  it.each(texts.float)("repr of %d", (value, expected) => expect(floatText(value)).toBe(expected));
  it.each(texts.strip)("strip of %j", (text, expected) => expect(strip(text)).toBe(expected));

  it("writes maps as Flask does", () => {
    const options = new Map([
      ["size", "<5'>"],
      ["color", 'é & "😀"'],
    ]);
    expect(jsonText(options)).toBe(
      '{"color": "\\u00e9 \\u0026 \\"\\ud83d\\ude00\\"", "size": "\\u003c5\\u0027\\u003e"}',
    );
  });
});

describe("the similarity of texts as sets of words", () => {
  it("equals difflib's", () => {
    for (const [a, b, expected] of fixture<[string, string, number][]>("token-set-ratio"))
      expect([a, b, tokenSetRatio(a, b)]).toEqual([a, b, expected]);
  });

  it("is 100 for the same words in any order, and between 0 and 100 for anything", () => {
    const word = fc.stringMatching(/^[a-z]{1,6}$/);
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 5 }), fc.string(), (words, other) => {
        expect(tokenSetRatio(words.join(" "), [...words].reverse().join("-"))).toBe(100);
        const likeness = tokenSetRatio(words.join(" "), other);
        expect(likeness).toBeGreaterThanOrEqual(0);
        expect(likeness).toBeLessThanOrEqual(100);
      }),
    );
  });
});
