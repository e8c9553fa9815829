import fc from "fast-check";
import { expect, it } from "vitest";
import { html, trusted } from "./html.js";
import { EVIL } from "./testing.js";

it("escapes text and numbers, keeps markup, and renders nothing for nothing", () => {
  const item = (text: string) => html`<li title="${text}">${text}</li>`;
  const page = html`<ul>${["a<b", "c\"d'e&"].map(item)}</ul>${undefined}${false}${3}`;
  expect(page.markup).toBe(
    '<ul><li title="a&lt;b">a&lt;b</li><li title="c&quot;d&#39;e&amp;">c&quot;d&#39;e&amp;</li></ul>3',
  );
  expect(html`${EVIL}`.markup).not.toMatch(/[<>"']/);
  expect(html`<b>${trusted("<i>")}</b>`.markup).toBe("<b><i></b>");
});

it("leaves no character of any text with a meaning in HTML", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      expect(html`${text}`.markup).not.toMatch(/[<>"']|&(?!(amp|lt|gt|quot|#39);)/);
    }),
  );
});
