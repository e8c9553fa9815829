/**
 * The part of TOML that the telecom domain's databases are written in: tables, arrays of tables,
 * and keys with strings, numbers, booleans and lists of them on one line.
 */
import { parseJson } from "./json.js";
import { type Dict, isDict, isList, type Value } from "./value.js";

/** Parses a TOML text; what is none, or needs more of TOML, throws a `SyntaxError` with the line. */
export function parseToml(text: string): Dict {
  const root: Dict = new Map();
  let here = root;
  for (const [at, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.trim();
    const fail = (message: string): never => {
      throw new SyntaxError(`line ${at + 1}: ${message}`);
    };
    if (line === "" || line.startsWith("#")) continue;
    const [, array, table, key, value] =
      /^(?:\[\[([\w.-]+)\]\]|\[([\w.-]+)\]|([\w-]+)\s*=\s*(.+))$/.exec(line) ??
      fail("this is not read here");
    if (key !== undefined) {
      if (here.has(key)) fail(`${key} is there twice`);
      here.set(key, scalar(value!, fail));
    } else here = enter(root, (array ?? table)!.split("."), array !== undefined, fail);
  }
  return root;
}

/** Opens the table of a header, in the last element where a name on the way is an array. */
function enter(
  root: Dict,
  names: readonly string[],
  append: boolean,
  fail: (message: string) => never,
): Dict {
  let here = root;
  for (const [depth, name] of names.entries()) {
    const last = depth === names.length - 1;
    const known: Value | undefined = here.get(name);
    if (last && append) {
      if (known !== undefined && !isList(known)) fail(`${name} is no array of tables`);
      const table: Dict = new Map();
      here.set(name, [...((known as Value[] | undefined) ?? []), table]);
      return table;
    }
    const next: Value = isList(known) ? known.at(-1)! : (known ?? new Map());
    if (!isDict(next)) return fail(`${name} is no table`);
    if (known === undefined) here.set(name, next);
    here = next;
  }
  return here;
}

function scalar(text: string, fail: (message: string) => never): Value {
  // Strings, numbers, booleans and lists of them look as in JSON.
  try {
    return parseJson(text);
  } catch {
    return fail(`${text} is no value that is read here`);
  }
}
