/** Python's text functions, where they determine what an original environment shows or scores. */

/** `str(number)` of a float: the shortest digits that round-trip, always with a point. */
export function floatText(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  const text = Object.is(value, -0) ? "-0" : String(value);
  const size = Math.abs(value);
  if (value !== 0 && (size >= 1e16 || size < 1e-4)) {
    const [digits, exponent] = value.toExponential().split("e") as [string, string];
    const sign = exponent[0];
    return `${digits}e${sign}${exponent.slice(1).padStart(2, "0")}`;
  }
  return Number.isInteger(value) ? `${text}.0` : text;
}

// Python counts the information separators and NEL as white space, but not the byte order mark.
const blank =
  "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const blankStart = new RegExp(`^${blank}+`);
const anyBlank = new RegExp(blank);

/** `text.strip()`. */
export function strip(text: string): string {
  let end = text.length;
  while (end > 0 && anyBlank.test(text[end - 1]!)) end--;
  return text.slice(0, end).replace(blankStart, "");
}

/** `repr(text)`. */
export function textRepr(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const inside = Array.from(text, (character) => {
    if (character === quote || character === "\\") return `\\${character}`;
    if (character === "\n") return "\\n";
    if (character === "\r") return "\\r";
    if (character === "\t") return "\\t";
    if (character === " " || !/[\p{C}\p{Z}]/u.test(character)) return character;
    const code = character.codePointAt(0)!;
    if (code <= 0xff) return `\\x${code.toString(16).padStart(2, "0")}`;
    if (code <= 0xffff) return `\\u${code.toString(16).padStart(4, "0")}`;
    return `\\U${code.toString(16).padStart(8, "0")}`;
  });
  return `${quote}${inside.join("")}${quote}`;
}

/** A map as Flask's `tojson` writes it: sorted, spaced, ASCII only, and safe inside HTML. */
export function jsonText(entries: ReadonlyMap<string, string>): string {
  const quote = (text: string): string =>
    JSON.stringify(text).replace(
      /[<>&'\u007f-\uffff]/g,
      (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
    );
  const keys = [...entries.keys()].sort();
  return `{${keys.map((key) => `${quote(key)}: ${quote(entries.get(key)!)}`).join(", ")}}`;
}
