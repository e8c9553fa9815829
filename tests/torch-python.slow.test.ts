/** The PyTorch server's own tests, run if PAWL_PYTHON or python3 has PyTorch. */
import { execFile, spawnSync } from "node:child_process";
import { promisify } from "node:util";
import { dose } from "@pawl/core/dose-testing.js";
import { describe, expect, it } from "vitest";

const python = process.env.PAWL_PYTHON ?? "python3";
const hasTorch = spawnSync(python, ["-c", "import torch"]).status === 0;
const run = promisify(execFile);

describe.skipIf(!hasTorch)("servers/torch, if PAWL_PYTHON or python3 has PyTorch", () => {
  // Those that start servers, ranks or interpreters have processes of their own; importing PyTorch takes long.
  const groups = [
    "expression engine page_pool architectures adapter self_check recurrent say backlog",
    "server",
    "hostile",
    "ranks",
    "kernels",
  ];
  it.each(groups.slice(0, dose(5, 2)))(
    "passes its tests: %s …",
    async (names) => {
      const args = [
        "-m",
        "unittest",
        ...names.split(" ").map((name) => `pawl_server.test_${name}`),
      ];
      const { stderr } = await run(python, args, {
        cwd: "servers/torch",
        env: { ...process.env, OMP_NUM_THREADS: "1" },
      });
      expect(stderr).toMatch(/Ran \d+ tests?[\s\S]*\nOK/);
    },
    600_000,
  );
});
