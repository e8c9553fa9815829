/** The files of a data folder, plain or gzipped, with errors that name file and fix. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { EnvError } from "@pawl/core/envs/env.js";
import { gunzipWithin } from "@pawl/core/files/inflate.js";
import { readRegular } from "@pawl/core/files/regular-file.js";
import { build, type Model } from "./model.js";
import { type Dict, isDict, isList, PyError, parseJson, type Value } from "./value.js";

const HELP = "See `pawl env info tau` for the files that are needed.";

/** One domain's folder. */
export interface DomainFiles {
  readonly folder: string;
  has(name: string): boolean;
  text(...names: readonly string[]): string;
  json(...names: readonly string[]): Value;
  /** A file with an object in it, JSON or TOML. */
  record(...names: readonly string[]): Dict;
  /** The same, checked against a model. */
  model(model: Model, ...names: readonly string[]): Dict;
}

/** The folder of a domain: `tauN/DOMAIN`, or `tauN/domains/DOMAIN` as in the original's repository. */
export function domainFiles(data: string, edition: 1 | 2, domain: string): DomainFiles {
  const folders = [`tau${edition}/${domain}`, `tau${edition}/domains/${domain}`];
  const folder = folders.map((one) => join(data, one)).find((one) => existsSync(one));
  if (folder === undefined)
    throw new EnvError(`${data} has no folder ${folders[0]} (nor ${folders[1]}). ${HELP}`);
  const path = (names: readonly string[]): string => {
    const found = names
      .flatMap((name) => [join(folder, name), join(folder, `${name}.gz`)])
      .find((one) => existsSync(one));
    if (found !== undefined) return found;
    throw new EnvError(`${folder} has no file ${names.join(" or ")} (or with .gz). ${HELP}`);
  };
  const read = (at: string): string => {
    try {
      const bytes = readRegular(at);
      return (at.endsWith(".gz") ? gunzipWithin(bytes) : bytes).toString("utf8");
    } catch (error) {
      throw new EnvError(`cannot read ${at}: ${(error as Error).message}. ${HELP}`, {
        cause: error,
      });
    }
  };
  const parsed = (at: string): Value => {
    const text = read(at);
    try {
      return /\.toml(\.gz)?$/.test(at) ? parseToml(text) : parseJson(text);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      throw new EnvError(`${at} is damaged: ${error.message}. Download it again.`, {
        cause: error,
      });
    }
  };
  const record = (at: string): Dict => {
    const value = parsed(at);
    if (isDict(value)) return value;
    throw new EnvError(`${at}: expected one object`);
  };
  return {
    folder,
    has: (name) => existsSync(join(folder, name)) || existsSync(join(folder, `${name}.gz`)),
    text: (...names) => read(path(names)),
    json: (...names) => parsed(path(names)),
    record: (...names) => record(path(names)),
    model(model, ...names) {
      const at = path(names);
      try {
        return build(model, record(at));
      } catch (error) {
        if (!(error instanceof PyError)) throw error;
        throw new EnvError(`${at}: ${error.message.split("\n    For further")[0]}`, {
          cause: error,
        });
      }
    },
  };
}

// The part of TOML that the telecom domain's databases are written in: tables, arrays of tables,
// and keys with strings, numbers, booleans and lists of them on one line.

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
