/** Task folders of Harbor as tasks: by split, and as what the shell of this process plays. */
import { join } from "node:path";
import { EnvError, type Task } from "@pawl/core/envs/env.js";
import {
  type FolderFiles,
  findHarborTasks,
  type HarborFolder,
  readHarborFolder,
} from "./harbor-folder.js";
import { imageOf } from "./harbor-image.js";
import { unknownCommands } from "./shell/names.js";
import { parse } from "./shell/parser.js";
import { bytesOfText } from "./shell/session.js";
import { ShellSyntaxError } from "./shell/syntax.js";
import type { TaskSource, TerminalTask } from "./task.js";

/** Folders that are splits where all tasks lie in them, as `pawl env export` writes them. */
const SPLITS = ["train", "valid", "test"];
/** What all tasks belong to otherwise. */
const ONE_SPLIT = "train";

/** Tasks in a folder. */
export interface HarborTasks extends TaskSource {
  folderOf(task: Task): HarborFolder;
  /** Why some cannot be played in process, a line each. */
  problems(): readonly string[];
}

interface HarborTasksOptions {
  /** Whether the shell of this process plays them. */
  readonly inProcess: boolean;
  /** Whether those that cannot be played are left out. */
  readonly skip: boolean;
}

/** The tasks in a folder; they are read when a split is asked for. */
export function harborTasks(folder: string, { inProcess, skip }: HarborTasksOptions): HarborTasks {
  const names = findHarborTasks(folder);
  const splitOf = (name: string): string => name.split("/")[0]!;
  const bySplit = names.every((name) => name.includes("/") && SPLITS.includes(splitOf(name)));
  const splits = bySplit
    ? SPLITS.filter((split) => names.some((one) => splitOf(one) === split))
    : [ONE_SPLIT];
  const read = (name: string): { folder: HarborFolder; task: TerminalTask | undefined } => {
    const found = readHarborFolder(folder, name);
    return { folder: found, task: inProcess ? taskOf(found) : undefined };
  };
  const list = (split: string) => (): readonly Task[] => {
    const problems: string[] = [];
    const tasks = names.flatMap((name): readonly Task[] => {
      if (bySplit && splitOf(name) !== split) return [];
      try {
        const { config, name: id } = read(name).folder;
        return [{ id, split, type: familyOf(config.metadata) }];
      } catch (error) {
        if (!(error instanceof EnvError)) throw error;
        problems.push(error.message);
        return [];
      }
    });
    if (problems.length > 0 && (!skip || tasks.length === 0))
      throw new EnvError(
        `${problems.slice(0, 3).join("\n")}\n${problems.length} of the tasks in ${folder} cannot be played; --env.skip leaves them out`,
      );
    return tasks;
  };
  const pathOf = ({ id }: Task): string => (names.length === 1 && names[0] === "" ? "" : id);
  return {
    lists: Object.fromEntries(splits.map((split) => [split, list(split)])),
    load: (task) => taskOf(readHarborFolder(folder, pathOf(task))),
    folderOf: (task) => readHarborFolder(folder, pathOf(task)),
    problems: () =>
      names.flatMap((name) => {
        try {
          read(name);
          return [];
        } catch (error) {
          if (error instanceof EnvError) return [error.message];
          throw error;
        }
      }),
  };
}

const familyOf = ({ family, category }: Readonly<Record<string, unknown>>): string => {
  const named = family ?? category;
  return typeof named === "string" && named !== "" ? named : "task";
};

/** What the shell plays of a folder; what it cannot play is refused by its name. */
function taskOf(folder: HarborFolder): TerminalTask {
  const { path, name, config, instruction, tests } = folder;
  const { prepare, ...image } = imageOf(folder);
  const texts = Object.fromEntries(
    [...tests].map(([file, { bytes }]) => [file, textOf(bytes, join(path, "tests", file))]),
  );
  for (const line of prepare) check(line, join(path, "environment/Dockerfile"));
  for (const [file, text] of Object.entries(texts))
    if (/\.(sh|bash)$/.test(file)) check(text, join(path, "tests", file));
  return {
    ...image,
    id: name,
    family: familyOf(config.metadata),
    difficulty: 1,
    instruction,
    test: texts["test.sh"]!,
    solution: solutionOf(folder.solution),
    prepare,
    testFiles: texts,
    testVariables: config.verifier.env,
  };
}

function textOf(bytes: Buffer, path: string): string {
  const text = bytes.toString("utf8");
  if (Buffer.from(text).equals(bytes)) return text;
  throw new EnvError(`terminal: ${path} is no text, and files in process are texts`);
}

/** Refuses a script that calls what the shell lacks. */
function check(script: string, at: string): void {
  const refuse = (why: string): never => {
    throw new EnvError(`terminal: ${at}: ${why}; play it with --env.runner docker`);
  };
  try {
    const unknown = unknownCommands(bytesOfText(script));
    if (unknown.length > 0) refuse(`in process there is no ${unknown.join(", ")}`);
  } catch (error) {
    if (!(error instanceof ShellSyntaxError)) throw error;
    refuse(`line ${error.line}: ${error.message}`);
  }
}

/** What only lasts as long as one shell. */
const SHELL_ONLY =
  /^\s*(\w+\+?=|export\b|declare\b|local\b|source\b|\.\s|shopt\b|set\b|trap\b|[\w-]+\s*\(\))/;

/** The commands of `solve.sh`, one per step where each stands by itself; otherwise all of it at once. */
export function solutionOf(solution: FolderFiles): readonly string[] {
  const script = solution.get("solve.sh")?.bytes.toString().trim();
  if (script === undefined || script === "") return [];
  const lines = script
    .split("\n")
    .filter((line) => !/^\s*(#|$)/.test(line) && !/^set -\w+( pipefail)?$/.test(line));
  if (lines.every((line) => !SHELL_ONLY.test(line) && isWhole(line))) return lines;
  // As one line, because an action is one.
  const escaped = script.replace(/[\\']/g, "\\$&").replaceAll("\n", "\\n");
  return [`eval $'${escaped}'`];
}

function isWhole(line: string): boolean {
  try {
    parse(bytesOfText(line));
    return !/<<|\\$/.test(line);
  } catch {
    return false;
  }
}
