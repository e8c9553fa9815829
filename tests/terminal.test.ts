/** The live view in a real pseudo-terminal: what a person sees at the end. */
import { spawnSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { screenOf } from "../src/cli/screen-testing.js";

const python = ["python3", "python"].find(
  (name) => spawnSync(name, ["-c", "import pty"]).status === 0,
);

it.skipIf(python === undefined)(
  "a rollout in a pseudo-terminal leaves its last view and nothing of the earlier ones",
  () => {
    const out = join(mkdtempSync(join(tmpdir(), "pawl-terminal-")), "run");
    const cli = [process.execPath, "dist/src/cli/main.js"];
    const { stdout, status } = spawnSync(
      python!,
      [
        "tests/terminal.py",
        ...cli,
        ...["rollout", "--groups", "3", "--group-size", "4", "--out", out],
      ],
      { encoding: "utf8", env: { ...process.env, NO_COLOR: "1" } },
    );
    expect(status).toBe(0);
    // The cursor was hidden while the view was drawn, and is back.
    expect(stdout.lastIndexOf("\u001b[?25h")).toBeGreaterThan(stdout.indexOf("\u001b[?25l"));
    const screen = screenOf(stdout.replaceAll("\r\n", "\n"), { columns: 60, rows: 12 });
    expect(screen.filter((line) => line.startsWith("group"))).toHaveLength(3);
    expect(screen.filter((line) => line.includes("12/12 episodes"))).toHaveLength(1);
    expect(screen.join("\n")).toContain("recorded to");
  },
);
