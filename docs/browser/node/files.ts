/** `node:fs` and `node:fs/promises` in memory: files and folders by their whole paths, no links. */
import { basename, dirname, join, resolve } from "./paths.js";

type Data = Uint8Array | string;

interface File {
  readonly ino: number;
  bytes: Uint8Array;
  /** How many of the bytes are the file's; the rest is room to grow. */
  size: number;
  mtimeMs: number;
  nlink: number;
  /** Increases with every change. */
  version: number;
}

export const files = new Map<string, File>();
const folders = new Map<string, number>([["/", 1]]);
const open_ = new Map<
  number,
  { readonly path: string; file: File | undefined; at: number; append: boolean }
>();
let last = 1;

export const constants = { O_RDONLY: 0, O_NONBLOCK: 0, W_OK: 2, R_OK: 4, COPYFILE_EXCL: 1 };

function fail(code: string, call: string, path: string): never {
  const words: Readonly<Record<string, string>> = {
    ENOENT: "no such file or directory",
    EEXIST: "file already exists",
    ENOTDIR: "not a directory",
    EISDIR: "illegal operation on a directory",
    ENOTEMPTY: "directory not empty",
    EBADF: "bad file descriptor",
  };
  throw Object.assign(new Error(`${code}: ${words[code]}, ${call} '${path}'`), {
    code,
    path,
    syscall: call,
  });
}

export const made = (bytes: Uint8Array, ino = ++last): File => ({
  ...{ ino, bytes, size: bytes.length },
  ...{ mtimeMs: Date.now(), nlink: 1, version: 0 },
});
export const content = ({ bytes, size }: File): Uint8Array => bytes.subarray(0, size);
export const changed = (file: File): void => {
  file.version++;
  file.mtimeMs = Date.now();
};

function resize(file: File, size: number): void {
  if (size > file.bytes.length) {
    const more = new Uint8Array(Math.max(size, 2 * file.bytes.length));
    more.set(content(file));
    file.bytes = more;
  } else if (size < file.size) file.bytes.fill(0, size, file.size);
  file.size = size;
}

function put(path: string, file: File, call: string): void {
  if (folders.has(path)) fail("EISDIR", call, path);
  if (!folders.has(dirname(path))) fail("ENOENT", call, path);
  files.set(path, file);
}

/** The file behind a path or a descriptor. */
function fileOf(at: string | number, call: string): File {
  if (typeof at === "number") {
    const opened = open_.get(at) ?? fail("EBADF", call, String(at));
    return opened.file ?? fail("EISDIR", call, opened.path);
  }
  const path = resolve(at);
  return files.get(path) ?? fail(folders.has(path) ? "EISDIR" : "ENOENT", call, at);
}

const dataOf = (data: Data, encoding?: BufferEncoding): Uint8Array =>
  typeof data === "string" ? Buffer.from(data, encoding) : data;

type Encoded = BufferEncoding | { readonly encoding?: BufferEncoding | null } | null | undefined;
const encodingOf = (options: Encoded): BufferEncoding | null | undefined =>
  typeof options === "string" ? options : options?.encoding;

// Reading.

export const existsSync = (path: string): boolean =>
  files.has(resolve(path)) || folders.has(resolve(path));

export function readFileSync(at: string | number, options?: Encoded): Buffer | string {
  const bytes = Buffer.from(content(fileOf(at, "open")));
  const encoding = encodingOf(options);
  return encoding ? bytes.toString(encoding) : bytes;
}

function statusOf(path: string, file: File | undefined) {
  const { ino = folders.get(path) ?? 0, size = 0, mtimeMs = 0, nlink = 1 } = file ?? {};
  return {
    ...{ ino, size, mtimeMs, nlink, dev: 1, mode: 0o644, mtime: new Date(mtimeMs) },
    isFile: () => file !== undefined,
    isDirectory: () => file === undefined,
    isSymbolicLink: () => false,
    isFIFO: () => false,
    isSocket: () => false,
  };
}
type Status = ReturnType<typeof statusOf>;

export function statSync(
  at: string,
  { throwIfNoEntry = true }: { readonly throwIfNoEntry?: boolean } = {},
): Status | undefined {
  const path = resolve(at);
  if (existsSync(path)) return statusOf(path, files.get(path));
  return throwIfNoEntry ? fail("ENOENT", "stat", at) : undefined;
}
export const lstatSync = statSync;

export function fstatSync(descriptor: number): Status {
  const { path, file } = open_.get(descriptor) ?? fail("EBADF", "fstat", String(descriptor));
  return statusOf(path, file);
}

interface Listing {
  readonly withFileTypes?: boolean;
  readonly recursive?: boolean;
}

