/** What can be done with the files of a file system, by their paths. */
import {
  add,
  FILE_LIMITS,
  FileError,
  type FileKind,
  type FileSystem,
  fail,
  find,
  type Inode,
  own,
  type Place,
  ROOT,
  walk,
} from "./inodes.js";

/** What is known of a file without reading it. */
export type Stat = Readonly<Omit<Inode, "owner">> & { readonly number: number };

/** A path from the root. */
export const absolute = (folder: string, path: string): string =>
  path.startsWith("/") ? path : `${folder}/${path}`;

const statOf = (fs: FileSystem, number: number): Stat => ({ ...fs.inodes.get(number)!, number });

/** What is there; what is not, is an error. */
export const statFile = (fs: FileSystem, path: string, follow = true): Stat =>
  statOf(fs, find(fs, path, follow));

/** What is there, if anything. */
export function lookUp(fs: FileSystem, path: string, follow = true): Stat | undefined {
  try {
    const number = path === "" ? undefined : walk(fs, path, follow).number;
    return number === undefined ? undefined : statOf(fs, number);
  } catch (error) {
    if (error instanceof FileError) return undefined;
    throw error;
  }
}

/** What a folder holds, sorted by name. */
export function listFolder(fs: FileSystem, path: string): readonly string[] {
  const inode = fs.inodes.get(find(fs, path))!;
  if (inode.kind !== "folder") fail("ENOTDIR");
  return [...inode.entries.keys()].sort();
}

/** The bytes of a file. */
export function readFile(fs: FileSystem, path: string): string {
  const inode = fs.inodes.get(find(fs, path))!;
  if (inode.kind === "folder") fail("EISDIR");
  return inode.content;
}

/** The number of a file to write to, made if it is not there. */
export function openFile(fs: FileSystem, path: string, truncate: boolean, mode = 0o644): number {
  if (path === "") fail("ENOENT");
  const place = walk(fs, path, true);
  if (place.number === undefined) {
    if (path.endsWith("/")) fail("EISDIR");
    return enter(fs, place, "file", mode);
  }
  const inode = fs.inodes.get(place.number)!;
  if (inode.kind === "folder") fail("EISDIR");
  if (truncate && inode.kind === "file") setContent(fs, place.number, "");
  return place.number;
}

/** The present bytes of an open file; of one that is gone, none. */
export const contentOf = (fs: FileSystem, number: number): string =>
  fs.inodes.get(number)?.content ?? "";

/** Replaces the bytes of an open file; one that is gone keeps nothing. */
export function setContent(fs: FileSystem, number: number, content: string): void {
  if (!fs.inodes.has(number)) return;
  if (content.length > FILE_LIMITS.fileBytes) fail("EFBIG");
  const inode = own(fs, number);
  const bytes = fs.bytes + content.length - inode.content.length;
  if (bytes > FILE_LIMITS.bytes) fail("ENOSPC");
  fs.bytes = bytes;
  inode.content = content;
  inode.modified = fs.time;
}

/** Writes a whole file. */
export function writeFile(fs: FileSystem, path: string, content: string, mode?: number): void {
  const number = openFile(fs, path, false, mode);
  if (fs.inodes.get(number)!.kind !== "device") setContent(fs, number, content);
}

function enter(
  fs: FileSystem,
  { folder, name }: Place,
  kind: FileKind,
  mode: number,
  content = "",
  program?: string,
): number {
  const number = add(fs, kind, mode, folder, content, program);
  link(fs, folder, name, number);
  return number;
}

function link(fs: FileSystem, folder: number, name: string, number: number): void {
  const inode = own(fs, folder);
  inode.entries.set(name, number);
  inode.modified = fs.time;
}

/** A path without the slashes at its end. */
const bare = (path: string): string => path.replace(/\/+$/, "") || "/";

/** A place where nothing is yet. */
function free(fs: FileSystem, path: string): Place {
  const place = path === "" ? fail("ENOENT") : walk(fs, bare(path), false);
  if (place.number !== undefined) fail("EEXIST");
  return place;
}

export function makeFolder(fs: FileSystem, path: string, mode = 0o755): void {
  enter(fs, free(fs, path), "folder", mode);
}

/** Makes a folder and those above it that are missing. */
export function makeFolders(fs: FileSystem, path: string): void {
  let made = "";
  for (const part of path.split("/").filter((one) => one !== "")) {
    made += `/${part}`;
    const there = lookUp(fs, made);
    if (there === undefined) makeFolder(fs, made);
    else if (there.kind !== "folder") fail("ENOTDIR");
  }
}

