import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import explained from "./explained.json" with { type: "json" };
import { mutantsOf, withMutant } from "./mutants.js";

const made = (source: string): readonly string[] =>
  mutantsOf(source).map((mutant) => withMutant(source, mutant));

describe("mutants", () => {
  it("change operators, conditions, numbers and calls, one at a time", () => {
    expect(made("const a = b + 1;")).toEqual(["const a = b - 1;", "const a = b + 2;"]);
    expect(made("const a = b ?? c;")).toEqual(["const a = (c);"]);
    expect(made("const a = b < c ? d : -e;")).toEqual([
      "const a = true ? d : -e;",
      "const a = false ? d : -e;",
      "const a = b <= c ? d : -e;",
      "const a = b < c ? d : (e);",
    ]);
    expect(made("total += Math.max(a, b);")).toEqual([
      ";",
      "total -= Math.max(a, b);",
      "total += Math.min(a, b);",
    ]);
  });

  it("are placed correctly after letters outside ASCII", () => {
    expect(made("/* Σ 𝛼 … */ const ok = xs.some((x: number) => !x) as boolean;")).toEqual([
      "/* Σ 𝛼 … */ const ok = xs.every((x: number) => !x) as boolean;",
      "/* Σ 𝛼 … */ const ok = xs.some((x: number) => (x)) as boolean;",
    ]);
  });

  it("skip types, texts and what is thrown, and know their line", () => {
    const source = [
      'import { a } from "./a.js";',
      "type T = 1 | 2;",
      "const help = z.number().describe(String(1 + 1));",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the source of one.
      "const text = `${a + 1}`;",
      "if (a) throw new Error(String(1 + 1));",
    ].join("\n");
    expect(mutantsOf(source).map(({ line, replacement }) => [line, replacement])).toEqual([
      [5, "true"],
      [5, "false"],
    ]);
  });

  it("that are explained still exist", () => {
    const gone = explained.filter(
      ({ file, context, original, replacement }) =>
        !mutantsOf(readFileSync(file, "utf8")).some(
          (mutant) =>
            mutant.context === context &&
            mutant.original === original &&
            mutant.replacement === replacement,
        ),
    );
    expect(gone).toEqual([]);
  });
});
