import { plainText } from "@pawl/core/plain-text.js";
import fc from "fast-check";
import { expect, it } from "vitest";
import { colouredText, createColours } from "./colours.js";

/** What terminals act on. */
const CONTROL = /(?![\t\n])[\p{Cc}\u202a-\u202e\u2066-\u2069]/u;

const payloads = [
  "\x1b]0;owned\x07", // window title
  "\x1b]52;c;cm0gLXJmIH4=\x07", // clipboard
  "\x1b[2J\x1b[H", // clear the screen
  "\x1b[8mhidden\x1b[28m", // concealed text
  "\x1b[30;40mblack on black",
  "\x1b[1A\x1b[2K", // rewrite the line above
  "safe\rtricked",
  "\x9b31m\x9d0;title\x9c", // the same in one byte
  "\x1bP1$r0m\x1b\\",
  "\x1b]8;;http://evil\x07link\x1b]8;;\x07",
  "\u202egnp.exe", // right to left
  "back\b\b\b\bmasked",
  "\0\x7f",
  "\x1b\x1b[31m[31m",
];

it.each(payloads)("%j is visible and does nothing", (payload) => {
  expect(plainText(payload)).not.toMatch(CONTROL);
  expect(plainText(payload)).toContain("\\u00".slice(0, 2));
  expect(colouredText(payload)).toBe(plainText(payload));
});

it("keeps plain text, line breaks, tabs and our own colours", () => {
  expect(plainText("zwölf\n\t🙂 שלום\r\nok")).toBe("zwölf\n\t🙂 שלום\nok");
  const { green, bold } = createColours(true);
  expect(colouredText(`${green("✓")} done`)).toBe("\x1b[32m✓\x1b[39m done");
  expect(colouredText(green(bold("✓")))).toBe("\x1b[32m\x1b[1m✓\x1b[22m\x1b[39m");
  expect(colouredText(green("\x1b[31mred"))).toBe("\x1b[32m\\u001b[31mred\x1b[39m");
  expect(createColours(false).green("✓")).toBe("✓");
});

it("lets nothing through, whatever comes, and keeps JSON the same", () => {
  const text = fc.array(fc.oneof(fc.constantFrom(...payloads), fc.string({ unit: "binary" })));
  fc.assert(
    fc.property(text, (parts) => {
      const all = parts.join("");
      expect(plainText(all)).not.toMatch(CONTROL);
      expect(colouredText(all)).toBe(plainText(all));
      expect(JSON.parse(plainText(JSON.stringify(all)))).toBe(all);
    }),
  );
});
