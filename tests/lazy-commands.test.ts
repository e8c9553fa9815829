/** Commands load when they are called, each in a process that has loaded nothing else. */
import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";

/** The names of these worlds, or why they are not there, when the command and its worlds are loaded. */
function found(name: string, line: readonly string[], worlds: readonly string[]): string[] {
  const script = `
    const { commands } = await import("./dist/packages/pawl/src/cli/commands.js");
    const { loadCommandWorlds } = await import("./dist/packages/pawl/src/cli/command-entry.js");
    const { findEnvKind } = await import("./dist/packages/core/src/envs/registry.js");
    const command = await commands.find((command) => command.name === ${JSON.stringify(name)}).load();
    await loadCommandWorlds(command, ${JSON.stringify(line)});
    for (const world of ${JSON.stringify(worlds)})
      try {
        console.log(findEnvKind(world).name);
      } catch (error) {
        console.log(error.message);
      }`;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
  });
  expect(stderr).toBe("");
  return stdout.trim().split("\n");
}

it.each(["replay", "ui"])("%s knows world models as environments", (name) => {
  expect(found(name, ["--env", "simulator"], ["simulator"])).toEqual(["simulator"]);
});

it("train loads the world that it is given, and no other", () => {
  expect(found("train", ["--env", "webshop"], ["webshop", "alfworld"])).toEqual([
    "webshop",
    expect.stringContaining('"alfworld" is not loaded'),
  ]);
});
