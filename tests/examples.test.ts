/** Every example runs as a reader would run it: as a separate script, against the built package. */
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const jiti = join("node_modules", "jiti", "lib", "jiti-cli.mjs");

/** What each example must print. */
const prints: Readonly<Record<string, RegExp>> = {
  "ai-sdk-desk.ts": /The case is closed, as the rules demand\.\nreward: 1/,
  "agent.ts": /^$/,
  "openai-agent.ts": /^$/,
  "chat-model.ts": /train\/0 \[ 'step-limit', 'step-limit' \]/,
  "desk-agent.ts": /^$/,
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
  const files = readdirSync("examples").filter((file) => !file.endsWith(".test.ts"));
  it("are all listed here", () => {
    expect(files.sort()).toEqual(Object.keys(prints).sort());
  });

  it.each(files)("%s", (file) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [jiti, join("examples", file)], {
      encoding: "utf8",
      // Where it is installed, the package is no source of the reader's, and is not compiled again.
      env: { ...process.env, JITI_NATIVE_MODULES: '["pawl"]' },
    });
    expect(stderr).toBe("");
    expect(status).toBe(0);
    expect(stdout).toMatch(prints[file]!);
  });
});
