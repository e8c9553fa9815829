/**
 * A task folder of Harbor (schema 1.4, Harbor 0.25.0) as data: what it says, and its files. Nothing
 * of it is run here, links are not followed, and what does not fit is refused by its name.
 */
import { lstatSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { EnvError } from "@pawl/core/envs/env.js";
import { parse, TomlError } from "smol-toml";
import { z } from "zod";

/** Files by their paths inside one of the folders of a task. */
export type FolderFiles = ReadonlyMap<string, { readonly bytes: Buffer; readonly mode: number }>;

export interface HarborFolder {
  /** Where it lies, and its path inside the folder of tasks. */
  readonly path: string;
  readonly name: string;
  readonly config: HarborConfig;
  readonly instruction: string;
  /** What the image is built from. */
  readonly environment: FolderFiles;
  readonly tests: FolderFiles;
  readonly solution: FolderFiles;
}

const MOST_TASKS = 20_000;
const MOST_FILES = 2_000;
const LARGEST_FILE = 4 * 2 ** 20;
const LARGEST_TASK = 32 * 2 ** 20;
/** How far below the folder that is named a task may lie. */
const DEEPEST_TASK = 4;
const DEEPEST_FILE = 16;

const variables = z.record(z.string(), z.string()).default({});
const networkMode = z.enum(["public", "no-network", "allowlist"]);

/** What is read of `task.toml`; keys that it does not know are left alone, as Harbor does. */
const configSchema = z.looseObject({
  schema_version: z.string().optional(),
  version: z.string().optional(),
  metadata: z.record(z.string(), z.unknown()).default({}),
  environment: z
    .looseObject({
      docker_image: z.string().optional(),
      os: z.string().toLowerCase().pipe(z.literal("linux")).optional(),
      build_timeout_sec: z.number().positive().default(600),
      cpus: z.number().positive().optional(),
      memory_mb: z.int().positive().optional(),
      gpus: z.int().max(0).optional(),
      network_mode: networkMode.exclude(["allowlist"]).optional(),
      allow_internet: z.boolean().optional(),
      env: variables,
      workdir: z.string().optional(),
      healthcheck: z.undefined().optional(),
      tpu: z.undefined().optional(),
      mcp_servers: z.array(z.unknown()).max(0).optional(),
    })
    .prefault({}),
  agent: z.looseObject({ user: z.undefined().optional() }).prefault({}),
  verifier: z
    .looseObject({
      timeout_sec: z.number().positive().default(600),
      env: variables,
      user: z.undefined().optional(),
      environment_mode: z.literal("shared").optional(),
      environment: z.undefined().optional(),
      collect: z.array(z.unknown()).max(0).optional(),
    })
    .prefault({}),
  steps: z.array(z.unknown()).max(0).optional(),
});

export type HarborConfig = z.output<typeof configSchema>;

const refuse = (at: string, message: string): never => {
  throw new EnvError(`terminal: ${at}: ${message}`);
};

/** The task folders in a folder, by their paths there, sorted; their files are not read yet. */
export function findHarborTasks(folder: string): readonly string[] {
  const found: string[] = [];
  const look = (inside: string, depth: number): void => {
    const here = join(folder, inside);
    const entries = readdirSync(here, { withFileTypes: true });
    if (entries.some(({ name }) => name === "task.toml")) {
      found.push(inside);
      if (found.length > MOST_TASKS) refuse(folder, `it has more than ${MOST_TASKS} tasks`);
      return;
    }
    if (depth === DEEPEST_TASK) return;
    for (const entry of entries)
      if (entry.isDirectory() && !entry.name.startsWith("."))
        look(inside === "" ? entry.name : `${inside}/${entry.name}`, depth + 1);
  };
  try {
    look("", 0);
  } catch (error) {
    if (error instanceof EnvError) throw error;
    throw new EnvError(`terminal: cannot read ${folder}: ${(error as Error).message}`, {
      cause: error,
    });
  }
  if (found.length === 0)
    refuse(
      folder,
      "no task is there: expected a folder with task.toml, instruction.md, environment/ and tests/, or a folder of such",
    );
  return found.sort();
}

/** Reads a task folder. */
export function readHarborFolder(folder: string, name: string): HarborFolder {
  const path = join(folder, name);
  let size = 0;
  let count = 0;
  const bytesAt = (file: string): Buffer => {
    const facts = lstatSync(file, { throwIfNoEntry: false });
    if (facts === undefined) return refuse(file, "expected a file here, and there is none");
    if (facts.isSymbolicLink()) refuse(file, "links are not followed; put the file itself here");
    if (!facts.isFile()) refuse(file, "expected a plain file");
    if (facts.size > LARGEST_FILE)
      refuse(file, `has ${facts.size} bytes; a task's file may have ${LARGEST_FILE}`);
    size += facts.size;
    count += 1;
    if (size > LARGEST_TASK) refuse(path, `its files have more than ${LARGEST_TASK} bytes`);
    if (count > MOST_FILES) refuse(path, `it has more than ${MOST_FILES} files`);
    return readFileSync(file);
  };
  const filesIn = (part: string): FolderFiles => {
    const files = new Map<string, { bytes: Buffer; mode: number }>();
    const look = (inside: string, depth: number): void => {
      const here = join(path, part, inside);
      const facts = lstatSync(here, { throwIfNoEntry: false });
      if (facts === undefined) return;
      if (!facts.isDirectory()) refuse(here, "expected a folder, and no link");
      if (depth > DEEPEST_FILE) refuse(here, `folders are nested more than ${DEEPEST_FILE} deep`);
      for (const entry of readdirSync(here, { withFileTypes: true })) {
        const at = inside === "" ? entry.name : `${inside}/${entry.name}`;
        if (entry.isDirectory()) look(at, depth + 1);
        else {
          const bytes = bytesAt(join(path, part, at));
          files.set(at, { bytes, mode: lstatSync(join(path, part, at)).mode & 0o777 });
        }
      }
    };
    look("", 0);
    return files;
  };
  const config = readConfig(bytesAt(join(path, "task.toml")).toString(), join(path, "task.toml"));
  const instruction = bytesAt(join(path, "instruction.md")).toString().trim();
  const tests = filesIn("tests");
  if (!tests.has("test.sh")) refuse(join(path, "tests/test.sh"), "there is no such file");
  const environment = filesIn("environment");
  for (const file of environment.keys())
    if (/^(docker-)?compose\.ya?ml$/.test(file))
      refuse(join(path, "environment", file), "tasks of several containers cannot be played");
  return {
    path,
    name: name === "" ? basename(folder) : name,
    config,
    instruction,
    environment,
    tests,
    solution: filesIn("solution"),
  };
}

function readConfig(text: string, at: string): HarborConfig {
  let table: unknown;
  try {
    table = parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    return refuse(at, `line ${error.line}: ${error.message.split("\n")[0]}`);
  }
  const { success, data, error } = configSchema.safeParse(table);
  if (!success) {
    const [issue] = error.issues;
    return refuse(at, `${issue!.path.join(".")}: ${issue!.message}; this cannot be played`);
  }
  const version = data.schema_version ?? data.version ?? "1.4";
  if (!/^1\./.test(version)) refuse(at, `schema_version is ${version}; expected 1.0 to 1.4`);
  for (const section of ["environment", "verifier"] as const)
    for (const [name, value] of Object.entries(data[section].env))
      if (value.includes("${"))
        refuse(
          at,
          `${section}.env.${name} asks for a variable of this machine, which no task gets`,
        );
  return data;
}
