import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { writeFileAtomically, writeFileAtomicallySync, writeFully } from "./atomic-file.js";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "atomic-file-"));
});
afterEach(() => rm(folder, { recursive: true }));

const write = (text: string) =>
  writeFileAtomically(join(folder, "file"), (handle) => writeFully(handle, Buffer.from(text)));

it("writes and replaces files, and leaves nothing else behind", async () => {
  await write("first");
  await write("second");
  expect(await readFile(join(folder, "file"), "utf8")).toBe("second");
  expect(await readdir(folder)).toEqual(["file"]);
});

it("shows the old content until the new one is complete", async () => {
  await write("old");
  await writeFileAtomically(join(folder, "file"), async (handle) => {
    await writeFully(handle, Buffer.from("half"));
    expect(await readFile(join(folder, "file"), "utf8")).toBe("old");
  });
  expect(await readFile(join(folder, "file"), "utf8")).toBe("half");
});

it("keeps the old file and no temporary one when writing fails", async () => {
  await write("old");
  const failing = writeFileAtomically(join(folder, "file"), async (handle) => {
    await writeFully(handle, Buffer.from("half"));
    throw new Error("disk full");
  });
  await expect(failing).rejects.toThrow("disk full");
  expect(await readFile(join(folder, "file"), "utf8")).toBe("old");
  expect(await readdir(folder)).toEqual(["file"]);
});

it("does the same synchronously for small texts", async () => {
  writeFileAtomicallySync(join(folder, "file"), "first");
  writeFileAtomicallySync(join(folder, "file"), "second");
  expect(await readFile(join(folder, "file"), "utf8")).toBe("second");
  expect(() => writeFileAtomicallySync(join(folder, "none", "file"), "x")).toThrow(/ENOENT/);
  expect(await readdir(folder)).toEqual(["file"]);
});
