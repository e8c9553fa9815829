/**
 * What settings reach beyond this process: programs that are started, addresses that are called, keys
 * that are sent there, folders that are written to. A schema marks them; addresses are also recognised by
 * their form, wherever they stand.
 */
import { existsSync } from "node:fs";
import { isAbsolute, resolve } from "node:path";
import type { z } from "zod";

/** How a schema marks a setting. */
interface Mark {
  readonly reach: "program" | "address" | "variable" | "folder";
  /** The variables whose value is sent to the address as a key. */
  readonly keys?: readonly string[];
  /** Whether a path in the address's place is a folder that is written to. */
  readonly orFolder?: boolean;
}

const mark = <S extends z.ZodType>(schema: S, what: Mark): S => schema.meta({ ...what });

/** A program that is started, or several by name: each a text, or `{command, args, …}` or `{url, …}`. */
export const program = <S extends z.ZodType>(schema: S): S => mark(schema, { reach: "program" });

/** An address that is called, and the environment variables whose keys are sent there. */
export const address = <S extends z.ZodType>(schema: S, ...keys: readonly string[]): S =>
  mark(schema, { reach: "address", keys });

/** The same, where a folder that is written to can be named instead. */
export const addressOrFolder = <S extends z.ZodType>(schema: S, ...keys: readonly string[]): S =>
  mark(schema, { reach: "address", keys, orFolder: true });

/** The name of an environment variable, whose value is sent as a key to the address beside it. */
export const variable = <S extends z.ZodType>(schema: S): S => mark(schema, { reach: "variable" });

/** A folder that is written to. */
export const folder = <S extends z.ZodType>(schema: S): S => mark(schema, { reach: "folder" });

/** The mark of a setting, if it has one. */
export function markOf(schema: z.core.$ZodType): Mark | undefined {
  for (const layer of layersOf(schema)) {
    const meta = (layer as z.ZodType).meta() as Partial<Mark> | undefined;
    if (meta?.reach !== undefined) return meta as Mark;
  }
  return undefined;
}

/** One thing that settings reach. */
export interface Reached {
  readonly kind: "program" | "address" | "key" | "folder" | "download";
  /** The setting, such as `env.servers.files`. */
  readonly setting: string;
  /** What it is, such that equal things have equal texts. */
  readonly identity: string;
  /** What it is, for people. */
  readonly shown: string;
  /** Of a key: its variable, the address that gets it, and whether that variable is the usual one. */
  readonly key?: { readonly variable: string; readonly origin: string; readonly usual: boolean };
}

/** Everything that settings of a schema reach, except what the schema itself names by default. */
export function reachedBy(
  schema: z.core.$ZodType,
  settings: unknown,
  path: readonly string[] = [],
): readonly Reached[] {
  const own = markOf(schema);
  const setting = path.join(".");
  if (settings === undefined || settings === null || isDefault(schema, settings)) return [];
  if (own?.reach === "variable") return [];
  if (own?.reach === "program") return programsIn(settings, setting);
  if (own?.reach === "folder") return [folderAt(String(settings), setting)];
  if (own?.reach === "address")
    return textsOf(settings).flatMap((text) => addressIn(text, setting, own));
  const shapes = shapesOf(schema);
  if (shapes.length === 0 || typeof settings !== "object")
    return textsIn(settings).flatMap((text) => addressIn(text, setting));
  return Object.entries(settings).flatMap(([key, value]) => {
    // Of variants that share a name, one that reaches something counts.
    const named = shapes.flatMap((shape) => shape[key] ?? []);
    const inner = named.find((one) => markOf(one) !== undefined) ?? named[0];
    const below = [...path, key];
    if (inner === undefined)
      return textsIn(value).flatMap((text) => addressIn(text, below.join(".")));
    return [
      ...reachedBy(inner, value, below),
      ...keysBeside(shapes, settings, inner, value, below),
    ];
  });
}

/** The keys that variables named beside an address send there. */
function keysBeside(
  shapes: readonly Shape[],
  settings: object,
  inner: z.core.$ZodType,
  value: unknown,
  path: readonly string[],
): readonly Reached[] {
  if (markOf(inner)?.reach !== "address") return [];
  const origins = textsOf(value).flatMap((text) => originOf(text) ?? []);
  return shapes.flatMap((shape) =>
    Object.entries(shape).flatMap(([name, schema]) => {
      if (markOf(schema)?.reach !== "variable") return [];
      const named = (settings as Readonly<Record<string, unknown>>)[name];
      const usual = named === undefined || isDefault(schema, named);
      const key = String(named ?? defaultOf(schema));
      return origins.map((origin) => keyTo(key, origin, usual, path.join(".")));
    }),
  );
}

const keyTo = (name: string, origin: string, usual: boolean, setting: string): Reached => ({
  kind: "key",
  setting,
  identity: `${name} ${origin}`,
  shown: `sends the key in ${name} to ${origin}`,
  key: { variable: name, origin, usual },
});

