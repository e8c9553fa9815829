import fc from "fast-check";
import { expect, it } from "vitest";
import { escapeHtml } from "./html.js";

it("leaves no character of any text with a meaning in HTML", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      expect(escapeHtml(text).replace(/&(amp|lt|gt|quot|#39);/g, "")).not.toMatch(/[&<>"']/);
    }),
    { numRuns: 200 },
  );
  expect(escapeHtml(`<a b="c">'&amp;`)).toBe("&lt;a b=&quot;c&quot;&gt;&#39;&amp;amp;");
});
