/** S-expressions with the line of every node: the syntax of PDDL. */
import { fault, type Source } from "./source.js";

/** A word. */
export interface Word {
  readonly kind: "word";
  readonly text: string;
  readonly line: number;
}

/** A parenthesised list. */
export interface List {
  readonly kind: "list";
  readonly items: readonly Node[];
  readonly line: number;
}

export type Node = Word | List;

interface OpenList extends List {
  readonly items: Node[];
}

/** Deeper nesting is rejected: the parsers built on this recurse. */
const DEEPEST = 200;

/** Parses the single expression of a text, lower-cased as in PDDL, without its `;` comments. */
export function parseExpression(source: Source): List {
  const text = source.text.toLowerCase();
  const stack: OpenList[] = [];
  let root: List | undefined;
  let line = 1;
  let at = 0;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code === 10) {
      line++;
      at++;
    } else if (code <= 32) {
      at++;
    } else if (code === 59) {
      const end = text.indexOf("\n", at);
      at = end === -1 ? text.length : end;
    } else if (code === 40) {
      if (root !== undefined && stack.length === 0)
        throw fault(source, line, "expected the end after the first expression, found another `(`");
      if (stack.length === DEEPEST)
        throw fault(source, line, `expressions are nested more than ${DEEPEST} deep`);
      const list: OpenList = { kind: "list", items: [], line };
      stack.at(-1)?.items.push(list);
      root ??= list;
      stack.push(list);
      at++;
    } else if (code === 41) {
      if (stack.pop() === undefined) throw fault(source, line, "`)` closes nothing");
      at++;
    } else {
      const start = at;
      at = endOfWord(text, at);
      const parent = stack.at(-1);
      if (parent === undefined)
        throw fault(source, line, `expected \`(\`, found the word \`${text.slice(start, at)}\``);
      parent.items.push({ kind: "word", text: text.slice(start, at), line });
    }
  }
  const open = stack.at(-1);
  if (open !== undefined)
    throw fault(source, line, `the text ends inside the list that line ${open.line} opens`);
  if (root === undefined) throw fault(source, line, "expected an expression, found nothing");
  return root;
}

function endOfWord(text: string, start: number): number {
  let at = start;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code <= 32 || code === 40 || code === 41 || code === 59) break;
    at++;
  }
  return at;
}

/** The expression as it would be written, for errors. */
export function written(node: Node): string {
  return node.kind === "word" ? node.text : `(${node.items.map(written).join(" ")})`;
}