export function readdirSync(at: string, { withFileTypes, recursive }: Listing = {}) {
  const path = resolve(at);
  if (!folders.has(path)) fail(files.has(path) ? "ENOTDIR" : "ENOENT", "scandir", at);
  const start = path === "/" ? "/" : `${path}/`;
  const below = [...files.keys(), ...folders.keys()]
    .filter((one) => one.startsWith(start) && one !== path)
    .map((one) => one.slice(start.length))
    .filter((name) => recursive === true || !name.includes("/"))
    .sort();
  if (!withFileTypes) return below;
  return below.map((name) => ({
    name: basename(name),
    parentPath: dirname(start + name),
    isFile: () => files.has(start + name),
    isDirectory: () => folders.has(start + name),
    isSymbolicLink: () => false,
  }));
}

const realpath = (path: string): string =>
  existsSync(path) ? resolve(path) : fail("ENOENT", "realpath", path);
export const realpathSync = Object.assign(realpath, { native: realpath });
export const readlinkSync = (path: string): never => fail("ENOENT", "readlink", path);

// Writing.

export function mkdirSync(at: string, options: { readonly recursive?: boolean } = {}): void {
  const path = resolve(at);
  if (folders.has(path)) {
    if (options.recursive) return;
    fail("EEXIST", "mkdir", at);
  }
  if (files.has(path)) fail("EEXIST", "mkdir", at);
  if (!folders.has(dirname(path))) {
    if (!options.recursive) fail("ENOENT", "mkdir", at);
    mkdirSync(dirname(path), options);
  }
  folders.set(path, ++last);
}

export function writeFileSync(
  at: string | number,
  data: Data,
  options?: Encoded | { readonly flag?: string; readonly encoding?: BufferEncoding },
): void {
  const bytes = dataOf(data, encodingOf(options as Encoded) ?? undefined);
  const flag = (options as { readonly flag?: string } | undefined)?.flag ?? "w";
  if (typeof at === "number") return void writeSync(at, bytes);
  const descriptor = openSync(at, flag);
  writeSync(descriptor, bytes);
  closeSync(descriptor);
}
export const appendFileSync = (path: string, data: Data): void =>
  writeFileSync(path, data, { flag: "a" });

export function truncateSync(path: string, size = 0): void {
  const file = fileOf(path, "truncate");
  resize(file, size);
  changed(file);
}

export function renameSync(from: string, to: string): void {
  const [source, target] = [resolve(from), resolve(to)];
  const file = files.get(source);
  if (file !== undefined) {
    if (source === target) return;
    const replaced = files.get(target);
    put(target, file, "rename");
    if (replaced !== undefined) replaced.nlink = 0;
    files.delete(source);
    return;
  }
  if (!folders.has(source)) fail("ENOENT", "rename", from);
  if (files.has(target)) fail("ENOTDIR", "rename", to);
  if (folders.has(target) && readdirSync(target).length > 0) fail("ENOTEMPTY", "rename", to);
  const inside = (path: string): boolean => path === source || path.startsWith(`${source}/`);
  const moved = (path: string): string => target + path.slice(source.length);
  for (const [path, ino] of [...folders])
    if (inside(path)) {
      folders.delete(path);
      folders.set(moved(path), ino);
    }
  for (const [path, one] of [...files])
    if (inside(path)) {
      files.delete(path);
      files.set(moved(path), one);
    }
}

export function cpSync(from: string, to: string): void {
  const file = files.get(resolve(from));
  if (file !== undefined) {
    writeFileSync(to, content(file).slice());
    return;
  }
  mkdirSync(to, { recursive: true });
  for (const name of readdirSync(from) as string[]) cpSync(join(from, name), join(to, name));
}

export function linkSync(from: string, to: string): void {
  const path = resolve(to);
  if (existsSync(path)) fail("EEXIST", "link", to);
  const file = fileOf(from, "link");
  put(path, file, "link");
  file.nlink++;
}

export function unlinkSync(at: string): void {
  const file = fileOf(at, "unlink");
  file.nlink--;
  files.delete(resolve(at));
}

export function rmSync(
  at: string,
  { recursive, force }: { readonly recursive?: boolean; readonly force?: boolean } = {},
): void {
  const path = resolve(at);
  if (files.has(path)) unlinkSync(path);
  else if (!folders.has(path)) {
    if (!force) fail("ENOENT", "rm", at);
  } else {
    if (!recursive) fail("EISDIR", "rm", at);
    for (const one of [...files.keys()]) if (one.startsWith(`${path}/`)) unlinkSync(one);
    for (const one of [...folders.keys()])
      if (one === path || one.startsWith(`${path}/`)) folders.delete(one);
  }
}

export function utimesSync(path: string, _: Date | number, at: Date | number): void {
  const file = fileOf(path, "utime");
  file.mtimeMs = Number(at);
  file.version++;
}

