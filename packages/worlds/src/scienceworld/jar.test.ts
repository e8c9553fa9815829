import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EnvError } from "@pawl/core/envs/env.js";
import { zipOf } from "@pawl/core/files/zip-testing.js";
import { createRandom } from "@pawl/core/random.js";
import { afterAll, describe, expect, it } from "vitest";
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
