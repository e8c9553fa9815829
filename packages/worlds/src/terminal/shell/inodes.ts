/**
 * A file system in memory. Contents are strings of bytes, one character from 0 to 255 each. A copy
 * shares every file and folder with its original until one of the two changes it.
 */

export type FileKind = "file" | "folder" | "link" | "device";

/** A file, a folder, a link or a device. */
export interface Inode {
  readonly kind: FileKind;
  mode: number;
  /** Seconds since 1970. */
  modified: number;
  /** How many names it has. */
  links: number;
  /** The bytes of a file, the target of a link, the name of a device. */
  content: string;
  /** What a folder holds, by name. */
  readonly entries: Map<string, number>;
  /** The folder that a folder is in. */
  parent: number;
  /** The command that an executable file is, if it is no script. */
  readonly program: string | undefined;
  /** The file system that may change it in place. */
  readonly owner: object;
}

/** Files and folders by their numbers. */
export interface FileSystem {
  readonly inodes: Map<number, Inode>;
  owner: object;
  next: number;
  /** Bytes in all files. */
  bytes: number;
  /** Seconds since 1970, for what changes next. */
  time: number;
}

const ERRORS = {
  ENOENT: "No such file or directory",
  EEXIST: "File exists",
  ENOTDIR: "Not a directory",
  EISDIR: "Is a directory",
  ENOTEMPTY: "Directory not empty",
  ELOOP: "Too many levels of symbolic links",
  ENAMETOOLONG: "File name too long",
  ENOSPC: "No space left on device",
  EFBIG: "File too large",
  EINVAL: "Invalid argument",
  EBUSY: "Device or resource busy",
  EPERM: "Operation not permitted",
} as const;

/** What a system call would have refused. */
export class FileError extends Error {
  constructor(readonly code: keyof typeof ERRORS) {
    super(ERRORS[code]);
  }
}

/** What a file system may hold. */
export const FILE_LIMITS = { bytes: 32 * 2 ** 20, fileBytes: 8 * 2 ** 20, inodes: 20_000 } as const;
const MOST_LINKS = 40;
const LONGEST_NAME = 255;
const LONGEST_PATH = 4096;

/** The number of the topmost folder. */
export const ROOT = 1;
const NONE: Map<string, number> = new Map();

export const fail = (code: keyof typeof ERRORS): never => {
  throw new FileError(code);
};

/** An empty file system. */
export function createFileSystem(time: number): FileSystem {
  const fs: FileSystem = { inodes: new Map(), owner: {}, next: ROOT, bytes: 0, time };
  add(fs, "folder", 0o755, ROOT);
  return fs;
}

/** An independent copy; neither of the two may now change what they share. */
export function cloneFileSystem(fs: FileSystem): FileSystem {
  fs.owner = {};
  return { ...fs, inodes: new Map(fs.inodes), owner: {} };
}

/** Makes an inode that has no name yet. */
export function add(
  fs: FileSystem,
  kind: FileKind,
  mode: number,
  parent: number,
  content = "",
  program?: string,
): number {
  if (fs.inodes.size >= FILE_LIMITS.inodes) fail("ENOSPC");
  const number = fs.next;
  fs.next += 1;
  fs.inodes.set(number, {
    kind,
    mode,
    modified: fs.time,
    links: 1,
    content,
    entries: kind === "folder" ? new Map() : NONE,
    parent,
    program,
    owner: fs.owner,
  });
  fs.bytes += content.length;
  return number;
}

/** The inode, made this file system's own. */
export function own(fs: FileSystem, number: number): Inode {
  const inode = fs.inodes.get(number) ?? fail("ENOENT");
  if (inode.owner === fs.owner) return inode;
  const entries = inode.kind === "folder" ? new Map(inode.entries) : NONE;
  const copy = { ...inode, entries, owner: fs.owner };
  fs.inodes.set(number, copy);
  return copy;
}

/** Where a path leads. */
export interface Place {
  /** The folder that has the name, or would have it. */
  readonly folder: number;
  readonly name: string;
  readonly number: number | undefined;
}

/** Follows an absolute path; only its last part may be missing. */
export function walk(fs: FileSystem, path: string, follow: boolean): Place {
  if (path.length > LONGEST_PATH) fail("ENAMETOOLONG");
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  const mustBeFolder = path.endsWith("/") || path.endsWith("/.");
  parts.reverse();
  let at = ROOT;
  let links = 0;
  let place: Place = { folder: ROOT, name: "/", number: ROOT };
  for (let name = parts.pop(); name !== undefined; name = parts.pop()) {
    const folder = fs.inodes.get(at)!;
    if (folder.kind !== "folder") fail("ENOTDIR");
    if (name.length > LONGEST_NAME) fail("ENAMETOOLONG");
    const number = name === ".." ? folder.parent : folder.entries.get(name);
    const isLast = parts.length === 0;
    place = { folder: at, name, number };
    if (number === undefined) {
      if (!isLast) fail("ENOENT");
      return place;
    }
    const inode = fs.inodes.get(number)!;
    if (inode.kind === "link" && (!isLast || follow || mustBeFolder)) {
      links += 1;
      if (links > MOST_LINKS) fail("ELOOP");
      if (inode.content.startsWith("/")) at = ROOT;
      parts.push(
        ...inode.content
          .split("/")
          .filter((part) => part !== "" && part !== ".")
          .reverse(),
      );
      // A link to `/` or to the folder that it is in.
      if (parts.length === 0) place = { folder: fs.inodes.get(at)!.parent, name: ".", number: at };
    } else at = number;
  }
  if (mustBeFolder && place.number !== undefined && fs.inodes.get(place.number)!.kind !== "folder")
    fail("ENOTDIR");
  return place;
}

/** The number of an existing file. */
export function find(fs: FileSystem, path: string, follow = true): number {
  if (path === "") fail("ENOENT");
  return walk(fs, path, follow).number ?? fail("ENOENT");
}
