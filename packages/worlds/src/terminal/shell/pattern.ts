/** Patterns of file names and of `case`: `*`, `?`, `[…]`. What a backslash precedes is plain. */
import { listFolder, lookUp } from "./file-system.js";
import { type Machine, spend } from "./machine.js";
import { classOf } from "./regex.js";
import { ShellError } from "./shell.js";

type Piece =
  | { readonly type: "many" }
  | { readonly type: "any" }
  | { readonly type: "one"; readonly character: string }
  | { readonly type: "set"; readonly test: RegExp };

const KEPT = 500;
const read = new Map<string, readonly Piece[]>();

function piecesOf(pattern: string): readonly Piece[] {
  const known = read.get(pattern);
  if (known !== undefined) return known;
  const pieces: Piece[] = [];
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern[at]!;
    if (character === "*") {
      if (pieces.at(-1)?.type !== "many") pieces.push({ type: "many" });
    } else if (character === "?") pieces.push({ type: "any" });
    else if (character === "[") {
      const set = classOf(pattern, at, true);
      if (set === undefined) pieces.push({ type: "one", character });
      else {
        pieces.push({ type: "set", test: new RegExp(`^${set.source}$`, "s") });
        at = set.end - 1;
      }
    } else if (character === "\\" && at + 1 < pattern.length) {
      at += 1;
      pieces.push({ type: "one", character: pattern[at]! });
    } else pieces.push({ type: "one", character });
  }
  if (read.size >= KEPT) read.delete(read.keys().next().value!);
  read.set(pattern, pieces);
  return pieces;
}

const fits = (piece: Piece, character: string): boolean =>
  piece.type === "any" ||
  (piece.type === "one" && piece.character === character) ||
  (piece.type === "set" && piece.test.test(character));

/** Whether a whole text fits a pattern. */
export function matches(machine: Machine, pattern: string, text: string): boolean {
  const pieces = piecesOf(pattern);
  let piece = 0;
  let at = 0;
  let star = -1;
  let retry = 0;
  let tries = 0;
  while (at < text.length) {
    tries += 1;
    const one = pieces[piece];
    if (one?.type === "many") {
      star = piece;
      retry = at;
      piece += 1;
    } else if (one !== undefined && fits(one, text[at]!)) {
      piece += 1;
      at += 1;
    } else if (star >= 0) {
      retry += 1;
      at = retry;
      piece = star + 1;
    } else break;
  }
  spend(machine, tries / 64);
  if (at < text.length) return false;
  while (pieces[piece]?.type === "many") piece += 1;
  return piece === pieces.length;
}

/** The regular expression of a pattern, for parts of texts. */
export function patternSource(pattern: string, isGreedy: boolean): string {
  return piecesOf(pattern)
    .map((piece) => {
      if (piece.type === "many") return isGreedy ? "[^]*" : "[^]*?";
      if (piece.type === "any") return "[^]";
      if (piece.type === "set") return piece.test.source.slice(1, -1);
      return piece.character.replace(/[\\^$.*+?()[\]{}|/]/, "\\$&");
    })
    .join("");
}

/** A text in which nothing is a pattern. */
export const plainPattern = (text: string): string => text.replace(/[\\*?[\]]/g, "\\$&");

/** Whether something in it is more than itself. */
export const isPattern = (pattern: string): boolean => /(?<!\\)(?:\\\\)*[*?[]/.test(pattern);

const unescaped = (pattern: string): string => pattern.replace(/\\(.)/gs, "$1");
/** Names that one pattern may stand for. */
const MOST_NAMES = 20_000;

/** The paths that a pattern stands for, sorted; none: it stands for itself. */
export function expandPaths(machine: Machine, folder: string, pattern: string): readonly string[] {
  const parts = pattern.split("/");
  let found: string[] = [""];
  for (const [n, part] of parts.entries()) {
    const isLast = n === parts.length - 1;
    const next: string[] = [];
    const end = isLast ? "" : "/";
    for (const prefix of found) {
      spend(machine, 1);
      if (!isPattern(part)) {
        next.push(prefix + unescaped(part) + end);
        continue;
      }
      const inside = prefix.startsWith("/") ? prefix : `${folder}/${prefix}`;
      const there = lookUp(machine.fs, inside);
      if (there?.kind !== "folder") continue;
      const hidden = part.startsWith(".") || part.startsWith("\\.");
      for (const name of listFolder(machine.fs, inside)) {
        if (name.startsWith(".") && !hidden) continue;
        if (matches(machine, part, name)) next.push(prefix + name + end);
      }
      if (next.length > MOST_NAMES) throw new ShellError("a pattern stands for too many names");
    }
    found = next;
  }
  const paths = found.filter(
    (path) =>
      lookUp(machine.fs, path.startsWith("/") ? path : `${folder}/${path}`, false) !== undefined,
  );
  return paths.sort();
}