// Descriptors.

export function openSync(at: string, flags: string | number = "r"): number {
  const path = resolve(at);
  const flag = String(flags || "r");
  if (flag.includes("x") && existsSync(path)) fail("EEXIST", "open", at);
  if (/^[wa]/.test(flag) && !files.has(path)) put(path, made(new Uint8Array()), "open");
  else if (flag.startsWith("w")) truncateSync(path);
  else if (!existsSync(path)) fail("ENOENT", "open", at);
  const descriptor = ++last;
  open_.set(descriptor, { path, file: files.get(path), at: 0, append: flag.startsWith("a") });
  return descriptor;
}

export function closeSync(descriptor: number): void {
  if (!open_.delete(descriptor)) fail("EBADF", "close", String(descriptor));
}

export function readSync(
  descriptor: number,
  into: Uint8Array,
  offset = 0,
  length = into.length - offset,
  position: number | null = null,
): number {
  const bytes = content(fileOf(descriptor, "read"));
  const opened = open_.get(descriptor)!;
  const from = position ?? opened.at;
  const part = bytes.subarray(from, from + length);
  into.set(part, offset);
  if (position === null) opened.at += part.length;
  return part.length;
}

export function writeSync(
  descriptor: number,
  data: Data,
  offset = 0,
  length?: number,
  position: number | null = null,
): number {
  const file = fileOf(descriptor, "write");
  const opened = open_.get(descriptor)!;
  const whole = dataOf(data);
  const bytes =
    typeof data === "string" ? whole : whole.subarray(offset, offset + (length ?? whole.length));
  const at = opened.append ? file.size : (position ?? opened.at);
  if (at + bytes.length > file.size) resize(file, at + bytes.length);
  file.bytes.set(bytes, at);
  if (position === null) opened.at = at + bytes.length;
  changed(file);
  return bytes.length;
}

export function ftruncateSync(descriptor: number, size = 0): void {
  const file = fileOf(descriptor, "ftruncate");
  resize(file, size);
  changed(file);
}

export const fsyncSync = (): void => undefined;
export const fdatasyncSync = fsyncSync;

// Promises.

export const mkdir = async (path: string, options?: { readonly recursive?: boolean }) =>
  mkdirSync(path, options);
export const mkdtemp = async (start: string): Promise<string> => {
  const path = `${start}${++last}`;
  mkdirSync(path, { recursive: true });
  return path;
};
export const readFile = async (path: string, options?: Encoded) => readFileSync(path, options);
export const writeFile = async (path: string, data: Data, options?: Encoded) =>
  writeFileSync(path, data, options);
export const appendFile = async (path: string, data: Data) => appendFileSync(path, data);
export const readdir = async (path: string, options?: Listing) => readdirSync(path, options);
export const rename = async (from: string, to: string) => renameSync(from, to);
export const rm = async (path: string, options?: Parameters<typeof rmSync>[1]) =>
  rmSync(path, options);
export const link = async (from: string, to: string) => linkSync(from, to);
export const unlink = async (path: string) => unlinkSync(path);
export const stat = async (path: string) => statSync(path);
export const copyFile = async (from: string, to: string) => cpSync(from, to);
export const cp = copyFile;
export const statfs = async () => ({ bavail: 2 ** 20, bsize: 4096 });
export const symlink = async (_: string, path: string) => fail("ENOENT", "symlink", path);

export async function open(path: string, flags?: string | number) {
  const descriptor = openSync(path, flags);
  return {
    fd: descriptor,
    read: async (into: Uint8Array, offset?: number, length?: number, position?: number | null) => ({
      bytesRead: readSync(descriptor, into, offset, length, position),
      buffer: into,
    }),
    write: async (data: Data, offset?: number, length?: number, position?: number | null) => ({
      bytesWritten: writeSync(descriptor, data, offset, length, position),
      buffer: data,
    }),
    readFile: async (options?: Encoded) => readFileSync(descriptor, options),
    writeFile: async (data: Data) => writeFileSync(descriptor, data),
    truncate: async (size?: number) => ftruncateSync(descriptor, size),
    stat: async () => fstatSync(descriptor),
    sync: async () => undefined,
    datasync: async () => undefined,
    close: async () => closeSync(descriptor),
  };
}

const refuse = (): never => {
  throw new Error("files of this page are read as a whole");
};
export const createReadStream = refuse;
export const openAsBlob = refuse;

// Our modules look for the package's folder by its manifest.
mkdirSync("/package/lib", { recursive: true });
mkdirSync("/tmp");
writeFileSync(
  "/package/package.json",
  JSON.stringify({ name: "pawl", version: VERSION, private: false }),
);

declare const VERSION: string;
