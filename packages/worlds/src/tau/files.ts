/** The files of a data folder, plain or gzipped, with errors that name file and fix. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { EnvError } from "@pawl/core/envs/env.js";
import { gunzipWithin } from "@pawl/core/files/inflate-limit.js";
import { readRegular } from "@pawl/core/files/regular-file.js";
import { parseJson } from "./json.js";
import { build, type Model } from "./model.js";
import { parseToml } from "./toml.js";
import { type Dict, isDict, PyError, type Value } from "./value.js";

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
