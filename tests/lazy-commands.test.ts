/** Commands load when they are called, each in a process that has loaded nothing else. */
import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";

/** What this prints when the command and its worlds are loaded. */
function printed(name: string, line: readonly string[], print: string): string {
  const script = `
    const { commands } = await import("./dist/src/cli/commands.js");
    const { loadCommandWorlds } = await import("./dist/src/cli/command-worlds.js");
    const { findEnvKind } = await import("./dist/src/envs/registry.js");
    const command = await commands.find((command) => command.name === ${JSON.stringify(name)}).load();
    await loadCommandWorlds(command, ${JSON.stringify(line)});
    console.log(${print});`;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
  });
  return stdout + stderr;
}

it.each(["replay", "rollout", "ui"])("%s knows world models as environments", (name) => {
  const line = ["--env", "simulator"];
  expect(printed(name, line, 'findEnvKind("simulator").name')).toBe("simulator\n");
});

it("train loads the world that it is given, and no other", () => {
  const line = ["--env", "webshop"];
  expect(printed("train", line, 'findEnvKind("webshop").name')).toBe("webshop\n");
  expect(printed("train", line, 'findEnvKind("alfworld").name')).toMatch(
    /"alfworld" is not loaded/,
  );
});
