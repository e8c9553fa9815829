/** Documents: links between them lead somewhere, files they name exist, and the reference is of today's schemas. */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { describe, expect, it } from "vitest";
import { slug } from "../docs/slug.js";

/** Every document that people read; the library's API is made when the site is. */
const documents = [
  "README.md",
  "CONTRIBUTING.md",
  "servers/torch/README.md",
  ...readdirSync("docs", { recursive: true, encoding: "utf8" })
    .map((file) => join("docs", file))
    .filter((file) => file.endsWith(".md") && !/node_modules|\.vitepress|reference.api/.test(file)),
];

const withoutCode = (text: string) => text.replace(/^ *```[\s\S]*?^ *```$/gm, "");

/** The anchors of a document's headings, as GitHub and the site make them. */
function anchorsOf(file: string): Set<string> {
  const headings = withoutCode(readFileSync(file, "utf8")).matchAll(/^#+ (.+)$/gm);
  return new Set(
    [...headings].map(([, heading]) => slug(heading!.replace(/[`*_]|\]\(.*?\)|\[/g, ""))),
  );
}

describe.each(documents)("%s", (file) => {
  const text = readFileSync(file, "utf8");

  it("has links that lead somewhere", () => {
    const broken: string[] = [];
    for (const [, target] of withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target!)) continue;
      const [path, anchor] = target!.split("#") as [string, string | undefined];
      const there = path === "" ? file : normalize(join(dirname(file), path));
      if (!existsSync(there)) broken.push(target!);
      else if (anchor !== undefined && !anchorsOf(there).has(anchor)) broken.push(target!);
    }
    expect(broken).toEqual([]);
  });

  it("names files that exist", () => {
    // Anywhere from the root of the repository; in code spans also below src, as in `update/weights.ts`.
    const full = text.matchAll(
      /(?<![\w/.-])(?:src|tests|bench|recipes|examples|servers|docs)\/[\w./*-]*\w/g,
    );
    const short = text.matchAll(/`([a-z][\w-]*(?:\/[\w.-]+)+\.(?:ts|py))`/g);
    const named = [...[...full].map(([path]) => path), ...[...short].map(([, path]) => path!)];
    // Made by npm run docs:build; `recipes/paper-*.ts` names the folder that it is in.
    const missing = named
      .filter((path) => !path.startsWith("docs/.vitepress"))
      .map((path) => path.replace(/\/[^/]*\*.*/, ""))
      .filter((path) => ![path, join("src", path), join(dirname(file), path)].some(existsSync));
    expect([...new Set(missing)]).toEqual([]);
  });
});

it("lists every document on the page of documents", () => {
  const list = readFileSync("docs/README.md", "utf8");
  const absent = documents
    .filter((file) => file.startsWith("docs") && file !== join("docs", "README.md"))
    .filter((file) => !list.includes(`](${file.slice("docs/".length)})`));
  expect(absent).toEqual([]);
});

it("has a reference that is up to date", () => {
  execFileSync("node", ["docs/reference.js", "--check"], {
    stdio: ["ignore", "inherit", "inherit"],
  });
});
