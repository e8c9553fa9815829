import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EnvError } from "@pawl/core/envs/env.js";
import { afterAll, describe, expect, it } from "vitest";
import type { Jar } from "./jar.js";
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
