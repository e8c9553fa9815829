/**
 * Consent: what a command starts, calls, sends keys to or writes to, its user has named, now or before.
 *
 * Settings also come from run folders, which may be anyone's. So while a command runs, whatever opens a
 * world, an engine, a chat model, an encoder or a tracker asks here first. Named is what stands on the
 * command line, in a configuration file, or in a run that --trust names; it is remembered on this machine,
 * so that going on with a run where it was started needs nothing. A program that uses Pawl as a library
 * decides for itself: there nothing is asked.
 */
import { createHash } from "node:crypto";
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
} from "node:fs";
import { homedir } from "node:os";
import { dirname, join, relative, resolve, sep } from "node:path";
import type { z } from "zod";
import { UserError } from "../errors.js";
import {
  folderIn,
  originOf,
  programIdentity,
  programName,
  type Reached,
  reachedBy,
  textsIn,
} from "./reach.js";

/** What the user of a command has named. */
interface Named {
  readonly texts: ReadonlySet<string>;
  readonly programs: ReadonlySet<string>;
  readonly origins: ReadonlySet<string>;
  readonly folders: ReadonlySet<string>;
  /** The runs that the command line names, for the advice in refusals. */
  readonly runs: readonly string[];
}

let named: Named | undefined;

/** Asks from now on, until the returned function is called; `given` is all that the user has named. */
export function askConsent(given: readonly unknown[], runs: readonly string[]): () => void {
  const before = named;
  const values = given.flat().flatMap(readings);
  const texts = values.flatMap(textsIn);
  named = {
    texts: new Set(texts.flatMap((text) => [text, programName(text)])),
    programs: new Set(values.flatMap(programsIn)),
    origins: new Set(texts.flatMap((text) => originOf(text) ?? [])),
    folders: new Set(texts.flatMap((text) => [resolve(text), folderIn(text)])),
    runs,
  };
  return () => {
    named = before;
  };
}

/** A refused program, address, key or folder. */
class ConsentError extends UserError {
  override readonly name = "ConsentError";
}

/** Refuses settings that reach what the user has not named; `at` is where the settings stand. */
export function requireConsent(
  schema: z.core.$ZodType,
  settings: unknown,
  ...at: readonly string[]
): void {
  if (named !== undefined) requireNamed(reachedBy(schema, settings, at).filter(matters));
}

/** Refuses to download a model, such as one that a run names, from where the user has not named it. */
export function requireDownload(name: string, from: string): void {
  const one = { kind: "download", setting: name, identity: name } as const;
  if (named !== undefined) requireNamed([{ ...one, shown: `is downloaded from ${from}` }]);
}

/** Refuses a run with links to files elsewhere, which would be read, published or written to. */
export function requireOwnFiles(run: string): void {
  if (named === undefined) return;
  const reached = linksOutOf(run).map(({ path, target }) => ({
    kind: "folder" as const,
    setting: path,
    identity: target,
    shown: `leads to ${target}`,
  }));
  requireNamed(reached);
}

function requireNamed(reached: readonly Reached[]): void {
  const allowed = reached.filter((one) => isNamed(one, named!) || isRemembered(one));
  const refused = reached.filter((one) => !allowed.includes(one));
  if (refused.length > 0) throw refusal(refused, named!.runs);
  for (const one of allowed) remember(one);
}

/** A key that is not there cannot be sent. */
const matters = ({ key }: Reached): boolean =>
  key === undefined || (process.env[key.variable] ?? "") !== "";

/** Whether a text names a model of the hub or a package; a revision or a file may follow. */
function names(text: string, model: string): boolean {
  const [given, wanted] = [text, model].map((one) => one.replace(/^(hub|npm):/, "")) as [
    string,
    string,
  ];
  return (
    given === wanted || (given.startsWith(wanted) && /^[@:/#]/.test(given.slice(wanted.length)))
  );
}

function isNamed({ kind, identity, key }: Reached, of: Named): boolean {
  const { texts, programs, origins, folders } = of;
  if (kind === "address") return origins.has(identity);
  if (kind === "program") return programs.has(identity) || texts.has(identity);
  if (kind === "folder") return folders.has(identity);
  if (kind === "download") return [...texts].some((text) => names(text, identity));
  const { variable, origin, usual } = key!;
  return texts.has(variable) || (usual && origins.has(origin));
}

function refusal(refused: readonly Reached[], runs: readonly string[]): ConsentError {
  const list = refused.map(({ setting, shown }) => `  ${setting} ${shown}`).join("\n");
  const flag = `--trust ${runs.length === 1 ? runs[0] : "RUN"}`;
  return new ConsentError(
    `a recorded run asks for what you have not named on this machine:\n${list}\nA run folder may be anyone's. If you want this, add ${flag}, or give these settings yourself.`,
  );
}

/** An argument as it is, the value after its equals sign, the items of a list, and what its JSON says. */
function readings(given: unknown): readonly unknown[] {
  if (typeof given !== "string") return [given];
  const value = /^--[\w.-]+=/.test(given) ? given.slice(given.indexOf("=") + 1) : given;
  return [given, value, ...value.split(",").map((item) => item.trim()), ...jsonIn(value)];
}

function jsonIn(text: string): readonly unknown[] {
  if (!/^\s*[[{]/.test(text)) return [];
  try {
    return [JSON.parse(text)];
  } catch {
    return [];
  }
}

function programsIn(value: unknown): readonly string[] {
  if (typeof value !== "object" || value === null) return [];
  const own = programIdentity(value);
  return [...(own === undefined ? [] : [own]), ...Object.values(value).flatMap(programsIn)];
}

const place = (): string => join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "pawl");
const list = (): string => join(place(), "named");

/** Hashes, since commands may hold what nobody else should read. */
const digest = ({ kind, identity }: Reached): string =>
  createHash("sha256").update(`${kind}\0${identity}`).digest("hex");

function isRemembered(one: Reached): boolean {
  try {
    return readFileSync(list(), "utf8").split("\n").includes(digest(one));
  } catch {
    return false;
  }
}

/** If it cannot be written, it must be named again next time. */
function remember(one: Reached): void {
  if (isRemembered(one)) return;
  try {
    mkdirSync(place(), { recursive: true, mode: 0o700 });
    appendFileSync(list(), `${digest(one)}\n`, { mode: 0o600 });
  } catch {
    // A read-only home: nothing is remembered.
  }
}

/** A link, and the absolute path that it leads to. */
interface OutsideLink {
  /** Within the folder. */
  readonly path: string;
  readonly target: string;
}

/** The links of a folder, at any depth, that lead out of it. */
export function linksOutOf(folder: string): readonly OutsideLink[] {
  const root = realpathSync(folder);
  return readdirSync(root, { recursive: true, withFileTypes: true }).flatMap((entry) => {
    if (!entry.isSymbolicLink()) return [];
    const link = join(entry.parentPath, entry.name);
    const target = targetOf(link);
    return target.startsWith(root + sep) ? [] : [{ path: relative(root, link), target }];
  });
}

/** What is not there yet would be made by writing through the link. */
function targetOf(link: string): string {
  try {
    return realpathSync(link);
  } catch {
    return resolve(dirname(link), readlinkSync(link));
  }
}
