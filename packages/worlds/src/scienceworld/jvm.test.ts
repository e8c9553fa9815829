import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EnvError } from "@pawl/core/envs/env.js";
import { zipOf } from "@pawl/core/files/zip-testing.js";
import { createRandom } from "@pawl/core/random.js";
import { afterAll, describe, expect, it } from "vitest";
import { installed } from "./fixtures/installed.js";
import { findJava, type Jar, openJar } from "./jvm.js";
import { openScienceworld, scienceworldOptions } from "./scienceworld.js";
import { startSimulator } from "./simulator.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-jvm-"));
afterAll(() => rmSync(folder, { recursive: true }));

const objectTypes = join(folder, "object_type_ids.tsv");
writeFileSync(objectTypes, "a\t0\n");
const jar: Jar = { path: join(folder, "some.jar"), version: "0", from: "a test", objectTypes };

/** A program in Java's place that misbehaves: a stand-in, because a JVM does not on demand. */
function javaThat(name: string, script: string): string {
  const path = join(folder, name);
  writeFileSync(path, `#!${process.execPath}\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}

const listen = (answer: string) =>
  `require("node:net").createServer((s) => s.on("data", () => { ${answer} })).listen(0, "127.0.0.1", function () { console.log(this.address().port) }); process.stdin.on("end", () => process.exit()).resume();`;

const start = (java: string, seconds = 20) =>
  startSimulator({ java, jar, heap: 128, fixedOrder: true, seconds });

const left = () => readdirSync(tmpdir()).filter((name) => name.startsWith("pawl-scienceworld-"));

describe.skipIf(process.platform === "win32")("a Java that", () => {
  it.each([
    ["is not there", "/nowhere/java", /there is no \/nowhere\/java.*apt install/],
    ["cannot be executed", objectTypes, /cannot be started: .*EACCES/],
    [
      "ends at once",
      javaThat("ends", `console.error("Could not find main class"); process.exit(1);`),
      /did not start .*some\.jar: .*code 1: Could not find main class/s,
    ],
    [
      "says no port",
      javaThat("chats", `console.log("Welcome!"); setInterval(() => 0, 1e6);`),
      /must be its port, got "Welcome!"/,
    ],
    [
      "names a port that cannot be",
      javaThat("far", `console.log("70000"); setInterval(() => 0, 1e6);`),
      /must be its port, got "70000"/,
    ],
    [
      "prints pages without a line",
      javaThat("pages", `process.stdout.write("x".repeat(1e6)); setInterval(() => 0, 1e6);`),
      /must be its port, got "xxx/,
    ],
    [
      "names a port of nobody",
      javaThat("alone", `console.log("1"); setInterval(() => 0, 1e6);`),
      /port 1 cannot be reached/,
    ],
    [
      "answers garbage",
      javaThat("garbage", listen(`s.write("hello\\n")`)),
      /expected an answer of py4j/,
    ],
    [
      "throws",
      javaThat("throws", listen(`s.write("!xsno such class\\n")`)),
      /making a java\.io\.PrintStream failed: no such class/,
    ],
    ["hangs up", javaThat("hangs-up", listen("s.destroy()")), /process is gone/],
  ])("%s is named", async (_, java, reason) => {
    const before = left().length;
    const error = await start(java).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(error).toBeInstanceOf(EnvError);
    expect((error as Error).message).toMatch(reason);
    expect(left().length).toBeLessThanOrEqual(before);
  });

  it("prints pages while it answers does not stop", async () => {
    const pages = `setInterval(() => process.stdout.write("x".repeat(1e6)), 1);`;
    const java = javaThat("prints", `${listen(`s.write("!yro1\\n")`)} ${pages}`);
    const simulator = await start(java);
    await expect(simulator.taskDescription()).rejects.toThrow(
      'getTaskDescription gave {"id":"o1"}, not a string',
    );
    simulator.end("the test is over");
    expect(simulator.alive).toBe(false);
    await expect(simulator.taskDescription()).rejects.toThrow("the test is over");
  });

  it.each([
    [
      "says nothing",
      javaThat("silent", "setInterval(() => 0, 1e6);"),
      /did not name its port within 0.5 s/,
    ],
    ["never answers", javaThat("mute", listen("")), /took longer than 5 s/],
  ])("%s is given up", async (name, java, reason) => {
    await expect(start(java, name === "never answers" ? 5 : 0.5)).rejects.toThrow(reason);
  });
});

const jars = mkdtempSync(join(tmpdir(), "pawl-jar-"));
afterAll(() => rmSync(jars, { recursive: true }));

function written(name: string, bytes: string | Buffer): string {
  const path = join(jars, name);
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
    const place = join(jars, "whole");
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
    expect(() => openJar(join(jars, "none.jar"), "a test")).toThrow(/cannot be read/);
    mkdirSync(join(jars, "folder.jar"));
    expect(() => openJar(join(jars, "folder.jar"), "a test")).toThrow(/it is a folder/);
  });

  it.skipIf("reason" in installed)("with damage never fails in another way", () => {
    const { jar } = installed as Extract<typeof installed, { jar: unknown }>;
    copyFileSync(jar.objectTypes, join(jars, "object_type_ids.tsv"));
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
