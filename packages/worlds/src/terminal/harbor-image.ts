/**
 * What a task's Dockerfile makes, as far as the shell of this process can make it: files are
 * copied, and what `RUN` asks for is left to the shell. Anything else is refused by its line.
 */
import { posix } from "node:path";
import { EnvError } from "@pawl/core/envs/env.js";
import type { FolderFiles, HarborFolder } from "./harbor-folder.js";
import { quoted } from "./task.js";

/** How a shell begins. */
export interface ImageParts {
  readonly folder: string;
  readonly files: Readonly<Record<string, string>>;
  readonly modes: Readonly<Record<string, number>>;
  /** Command lines that prepare it, in order. */
  readonly prepare: readonly string[];
}

/** What says nothing about files. */
const LEFT_ALONE = new Set(["CMD", "ENTRYPOINT", "EXPOSE", "LABEL", "MAINTAINER", "STOPSIGNAL"]);

/** Reads the Dockerfile of a task; without one, the files of `environment/` lie in its folder. */
export function imageOf({ path, environment, config }: HarborFolder): ImageParts {
  const files: Record<string, string> = {};
  const modes: Record<string, number> = {};
  const prepare: string[] = [];
  let folder = "/";
  const put = (target: string, { bytes, mode }: { bytes: Buffer; mode: number }): void => {
    const text = bytes.toString("utf8");
    if (!Buffer.from(text).equals(bytes))
      throw new EnvError(`terminal: ${path}: ${target} is no text, and files in process are texts`);
    files[target] = text;
    if ((mode & 0o111) !== 0) modes[target] = mode;
  };
  const source = environment.get("Dockerfile")?.bytes.toString();
  if (source === undefined) {
    folder = config.environment.workdir ?? "/app";
    for (const [name, file] of environment) put(posix.join(folder, name), file);
  }
  let stages = 0;
  for (const { line, word, rest } of instructions(source ?? "")) {
    const refuse = (why: string): never => {
      throw new EnvError(
        `terminal: ${path}/environment/Dockerfile, line ${line}: ${why}; play it with --env.runner docker`,
      );
    };
    if (word === "FROM") {
      stages += 1;
      if (stages > 1) refuse("several stages are not built in process");
    } else if (word === "WORKDIR") {
      folder = posix.resolve(folder, rest);
      prepare.push(`mkdir -p ${quoted(folder)} && cd ${quoted(folder)}`);
    } else if (word === "COPY" || word === "ADD") copy(rest, refuse);
    else if (word === "RUN") {
      if (/^(--|\[)|<<-?\s*['"]?\w+/.test(rest)) refuse("this form of RUN is not read in process");
      prepare.push(rest);
    } else if (word === "ENV" || word === "ARG") {
      const pairs = /^\w+ [^=]*$/.test(rest) ? rest.replace(" ", "=") : rest;
      prepare.push(`export ${pairs}`);
    } else if (word === "USER") {
      if (!/^(root|0)$/.test(rest)) refuse(`there is no user ${rest} in process`);
    } else if (!LEFT_ALONE.has(word)) refuse(`${word} is not done in process`);
  }
  if (environment.has(".dockerignore"))
    throw new EnvError(`terminal: ${path}: .dockerignore is not read in process`);
  if (config.environment.workdir !== undefined) folder = config.environment.workdir;
  const env = Object.entries(config.environment.env);
  prepare.push(...env.map(([name, value]) => `export ${name}=${quoted(value)}`));
  return { folder, files, modes, prepare };

  function copy(rest: string, refuse: (why: string) => never): void {
    const words = rest.startsWith("[")
      ? (JSON.parse(rest) as string[])
      : rest.split(/\s+/).map((one) => one.replace(/^(["'])(.*)\1$/, "$2"));
    const flags = words.filter((one) => one.startsWith("--"));
    const chmod = flags.map((one) => /^--chmod=([0-7]+)$/.exec(one)?.[1]).find(Boolean);
    if (flags.some((one) => !/^--(chmod=[0-7]+|chown=\S+)$/.test(one)))
      refuse(`${flags.join(" ")} is not done in process`);
    const [to, ...from] = words.filter((one) => !one.startsWith("--")).reverse();
    if (to === undefined || from.length === 0) {
      refuse("expected what to copy and where to");
      return;
    }
    const target = posix.resolve(folder, to);
    for (const name of from) {
      const taken = [...below(environment, posix.normalize(`./${name}`))];
      if (taken.length === 0) refuse(`environment/ has no ${name}`);
      const into = to.endsWith("/") || to === "." || from.length > 1 || taken.length > 1;
      for (const { file, inside } of taken) {
        const at = inside === "" ? target : posix.join(target, inside);
        const mode = chmod === undefined ? file.mode : Number.parseInt(chmod, 8);
        put(inside === "" && into ? posix.join(target, posix.basename(name)) : at, {
          bytes: file.bytes,
          mode,
        });
      }
    }
  }
}

/** The files that a name in the context means: itself (`inside` is empty), or what lies below it. */
function* below(context: FolderFiles, name: string) {
  const own = context.get(name);
  if (own !== undefined) yield { file: own, inside: "" };
  const start = name === "." || name === "./" ? "" : `${name.replace(/\/$/, "")}/`;
  for (const [path, file] of context)
    if (path.startsWith(start) && own === undefined)
      yield { file, inside: path.slice(start.length) };
}

/** The instructions of a Dockerfile, with continued lines joined and comments left out. */
function* instructions(text: string) {
  let line = 0;
  let joined = "";
  let from = 1;
  for (const raw of text.split(/\r?\n/)) {
    line += 1;
    if (/^\s*(#|$)/.test(raw)) continue;
    if (joined === "") from = line;
    joined += raw.replace(/\\\s*$/, " ");
    if (/\\\s*$/.test(raw)) continue;
    const [, word, rest] = /^\s*(\w+)\s*(.*)$/s.exec(joined) ?? ["", joined.trim(), ""];
    joined = "";
    yield { line: from, word: word!.toUpperCase(), rest: rest!.trim() };
  }
}
