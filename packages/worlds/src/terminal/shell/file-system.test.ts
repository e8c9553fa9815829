import { describe, expect, it } from "vitest";
import * as files from "./file-system.js";
import { cloneFileSystem, createFileSystem, type FileSystem } from "./inodes.js";

const fresh = () => createFileSystem(1000);

describe("files in memory", () => {
  it("are written, listed, renamed and removed", () => {
    const fs = fresh();
    files.makeFolders(fs, "/a/b");
    files.writeFile(fs, "/a/b/one", "1\n");
    files.writeFile(fs, "/a/two", "2\n");
    expect(files.listFolder(fs, "/a/./b/..")).toEqual(["b", "two"]);
    files.renameFile(fs, "/a/b", "/c");
    expect(files.readFile(fs, "/c/one")).toBe("1\n");
    expect(files.realPath(fs, "/c/../c/one")).toBe("/c/one");
    expect(fs.bytes).toBe(4);
    files.removeFile(fs, "/c/one");
    files.removeFolder(fs, "/c");
    expect(files.lookUp(fs, "/c")).toBeUndefined();
    expect(fs.bytes).toBe(2);
  });

  it("are reached over links, which may lead nowhere or in circles", () => {
    const fs = fresh();
    files.makeFolders(fs, "/data/in");
    files.writeFile(fs, "/data/in/file", "x");
    files.makeLink(fs, "data/in", "/short");
    files.makeLink(fs, "/short/file", "/again");
    files.makeLink(fs, "round", "/round");
    files.makeLink(fs, "/", "/data/top");
    expect(files.readFile(fs, "/again")).toBe("x");
    expect(files.realPath(fs, "/short/../again")).toBe("/data/again");
    expect(files.listFolder(fs, "/data/top")).toContain("short");
    expect(files.statFile(fs, "/again", false).kind).toBe("link");
    expect(() => files.readFile(fs, "/round")).toThrow(/Too many levels/);
    files.makeHardLink(fs, "/data/in/file", "/second");
    files.writeFile(fs, "/second", "y");
    expect(files.readFile(fs, "/again")).toBe("y");
    files.removeFile(fs, "/data/in/file");
    expect(files.readFile(fs, "/second")).toBe("y");
  });

  it("differ from those of a copy once either is changed", () => {
    const fs = fresh();
    files.makeFolders(fs, "/a/b");
    files.writeFile(fs, "/a/b/one", "1");
    const copy = cloneFileSystem(fs);
    files.writeFile(fs, "/a/b/one", "2");
    files.writeFile(copy, "/a/new", "3");
    files.renameFile(copy, "/a/b", "/moved");
    expect(files.readFile(copy, "/moved/one")).toBe("1");
    expect(files.readFile(fs, "/a/b/one")).toBe("2");
    expect(files.listFolder(fs, "/a")).toEqual(["b"]);
    const third = cloneFileSystem(copy);
    files.removeFile(third, "/moved/one");
    expect(files.readFile(copy, "/moved/one")).toBe("1");
  });

  it.each<[string, (fs: FileSystem) => unknown, RegExp]>([
    ["a file for a folder", (fs) => files.readFile(fs, "/f/x"), /Not a directory/],
    ["a file with a slash", (fs) => files.readFile(fs, "/f/"), /Not a directory/],
    ["a missing folder", (fs) => files.writeFile(fs, "/none/x", ""), /No such file/],
    ["a folder into itself", (fs) => files.renameFile(fs, "/d", "/d/e/f"), /Invalid argument/],
    ["a folder that is not empty", (fs) => files.removeFolder(fs, "/d"), /not empty/],
    ["the root", (fs) => files.removeFolder(fs, "/"), /busy/],
    ["a long name", (fs) => files.writeFile(fs, `/${"x".repeat(256)}`, ""), /name too long/],
    ["a large file", (fs) => files.writeFile(fs, "/g", "x".repeat(9 * 2 ** 20)), /too large/],
    ["a folder over a file", (fs) => files.renameFile(fs, "/d", "/f"), /Not a directory/],
  ])("refuse %s", (_, act, message) => {
    const fs = fresh();
    files.makeFolders(fs, "/d/e");
    files.writeFile(fs, "/f", "");
    expect(() => act(fs)).toThrow(message);
  });

  it("are limited in number and in size", () => {
    const fs = fresh();
    const large = "x".repeat(8 * 2 ** 20);
    for (let n = 0; n < 4; n++) files.writeFile(fs, `/${n}`, large);
    expect(() => files.writeFile(fs, "/4", "x")).toThrow(/No space/);
    expect(() => {
      for (let n = 0; ; n++) files.makeFolder(fs, `/d${n}`);
    }).toThrow(/No space/);
  });

  it("have names that mean nothing to JavaScript", () => {
    const fs = fresh();
    for (const name of ["__proto__", "constructor", "toString"]) {
      expect(files.lookUp(fs, `/${name}`)).toBeUndefined();
      files.writeFile(fs, `/${name}`, name);
      expect(files.readFile(fs, `/${name}`)).toBe(name);
    }
  });
});
