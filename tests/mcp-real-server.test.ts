/**
 * A real MCP server from npm as an environment, trained in for two updates and evaluated. It is no
 * dependency of this package: PAWL_MCP names a folder in which
 * @modelcontextprotocol/server-filesystem is installed.
 */
import { existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { runCli } from "@pawl/pawl/cli/testing.js";
import { expect, it } from "vitest";

const script = join(
  process.env.PAWL_MCP ?? "none",
  "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js",
);
const there = existsSync(script);

it.skipIf(!there)(
  `the filesystem server is trained in and evaluated${there ? "" : " (skipped: PAWL_MCP does not name a folder with it)"}`,
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "pawl-real-mcp-"));
    const tasks = ["tea", "milk"].map((word, at) => ({
      goal: `What does /scratch/${at}.txt say?`,
      files: { [`${at}.txt`]: word },
      answer: word,
      solution: [{ tool: "read_text_file", arguments: { path: `/scratch/${at}.txt` } }],
    }));
    const train = join(folder, "tasks.jsonl");
    writeFileSync(train, tasks.map((task) => `${JSON.stringify(task)}\n`).join(""));
    const config = join(folder, "run.json");
    const out = join(folder, "run");
    writeFileSync(
      config,
      JSON.stringify({
        env: {
          name: "mcp",
          servers: {
            files: {
              command: process.execPath,
              args: [script, "{scratch}"],
              tools: ["read_text_file", "list_directory"],
            },
          },
          train,
          valid: train,
          steps: 4,
        },
        prompt: { style: "compact", history: "all" },
        model: { start: "tiny", maxContext: 512 },
        warmStart: { teacher: "expert", episodes: 4, sft: { epochs: 1, batch: 2 } },
        updates: 2,
        groups: 1,
        groupSize: 2,
        stepLimit: 2,
        maxTokens: 32,
        evaluation: { every: 2, splits: ["valid"], tasks: 2 },
      }),
    );
    const { code, stderr } = await runCli(["train", "--config", config, "--out", out]);
    expect([code, stderr]).toEqual([0, expect.stringContaining("update 2/2")]);
    const run = openRun(out, expect.unreachable);
    const episodes = [...run.episodes()];
    expect(episodes).toHaveLength(4);
    expect(episodes.filter(({ stop }) => stop === "broken")).toEqual([]);
    expect(run.metrics().at(-1)).toHaveProperty(["eval.valid.success"]);
  },
  180_000,
);
