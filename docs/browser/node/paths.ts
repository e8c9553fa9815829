/** `node:path` as on Unix, and the part of `node:url` that reads addresses of files. */

export const sep = "/";

export function normalize(path: string): string {
  const parts: string[] = [];
  for (const part of path.split("/"))
    if (part === "..") {
      if (parts.length > 0 && parts.at(-1) !== "..") parts.pop();
      else if (!path.startsWith("/")) parts.push("..");
    } else if (part !== "" && part !== ".") parts.push(part);
  return (path.startsWith("/") ? "/" : "") + parts.join("/") || ".";
}

export const join = (...parts: readonly string[]): string =>
  normalize(parts.filter((part) => part !== "").join("/"));

export const isAbsolute = (path: string): boolean => path.startsWith("/");

/** The current folder is the root. */
export function resolve(...parts: readonly string[]): string {
  const from = parts.findLastIndex(isAbsolute);
  return join("/", ...parts.slice(Math.max(0, from)));
}

export function dirname(path: string): string {
  const whole = normalize(path);
  const end = whole.lastIndexOf("/");
  return end < 0 ? "." : end === 0 ? "/" : whole.slice(0, end);
}

export function basename(path: string, ending = ""): string {
  const name = normalize(path).split("/").at(-1) ?? "";
  return ending !== "" && name !== ending && name.endsWith(ending)
    ? name.slice(0, -ending.length)
    : name;
}

export function extname(path: string): string {
  const name = basename(path);
  const dot = name.lastIndexOf(".");
  return dot <= 0 ? "" : name.slice(dot);
}

export function relative(from: string, to: string): string {
  const [a, b] = [from, to].map((path) => resolve(path).split("/").filter(Boolean)) as [
    string[],
    string[],
  ];
  let same = 0;
  while (same < a.length && same < b.length && a[same] === b[same]) same++;
  return [...a.slice(same).map(() => ".."), ...b.slice(same)].join("/");
}

export const posix = { sep, normalize, join, isAbsolute, resolve, dirname, basename, extname };
export const win32 = posix;

/** Modules of a bundle are in no folder: they count as the package's. */
export const fileURLToPath = (url: string | URL): string =>
  String(url).startsWith("file:") ? new URL(url).pathname : "/package/lib/module.js";
export const pathToFileURL = (path: string): URL => new URL(`file://${resolve(path)}`);
