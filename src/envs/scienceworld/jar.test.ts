import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { createRandom } from "../../random.js";
import { EnvError } from "../env.js";
import { installed } from "./fixtures/installed.js";
import { openJar } from "./jar.js";
import { findJava } from "./java.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-jar-"));
afterAll(() => rmSync(folder, { recursive: true }));

function written(name: string, bytes: string | Buffer): string {
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return path;
}

/** A zip file with one stored file. */
function zipOf(name: string, text: string): Buffer {
  const title = Buffer.from(name);
  const data = Buffer.from(text);
  const local = Buffer.alloc(30);
  local.writeUInt32LE(0x04034b50, 0);
  local.writeUInt16LE(title.length, 26);
  const entry = Buffer.alloc(46);
  entry.writeUInt32LE(0x02014b50, 0);
  entry.writeUInt32LE(data.length, 20);
  entry.writeUInt16LE(title.length, 28);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(1, 10);
  end.writeUInt32LE(local.length + title.length + data.length, 16);
  return Buffer.concat([local, title, data, entry, title, end]);
}

describe("a jar", () => {
  it.each([
    ["text.jar", Buffer.from("this is no jar"), /text\.jar \(a test\) is no jar: .*pip install/],
    ["empty.jar", Buffer.alloc(0), /is no jar/],
    ["cut.jar", Buffer.from("PK\u0005\u0006"), /is no jar/],
    ["other.jar", zipOf("META-INF/MANIFEST.MF", ""), /not the simulator's: it has no py4j/],
  ])("%s is refused with its name and what to do", (name, bytes, reason) => {
    const path = written(name, bytes);
    expect(() => openJar(path, "a test")).toThrow(reason);
  });

  it("that is missing or a folder is refused", () => {
    expect(() => openJar(join(folder, "none.jar"), "a test")).toThrow(/cannot be read/);
    mkdirSync(join(folder, "folder.jar"));
    expect(() => openJar(join(folder, "folder.jar"), "a test")).toThrow(/it is a folder/);
  });

  it.skipIf("reason" in installed)("with damage never fails in another way", () => {
    const { jar } = installed as Extract<typeof installed, { jar: unknown }>;
    copyFileSync(jar.objectTypes, join(folder, "object_type_ids.tsv"));
    const whole = readFileSync(jar.path);
    const random = createRandom(1);
    for (let round = 0; round < 20; round++) {
      const bytes = Buffer.from(
        whole.subarray(0, round < 5 ? random.int(whole.length) : undefined),
      );
      // The directory is at the end.
      for (let i = 0; i < 200; i++)
        bytes[Math.max(0, bytes.length - 1 - random.int(200_000))] = random.int(256);
      // The manifest is at the start.
      for (let i = 0; i < 5; i++)
        bytes[Math.min(bytes.length - 1, random.int(300))] = random.int(256);
      const path = written("damaged.jar", bytes);
      try {
        openJar(path, "a test");
      } catch (error) {
        expect(error).toBeInstanceOf(EnvError);
      }
    }
  });
});

describe("Java", () => {
  it("that is missing is named, with what to install", () => {
    expect(() => findJava("/nowhere/java")).toThrow(
      /\/nowhere\/java.*no such command.*apt install/,
    );
  });

  it("that does not run is quoted", () => {
    expect(() => findJava("false")).toThrow(/Java \(false\) does not run/);
  });
});
