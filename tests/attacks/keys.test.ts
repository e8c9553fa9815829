/** Keys of our servers that could be guessed. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { some } from "@pawl/core/dose-testing.js";
import { runCli } from "@pawl/pawl/cli/testing.js";
import { describe, expect, it } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "pawl-attack-keys-"));
const SHORT = "fifteen-letters";
const file = join(folder, "key");
writeFileSync(file, `${SHORT}\n`);
const model = join(folder, "model");
mkdirSync(model);
writeFileSync(join(model, "config.json"), "{}");

const HOSTS = ["0.0.0.0", "::", "192.0.2.1", "127.example.org"];
const SERVERS = [
  { name: "serve env", args: ["serve", "env", "household"], variable: "PAWL_SERVE_KEY" },
  { name: "serve model", args: ["serve", "model", model], variable: "PAWL_SERVE_KEY" },
  { name: "ui", args: ["ui", folder], variable: "PAWL_UI_KEY" },
  { name: "serve engine", args: ["serve", "engine", "--model", model], variable: "PAWL_API_KEY" },
];

describe("no server can be reached from elsewhere with a key that can be guessed", () => {
  const attacks = SERVERS.flatMap(({ name, args, variable }) =>
    HOSTS.flatMap((host) => [
      { name, host, how: "a short variable", args, env: { [variable]: SHORT } },
      ...(name === "serve engine"
        ? []
        : [{ name, host, how: "a short file", args: [...args, "--key-file", file], env: {} }]),
    ]),
  );

  it.each(some(attacks))("pawl $name on $host, with $how", async ({ host, args, env }) => {
    const line = [...args, "--host", host, "--port", "0"];
    const { code, stderr } = await runCli(line, { env });
    expect([code, stderr]).toEqual([2, expect.stringMatching(/has 15 characters: .* at least 16/)]);
    expect(stderr).not.toContain(SHORT);
  });

  const python = process.env.PAWL_PYTHON ?? "python3";
  const absent = spawnSync(python, ["--version"]).status !== 0;
  it.skipIf(absent).each(some(HOSTS))("the engine server started by hand, on %s", (host) => {
    // The key is checked before anything is computed, so PyTorch need not be there.
    const start = `
import re, runpy, sys
from unittest.mock import MagicMock
path = sys.argv[1]
sys.path.insert(0, path.removesuffix("serve.py"))
for name in re.findall(r"^(?:from|import) (torch|pawl_server\\.(?!access)\\S*)", open(path).read(), re.M):
    sys.modules[name] = MagicMock()
sys.argv[:] = sys.argv[1:]
runpy.run_path(path, run_name="__main__")
`;
    const args = ["-c", start, "servers/torch/serve.py", "--host", host];
    const env = { ...process.env, PAWL_API_KEY: ` ${SHORT} ` };
    const { status, stderr } = spawnSync(python, args, { env, encoding: "utf8", timeout: 120_000 });
    expect([status, stderr]).toEqual([1, expect.stringMatching(/has 15 characters, and needs 16/)]);
    expect(stderr).not.toContain(SHORT);
  });
});
