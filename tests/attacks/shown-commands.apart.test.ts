/** Names of run folders and locks in the commands that `pawl ui` shows to be copied. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readManifest } from "@pawl/core/runs/manifest.js";
import type { RunRow } from "@pawl/ui/server/api.js";
import { runDetail } from "@pawl/ui/server/server.js";
import { startRun } from "@pawl/ui/server/testing.js";
import { describe, expect, it, onTestFinished } from "vitest";

const parent = mkdtempSync(join(tmpdir(), "pawl-attack-shown-"));
const windows = process.platform === "win32";

function commandsOf(folder: string, state: string): readonly string[] {
  const row = { state, kind: "train" } as RunRow;
  const { commands } = runDetail(folder, row, readManifest(folder), undefined);
  return commands.map(({ command }) => command);
}

describe("a command that the page shows is that command and nothing else", () => {
  it
    .skipIf(windows)
    .each([
      "two words",
      "it's",
      'a "quoted" name',
      "a; touch canary; #",
      "a && touch canary",
      "$(touch canary)",
      "`touch canary`",
      "a\ntouch canary\n",
      "'; touch canary; '",
      "--plugin=evil.ts",
      "-h",
      "*",
      "~",
      "a\\",
      "ünïcode",
    ])("a run in a folder named %j", (name) => {
    const before = process.cwd();
    process.chdir(mkdtempSync(join(parent, "here-")));
    onTestFinished(() => process.chdir(before));
    startRun(name).finish("done");
    const commands = [...commandsOf(name, "done"), ...commandsOf(name, "killed")];
    expect(commands.length).toBeGreaterThan(4);
    const told = 'pawl() { for one in "$@"; do printf "%s\\0" "$one"; done; }';
    for (const command of commands) {
      const { stdout, stderr } = spawnSync("sh", ["-c", `${told}\n${command}`], {
        encoding: "utf8",
      });
      const args = stdout.split("\0").slice(0, -1);
      expect([stderr, args[0]]).toEqual(["", expect.stringMatching(/^(train|report|eval)$/)]);
      expect(args.filter((arg) => arg === name || arg === `./${name}`)).toHaveLength(1);
      expect(args.filter((arg) => arg === "--plugin=evil.ts" || arg === "-h")).toEqual([]);
    }
    expect(existsSync("canary")).toBe(false);
  });

  it("a live run is stopped by the id of its process", () => {
    const folder = join(parent, "live");
    const run = startRun(folder);
    expect(commandsOf(folder, "running")[0]).toBe(`kill -INT ${process.pid}`);
    run.finish("done");
  });

  it.each([
    { pid: 1, host: "elsewhere; touch canary; #" },
    { pid: 1, host: "$(touch canary)" },
    { pid: "1; touch canary", host: "elsewhere" },
    "1; touch canary",
  ])("a lock that says %j", (lock) => {
    const folder = mkdtempSync(join(parent, "locked-"));
    startRun(folder).finish("done");
    writeFileSync(join(folder, "lock"), JSON.stringify(lock));
    expect(commandsOf(folder, "running").join("\n")).not.toMatch(/canary|kill/);
  });
});
