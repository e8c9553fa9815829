import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deflateRawSync } from "node:zlib";
import { afterAll, describe, expect, it } from "vitest";
import { createRandom } from "../../random.js";
import { EnvError } from "../env.js";
import { installed } from "./fixtures/installed.js";
import { findJava, openJar } from "./jar.js";
import { openScienceworld, scienceworldOptions } from "./scienceworld.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-jar-"));
afterAll(() => rmSync(folder, { recursive: true }));

function written(name: string, bytes: string | Buffer): string {
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return path;
}

/** A zip file with these files, the first of them packed. */
function zipOf(files: Readonly<Record<string, string>>): Buffer {
  const bodies: Buffer[] = [];
  const entries: Buffer[] = [];
  for (const [name, text] of Object.entries(files)) {
    const packed = entries.length === 0;
    const title = Buffer.from(name);
    const data = packed ? deflateRawSync(text) : Buffer.from(text);
    const local = Buffer.alloc(30);
    local.writeUInt32LE(0x04034b50, 0);
    local.writeUInt16LE(title.length, 26);
    const entry = Buffer.alloc(46);
    entry.writeUInt32LE(0x02014b50, 0);
    entry.writeUInt16LE(packed ? 8 : 0, 10);
    entry.writeUInt32LE(data.length, 20);
    entry.writeUInt16LE(title.length, 28);
    entry.writeUInt32LE(Buffer.concat(bodies).length, 42);
    bodies.push(local, title, data);
    entries.push(entry, title);
  }
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(Object.keys(files).length, 10);
  end.writeUInt32LE(Buffer.concat(bodies).length, 16);
  return Buffer.concat([...bodies, ...entries, end]);
}

describe("a jar", () => {
  it.each([
    ["text.jar", Buffer.from("this is no jar"), /text\.jar \(a test\) is no jar: .*pip install/],
    ["empty.jar", Buffer.alloc(0), /is no jar/],
    ["cut.jar", Buffer.from("PK\u0005\u0006"), /is no jar/],
    ["other.jar", zipOf({ "META-INF/MANIFEST.MF": "" }), /not the simulator's: it has no py4j/],
  ])("%s is refused with its name and what to do", (name, bytes, reason) => {
    const path = written(name, bytes);
    expect(() => openJar(path, "a test")).toThrow(reason);
  });

  it("says its version, by which options are judged", () => {
    const place = join(folder, "whole");
    mkdirSync(place);
    const manifest = "Manifest-Version: 1.0\r\nImplementation-Version: 1.3.0\r\n";
    const classes = ["py4j/GatewayServer", "scienceworld/runtime/pythonapi/PythonInterface"];
    const empty = Object.fromEntries(classes.map((name) => [`${name}.class`, ""]));
    const path = join(place, "scienceworld.jar");
    writeFileSync(path, zipOf({ "META-INF/MANIFEST.MF": manifest, ...empty }));
    expect(() => openJar(path, "a test")).toThrow(/object_type_ids\.tsv is missing/);
    writeFileSync(join(place, "object_type_ids.tsv"), "");
    expect(openJar(path, "a test")).toMatchObject({ version: "1.3.0", path });
    // Any command that succeeds stands in for Java, which is not started here.
    const options = { jar: path, java: "true", order: "hash" };
    expect(() => openScienceworld(scienceworldOptions.parse(options))).toThrow(
      /version 1\.3\.0 keeps the order of creation/,
    );
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