function folderAt(path: string, setting: string): Reached {
  return { kind: "folder", setting, identity: resolve(path), shown: `writes to ${path}` };
}

/** The folder in a text such as `trackio=folder`. */
export const folderIn = (text: string): string => resolve(text.slice(text.indexOf("=") + 1));

/** What a text such as `http://host:8000/v1`, `mlflow=http://host` or `trackio=/folder` reaches. */
function addressIn(
  text: string,
  setting: string,
  { keys = [], orFolder = false }: Partial<Mark> = {},
): readonly Reached[] {
  const origin = originOf(text);
  if (origin === undefined) return orFolder ? [folderAt(folderIn(text), setting)] : [];
  return [
    { kind: "address", setting, identity: origin, shown: `calls ${origin}` },
    ...keys.map((key) => keyTo(key, origin, true, setting)),
  ];
}

/** The origin of an address, which may follow `NAME=`. */
export function originOf(text: string): string | undefined {
  const address = /^\s*(?:[\w-]{1,40}=)?((?:https?|wss?):.*)$/is.exec(text)?.[1];
  if (address === undefined || !URL.canParse(address)) return undefined;
  const { protocol, host } = new URL(address);
  return `${protocol}//${host}`;
}

function programsIn(settings: unknown, setting: string): readonly Reached[] {
  if (typeof settings === "string")
    return [
      { kind: "program", setting, identity: programName(settings), shown: `runs ${settings}` },
    ];
  if (typeof settings !== "object" || settings === null) return [];
  const identity = programIdentity(settings);
  if (identity !== undefined)
    return [{ kind: "program", setting, identity, shown: shownProgram(settings) }];
  return Object.entries(settings).flatMap(([name, one]) => programsIn(one, `${setting}.${name}`));
}

/** A command that is found by its name, or a file: another one in another folder. */
export const programName = (text: string): string =>
  !isAbsolute(text) && (/[\\/]/.test(text) || existsSync(text)) ? resolve(text) : text;

interface Server {
  readonly command?: unknown;
  readonly args?: unknown;
  readonly cwd?: unknown;
  readonly env?: unknown;
  readonly url?: unknown;
  readonly headers?: unknown;
}

/**
 * A server's program or address with everything that it is given. A program also has its working folder:
 * `./run.sh` is another program elsewhere.
 */
export function programIdentity(settings: object): string | undefined {
  const { command, args = [], cwd, env = {}, url, headers = {} } = settings as Server;
  if (typeof url === "string") return JSON.stringify([url, sorted(headers)]);
  if (typeof command !== "string") return undefined;
  return JSON.stringify([command, args, resolve(String(cwd ?? ".")), sorted(env)]);
}

function shownProgram(settings: object): string {
  const { command, args, url } = settings as Server;
  if (typeof url === "string") return `calls ${originOf(url) ?? url}`;
  return `runs ${[command, ...(Array.isArray(args) ? args : [])].join(" ")}`;
}

const sorted = (record: unknown): unknown =>
  typeof record === "object" && record !== null
    ? Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1))
    : record;

const textsOf = (value: unknown): readonly string[] =>
  typeof value === "string" ? [value] : Array.isArray(value) ? value.flatMap(textsOf) : [];

/** All texts in a value, at any depth. */
export function textsIn(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

type Shape = Readonly<Record<string, z.core.$ZodType>>;

/** The keys of an object's schema; those of all variants of a union. */
function shapesOf(schema: z.core.$ZodType): readonly Shape[] {
  const { def } = layersOf(schema).at(-1)!._zod;
  if (def.type === "object") return [(def as z.core.$ZodObjectDef).shape];
  return def.type === "union" ? (def as z.core.$ZodUnionDef).options.flatMap(shapesOf) : [];
}

/** A schema and what its defaults, optionality and preprocessing wrap, from the outside in. */
function layersOf(schema: z.core.$ZodType): readonly z.core.$ZodType[] {
  const layers = [schema];
  for (;;) {
    const def = layers.at(-1)!._zod.def as z.core.$ZodTypeDef & {
      readonly innerType?: z.core.$ZodType;
      readonly out?: z.core.$ZodType;
    };
    const next = def.type === "pipe" ? def.out : def.innerType;
    if (next === undefined) return layers;
    layers.push(next);
  }
}

function defaultOf(schema: z.core.$ZodType): unknown {
  for (const { _zod } of layersOf(schema)) {
    const def = _zod.def as z.core.$ZodTypeDef & { readonly defaultValue?: unknown };
    if (def.type === "default" || def.type === "prefault") return def.defaultValue;
  }
  return undefined;
}

function isDefault(schema: z.core.$ZodType, value: unknown): boolean {
  const usual = defaultOf(schema);
  return usual !== undefined && JSON.stringify(usual) === JSON.stringify(value);
}
