/**
 * Draws what a `pawl` command leaves on the terminal as an SVG: `node docs/picture.js FILE ARGS…`.
 * Its text goes to docs/recorded, under the same name; tests/docs.test.ts compares the two.
 *
 * Needs `script` (util-linux) for a pseudo-terminal. Understands what `pawl` writes: colours, cursor up,
 * erase below, carriage return.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

const [file, ...args] = process.argv.slice(2);
const command = `stty cols 100 rows 40; node dist/lib/main.js ${args.join(" ")}`;
const output = execFileSync("script", ["-qec", command, "/dev/null"], {
  encoding: "utf8",
  env: { ...process.env, TERM: "xterm", FORCE_COLOR: "1" },
});

const palette = { 31: "#e5534b", 32: "#57ab5a", 33: "#c69026", 34: "#539bf5", 36: "#39c5cf" };
let style = { color: "#d0d7de", bold: false, dim: false };
// An escape sequence, or any one character.
// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what is read here
const sequences = /\u001b\[[?\d;]*[A-Za-z]|[\s\S]/g;
const lines = [[]];
let row = 0;
for (const [token] of output.matchAll(sequences)) {
  if (token === "\n") {
    row++;
    lines[row] ??= [];
  } else if (token === "\r") continue;
  else if (!token.startsWith("\u001b")) lines[row].push({ ...style, text: token });
  else if (token.endsWith("A")) {
    row -= Number.parseInt(token.slice(2), 10);
    lines[row] = [];
  } else if (token.endsWith("J")) lines.length = row + 1;
  else if (token.endsWith("m")) {
    for (const code of token.slice(2, -1).split(";").map(Number)) {
      if (code === 0) style = { color: "#d0d7de", bold: false, dim: false };
      else if (code === 1) style = { ...style, bold: true };
      else if (code === 2) style = { ...style, dim: true };
      else if (code === 22) style = { ...style, bold: false, dim: false };
      else if (code === 39) style = { ...style, color: "#d0d7de" };
      else if (palette[code] !== undefined) style = { ...style, color: palette[code] };
    }
  }
}
while (lines.at(-1).length === 0) lines.pop();

const escapeXml = (text) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
const span = ({ color, bold, dim, text }) =>
  `<tspan fill="${color}"${bold ? ' font-weight="bold"' : ""}${dim ? ' fill-opacity="0.6"' : ""}>${escapeXml(text)}</tspan>`;
const runs = (line) =>
  line.reduce((all, cell) => {
    const last = all.at(-1);
    const same = last && ["color", "bold", "dim"].every((key) => last[key] === cell[key]);
    if (same) last.text += cell.text;
    else all.push({ ...cell });
    return all;
  }, []);
const [charWidth, lineHeight, margin] = [8.4, 19, 16];
const title = `$ npx pawl ${args.join(" ").replace(/ --out \S+/, "")}`;
const body = [[{ text: title, color: "#d0d7de", bold: true, dim: false }], ...lines];
const width =
  Math.ceil(
    Math.max(...body.map((line) => runs(line).reduce((n, run) => n + run.text.length, 0))) *
      charWidth,
  ) +
  2 * margin;
const height = body.length * lineHeight + 2 * margin;
const text = body
  .map(
    (line, i) =>
      `<text x="${margin}" y="${margin + (i + 0.8) * lineHeight}" xml:space="preserve">${runs(line).map(span).join("")}</text>`,
  )
  .join("\n");
writeFileSync(
  file,
  `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14">
<title>${escapeXml(title)}</title>
<rect width="100%" height="100%" rx="8" fill="#161b22"/>
${text}
</svg>
`,
);
const plain = body.map((line) =>
  runs(line)
    .map((run) => run.text)
    .join("")
    .trimEnd(),
);
mkdirSync("docs/recorded", { recursive: true });
writeFileSync(join("docs/recorded", `${basename(file, ".svg")}.txt`), `${plain.join("\n")}\n`);
