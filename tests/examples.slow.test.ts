/** Every example runs as a reader would run it: as a separate script, against the built package. */
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";

/** Where it is installed, the package is no source of the reader's, and is not compiled again. */
const env = { ...process.env, JITI_NATIVE_MODULES: '["pawl"]' };
const jiti = join("node_modules", "jiti", "lib", "jiti-cli.mjs");

/** What each example must print. */
const prints: Readonly<Record<string, RegExp>> = {
  "ai-sdk-desk.ts": /The case is closed, as the rules demand\.\nreward: 1/,
  "agent.ts": /^$/,
  "openai-agent.ts": /^$/,
  "orders-agent.ts": /^$/,
  "pi-agent.ts": /^$/,
  "chat-model.ts": /train\/0 \[ 'step-limit', 'step-limit' \]/,
  "desk-agent.ts": /^$/,
  "terminal-agent.ts": /^$/,
  "loop.ts": /update 0: \d+ of 64 solved[\s\S]*update 9: \d+ of 64 solved/,
  "engine.ts": /The pawl lets the wheel turn one way only\./,
  "own-environment.ts": /^$/,
  "tool-environment.ts": /^$/,
  "own-objective.ts": /-1 -0.5000 -0.5000[\s\S]*survives JSON: true/,
  "plugin.ts": /^$/,
  "own-policy.ts": /16 episodes, \d+ different actions/,
  "rollout.ts": /random[\s\S]*expert \{\s*success: 1,/,
  "run-folder.ts": /done \{[\s\S]*episodes: 6/,
  "typescript-tools.ts": /^$/,
  "tokenizer.ts": /observation +observation/,
};

describe("examples", () => {
  const files = readdirSync("examples").filter((file) => /(?<!\.test)\.ts$/.test(file));
  it("are all listed here", () => {
    expect(files.sort()).toEqual(Object.keys(prints).sort());
  });

  /** Definitions to be named by a command, or put into a project: they only need to load. */
  const silent = files.filter((file) => prints[file]?.source === "^$");

  it(`load, and print nothing: ${silent.join(", ")}`, () => {
    const files = JSON.stringify(silent.map((file) => resolve("examples", file)));
    const load = `import { createJiti } from "jiti";
      const jiti = createJiti(${JSON.stringify(resolve("examples"))});
      for (const file of ${files}) await jiti.import(file);`;
    const args = ["--input-type=module", "-e", load];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8", env });
    expect(stderr).toBe("");
    expect(stdout).toBe("");
    expect(status).toBe(0);
  });

  it.each(files.filter((file) => !silent.includes(file)))("%s", (file) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [jiti, join("examples", file)], {
      encoding: "utf8",
      env,
    });
    expect(stderr).toBe("");
    expect(status).toBe(0);
    expect(stdout).toMatch(prints[file]!);
  });
});