export function makeLink(fs: FileSystem, target: string, path: string): void {
  enter(fs, free(fs, path), "link", 0o777, target);
}

/** A second name for a file. */
export function makeHardLink(fs: FileSystem, from: string, path: string): void {
  const number = find(fs, from, false);
  if (fs.inodes.get(number)!.kind === "folder") fail("EPERM");
  const { folder, name } = free(fs, path);
  link(fs, folder, name, number);
  own(fs, number).links += 1;
}

/** A device, or a program that is a command of the shell's. */
export function makeSpecial(
  fs: FileSystem,
  path: string,
  kind: "device" | "file",
  name: string,
): void {
  const place = free(fs, path);
  if (kind === "device") enter(fs, place, kind, 0o666, name);
  else enter(fs, place, kind, 0o755, "", name);
}

/** Removes a name of a file. */
export function removeFile(fs: FileSystem, path: string): void {
  if (path === "") fail("ENOENT");
  const place = walk(fs, path, false);
  const number = place.number ?? fail("ENOENT");
  if (fs.inodes.get(number)!.kind === "folder") fail("EISDIR");
  drop(fs, place, number);
}

/** Removes an empty folder. */
export function removeFolder(fs: FileSystem, path: string): void {
  const place = walk(fs, bare(path), false);
  const number = place.number ?? fail("ENOENT");
  const inode = fs.inodes.get(number)!;
  if (inode.kind !== "folder") fail("ENOTDIR");
  if (number === ROOT) fail("EBUSY");
  if (place.name === ".." || inode.entries.size > 0) fail("ENOTEMPTY");
  drop(fs, place, number);
}

function drop(fs: FileSystem, { folder, name }: Place, number: number): void {
  const above = own(fs, folder);
  above.entries.delete(name);
  above.modified = fs.time;
  const inode = own(fs, number);
  inode.links -= 1;
  if (inode.links > 0) return;
  fs.bytes -= inode.content.length;
  fs.inodes.delete(number);
}

/** Whether a folder is another, or inside it. */
function isWithin(fs: FileSystem, inner: number, outer: number): boolean {
  for (let at = inner; ; at = fs.inodes.get(at)!.parent) {
    if (at === outer) return true;
    if (at === ROOT) return false;
  }
}

/** Gives a file or folder another name, over what was there. */
export function renameFile(fs: FileSystem, from: string, to: string): void {
  const source = walk(fs, bare(from), false);
  const number = source.number ?? fail("ENOENT");
  const target = walk(fs, bare(to), false);
  const inode = fs.inodes.get(number)!;
  if (number === ROOT || source.name === "..") fail("EBUSY");
  if (target.number === number) return;
  if (inode.kind === "folder" && isWithin(fs, target.folder, number)) fail("EINVAL");
  if (target.number !== undefined) {
    const there = fs.inodes.get(target.number)!;
    if (there.kind === "folder") {
      if (inode.kind !== "folder") fail("EISDIR");
      if (there.entries.size > 0 || target.number === ROOT) fail("ENOTEMPTY");
    } else if (inode.kind === "folder") fail("ENOTDIR");
    drop(fs, target, target.number);
  }
  const above = own(fs, source.folder);
  above.entries.delete(source.name);
  above.modified = fs.time;
  link(fs, target.folder, target.name, number);
  if (inode.kind === "folder") own(fs, number).parent = target.folder;
}

export function changeMode(fs: FileSystem, path: string, mode: number): void {
  own(fs, find(fs, path)).mode = mode;
}

/** Sets when a file changed last. */
export function setModified(fs: FileSystem, path: string, time: number): void {
  own(fs, find(fs, path)).modified = time;
}

/** The path of what is there, without links and dots. */
export function realPath(fs: FileSystem, path: string): string {
  const { folder, name, number } = walk(fs, path, true);
  const isFolder = number !== undefined && fs.inodes.get(number)!.kind === "folder";
  return isFolder ? pathOf(fs, number) : `${pathOf(fs, folder)}/${name}`.replace("//", "/");
}

function pathOf(fs: FileSystem, number: number): string {
  const names: string[] = [];
  for (let at = number; at !== ROOT; ) {
    const { parent } = fs.inodes.get(at)!;
    const [name] = [...fs.inodes.get(parent)!.entries].find(([, one]) => one === at)!;
    names.push(name);
    at = parent;
  }
  return `/${names.reverse().join("/")}`;
}
