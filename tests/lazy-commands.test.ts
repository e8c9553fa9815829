/** Commands load when they are called, each in a process that has loaded nothing else. */
import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";

it.each(["replay", "rollout", "ui"])("%s knows world models as environments", (name) => {
  const script = `
    const { commands } = await import("./dist/src/cli/commands.js");
    await commands.find((command) => command.name === ${JSON.stringify(name)}).load();
    const { findEnvKind } = await import("./dist/src/envs/registry.js");
    console.log(findEnvKind("simulator").name);`;
  const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
  });
  expect(stdout, stderr).toBe("simulator\n");
});
