/** The live views in a real pseudo-terminal: what a person sees at the end. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isWhole } from "@pawl/core/dose-testing.js";
import { screenOf } from "@pawl/pawl/cli/screen-testing.js";
import { afterAll, describe, expect, it } from "vitest";

const python = ["python3", "python"].find(
  (name) => spawnSync(name, ["-c", "import pty"]).status === 0,
);

const folder = mkdtempSync(join(tmpdir(), "pawl-terminal-"));
afterAll(() => rmSync(folder, { recursive: true }));
const cli = [process.execPath, "dist/lib/main.js"];

/** What a command leaves on the screen; Ctrl-C is pressed when `interruptAt` appears. */
function run(args: readonly string[], interruptAt?: string) {
  const how = interruptAt === undefined ? [] : ["--interrupt", interruptAt];
  const { stdout, status } = spawnSync(python!, ["tests/terminal.py", ...how, ...cli, ...args], {
    encoding: "utf8",
    env: { ...process.env, NO_COLOR: "1" },
  });
  const lines = screenOf(stdout.replaceAll("\r\n", "\n"), { columns: 60, rows: 12 });
  return { status, stdout, lines, text: lines.join("\n"), unwrapped: lines.join("") };
}

/** A command whose output does not matter. */
function prepare(...args: readonly string[]): void {
  const { status, stderr } = spawnSync(cli[0]!, [...cli.slice(1), ...args], { encoding: "utf8" });
  expect(status, stderr).toBe(0);
}

const small = ["--engine.threads", "1", "--evaluation.every", "1"];
const oneRoom = ["--env.rooms", "1", "--env.receptacles", "4", "--env.objects", "3"];
const warm = join(folder, "warm");
const data = join(folder, "data");

describe.skipIf(python === undefined)("in a pseudo-terminal", () => {
  it("a rollout leaves its last view and nothing of the earlier ones", () => {
    const out = join(folder, "rollout");
    const { stdout, status, lines, text } = run([
      "rollout",
      "--groups",
      "3",
      "--group-size",
      "4",
      "--out",
      out,
    ]);
    expect(status).toBe(0);
    // The cursor was hidden while the view was drawn, and is back.
    expect(stdout.lastIndexOf("\u001b[?25h")).toBeGreaterThan(stdout.indexOf("\u001b[?25l"));
    expect(lines.filter((line) => line.startsWith("group"))).toHaveLength(3);
    expect(lines.filter((line) => line.includes("12/12 episodes"))).toHaveLength(1);
    expect(text).toContain("recorded to");
  });

  it.runIf(isWhole)("RWML shows what it does where, and how predictions get on", () => {
    prepare(
      ...["train", "--quick", "--updates", "0", "--warm-start.episodes", "24"],
      ...["--evaluation.every", "0", "--engine.threads", "1", "--out", warm],
    );
    const out = join(folder, "rwml");
    const sizes = ["--collect.episodes", "8", "--updates", "2", "--triplets", "4"];
    const { status, stdout, lines, text } = run([
      ...["rwml", "--model.start", warm, "--reward", "rouge", ...sizes, "--group-size", "4"],
      ...["--held-out.triplets", "4", "--evaluation.tasks", "2", ...small, "--out", out],
    ]);
    expect(status).toBe(0);
    // Redrawing is slower than short phases, so which of them are seen depends on the machine.
    expect(stdout).toContain("opening the reward");
    expect(stdout).toMatch(/ · (playing|learning|predicting|judging|evaluating): \d+\/\d+ /);
    expect(lines.filter((line) => line.startsWith(`${out} · household`.slice(0, 50)))).toHaveLength(
      1,
    );
    expect(lines.filter((line) => line.startsWith("measuring what was forgotten"))).toHaveLength(1);
    expect(text).toMatch(/^reward +\S+ +\d\.\d{3}$/m);
    expect(text).toMatch(/^held out +\d\.\d{3}( → \d\.\d{3}){2}$/m);
    expect(text).toMatch(/^valid_seen +\S+ %( → \S+ %){2}$/m);
    expect(text).toContain("heldOut.reward.before");
  });

  it.runIf(isWhole)(
    "a world model shows its loss and its matches, and answers Ctrl-C above them",
    () => {
      const mix = ["--mix", "expert:12", "--step-limit", "8", "--test", "0.3"];
      prepare("wm", "data", ...oneRoom, ...mix, "--out", data);
      const out = join(folder, "wm");
      const sizes = ["--epochs", "1", "--batch", "4", "--evaluation.trajectories", "1"];
      const command = ["wm", "train", "--data", data, "--model.start", "tiny", ...sizes, ...small];
      const whole = run([...command, "--out", out]);
      expect(whole.status).toBe(0);
      expect(whole.stdout).toContain("reading the data");
      expect(whole.text).toMatch(
        /^world model step (\d)\/\1, loss \S+ {2}\d:\d\d so far, 0:00 left$/m,
      );
      expect(whole.text).toMatch(/^loss +\S+ +\d\.\d{4}$/m);
      expect(whole.text).toMatch(/^exact match .* of test turns$/m);

      const stopped = run(
        [...command, "--epochs", "500", "--out", join(folder, "stopped")],
        "step 2/",
      );
      expect(stopped.status).toBe(130);
      expect(stopped.unwrapped).toContain("stopping as soon as what is being computed is done");
      expect(stopped.unwrapped).toContain("(world model step ");
      expect(stopped.unwrapped).toContain("interrupted; pawl wm train --resume");
      expect(stopped.lines.filter((line) => line.startsWith("world model step"))).toHaveLength(1);
    },
  );
});
