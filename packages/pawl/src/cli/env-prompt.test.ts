import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildTokenizer } from "@pawl/core/text/tokenizer-builder.js";
import { afterAll, expect, it } from "vitest";
import { starterPlugin } from "./env-starter.js";
import { runCli } from "./testing.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-prompt-"));
afterAll(() => rmSync(folder, { recursive: true }));

it("shows every style, after a step of the expert", async () => {
  const { code, stdout } = await runCli(["env", "prompt", "household"]);
  expect(code).toBe(0);
  for (const style of ["full", "chat", "compact"])
    expect(stdout).toContain(`${style}: the prompt of step 2`);
  expect(stdout).toContain("You have taken 1 step so far");
  expect(stdout).toMatch(/\[system\]\nYou act in a simulated household[\s\S]*\[assistant\]\ngo to/);
  expect(stdout).toContain("<|goal|>");
});

it("shows the words of a plugin's environment, named by its file", async () => {
  const file = join(folder, "guess.ts");
  writeFileSync(file, starterPlugin("guess"));
  const { stdout } = await runCli(["env", "prompt", file, "--prompt.style", "full"]);
  expect(stdout).toMatch(/full: the prompt of step 2\nA number is hidden/);
});

it("shows a conversation as a model reads it, with its length", async () => {
  const model = join(folder, "tokenizer");
  await buildTokenizer(["go to the shelf"], { chat: true }).save(model);
  const { stdout } = await runCli([
    ...["env", "prompt", "household", "--prompt.style", "chat"],
    ...["--model", model, "--steps", "0"],
  ]);
  expect(stdout).toMatch(/<\|system\|>You act[\s\S]*<\|end\|><\|assistant\|>\n\(\d+ tokens\)/);
});

it("fills a template's slots, and says where settings mean nothing", async () => {
  const file = join(folder, "own.txt");
  writeFileSync(file, "[step]\nDo: {task_description}\n[first]\nPlease: {task_description}\n");
  const { stdout, code } = await runCli(["env", "prompt", "household", "--prompt.template", file]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/full: the prompt of step 2\nDo: Put a/);
  expect(stdout).toMatch(/\[user\]\nPlease: Put a/);
  expect(stdout).toMatch(/compact: prompt\.template has no meaning in the style compact/);
});

it.each([
  [["household", "--prompt.template", "nowhere.txt"], "prompt.template: cannot read nowhere.txt"],
  [
    ["household", "--prompt.style", "compact", "--prompt.answer", "tags"],
    "prompt.answer has no meaning",
  ],
  [["household", "--task", "train/x"], "train/x"],
  [["household", "--model", "nowhere"], "nowhere holds no model"],
  [["nowhere"], 'There is no environment "nowhere"'],
])("refuses %j", async (args, message) => {
  const { code, stderr } = await runCli(["env", "prompt", ...args]);
  expect(stderr).toContain(message);
  expect(stderr).not.toContain("    at ");
  expect(code).not.toBe(0);
});

it("refuses a template with an unknown slot before training starts", async () => {
  const file = join(folder, "bad.txt");
  writeFileSync(file, "Do: {task_descriptio}");
  const out = join(folder, "run");
  const { code, stderr } = await runCli([
    ...["train", "--prompt.style", "full", "--prompt.template", file, "--out", out],
  ]);
  expect(code).not.toBe(0);
  expect(stderr).toMatch(/line 1: there is no slot \{task_descriptio\}/);
  expect(existsSync(out)).toBe(false);
});
