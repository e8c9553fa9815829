/** Real processes and signals: rollouts that are stopped, killed or out of disk space. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { beforeEach, describe, expect, it } from "vitest";

const cli = join(process.cwd(), "dist/lib/main.js");
const windows = process.platform === "win32";
let out: string;
beforeEach(() => {
  out = join(mkdtempSync(join(tmpdir(), "pawl-process-")), "run");
});

/** A rollout that would take minutes. */
const long = () => [
  "rollout",
  "--policy",
  "random",
  "--groups",
  "9000",
  "--group-size",
  "8",
  "--out",
  out,
];

/** Starts it and waits until some episodes are on disk. */
async function startLong(): Promise<{ child: ChildProcess; ended: Promise<number | null> }> {
  const child = spawn(process.execPath, [cli, ...long()], { stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise<number | null>((resolve) => child.on("exit", resolve));
  const records = join(out, "episodes.jsonl.gz");
  while (!existsSync(records) || statSync(records).size < 20_000) {
    if (child.exitCode !== null) throw new Error("the rollout ended before it recorded anything");
    await setTimeout(20);
  }
  return { child, ended };
}

const manifest = () => JSON.parse(readFileSync(join(out, "manifest.json"), "utf8"));
const pawl = (...args: string[]) =>
  spawnSync(process.execPath, [cli, ...args], { encoding: "utf8" });

describe.skipIf(windows)("a training", () => {
  it("ends at once, by the signal, at the second Ctrl-C, while the model computes", async () => {
    const child = spawn(process.execPath, [cli, "train", "--quick", "--out", out]);
    const ended = new Promise((resolve) => child.on("exit", (_, signal) => resolve(signal)));
    let stderr = "";
    const learning = new Promise<void>((resolve) => {
      child.stderr!.on("data", (chunk: Buffer) => {
        stderr += chunk.toString();
        if (stderr.includes("warm start")) resolve();
      });
    });
    await Promise.race([learning, ended]);
    await setTimeout(1000);
    // More than two do no harm, and two that come at once are one.
    while (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGTERM");
      await setTimeout(5);
    }
    expect(await ended, stderr).toBe("SIGTERM");
    expect(stderr).not.toContain("terminate called");
  });
});

describe.skipIf(windows)("a rollout", () => {
  it("stopped by Ctrl-C keeps what was finished and says so", async () => {
    const { child, ended } = await startLong();
    let stderr = "";
    child.stderr!.on("data", (chunk: Buffer) => {
      stderr += chunk.toString();
    });
    child.kill("SIGINT");
    expect(await ended).toBe(130);
    expect(stderr).toContain(`interrupted; finished episodes are in ${out}`);
    expect(manifest()).toMatchObject({ status: "interrupted" });
    expect(existsSync(join(out, "lock"))).toBe(false);
    const shown = pawl("show", out);
    expect(shown.stderr).toBe("");
    expect(shown.stdout).toMatch(
      new RegExp(`^all +${manifest().summary.episodes.toLocaleString("en-GB")} `, "m"),
    );
  });

  it("killed with SIGKILL stays readable and is listed as killed", async () => {
    const { child, ended } = await startLong();
    const running = pawl("runs", join(out, ".."));
    expect(running.stdout).toMatch(/ rollout +running /);
    child.kill("SIGKILL");
    await ended;
    expect(manifest()).toMatchObject({ status: "running" });
    const shown = pawl("show", out);
    expect(shown.status).toBe(0);
    expect(Number(/^all +([\d,]+) /m.exec(shown.stdout)![1]!.replace(",", ""))).toBeGreaterThan(5);
    expect(pawl("runs", join(out, "..")).stdout).toMatch(/ rollout +killed /);
  });

  it("that runs out of disk space says so, keeps what was written, and fails", () => {
    // ulimit counts blocks of 512 or 1,024 bytes: the records end after at most 64 kB.
    const result = spawnSync(
      "sh",
      ["-c", `ulimit -f 64; exec "$0" "$@"`, process.execPath, cli, ...long()],
      {
        encoding: "utf8",
      },
    );
    expect(result.status).toBe(1);
    expect(result.stderr).toContain("What was recorded before is safe");
    expect(result.stderr).toContain("ulimit -f");
    const shown = pawl("show", out);
    expect(shown.stderr).toBe("");
    expect(shown.stdout).toContain("failed");
    expect(shown.stdout).toMatch(/^all +\d+/m);
  });

  const hasScript = !windows && spawnSync("script", ["--version"]).status === 0;
  it.skipIf(!hasScript)("on a terminal draws live and restores the cursor", () => {
    const command = `"${process.execPath}" "${cli}" rollout --groups 3 --group-size 2 --out "${out}"`;
    const typed = execFileSync("script", ["-qec", command, "/dev/null"], { encoding: "utf8" });
    expect(typed).toContain("\u001b[?25l");
    expect(typed.lastIndexOf("\u001b[?25h")).toBeGreaterThan(typed.lastIndexOf("\u001b[?25l"));
    expect(typed).toContain("group   2");
    expect(typed).toContain("6/6 episodes");
  });

  it("whose reader disconnects ends quietly", () => {
    pawl("rollout", "--groups", "40", "--out", out);
    const result = spawnSync(
      "sh",
      ["-c", `"${process.execPath}" "${cli}" show "${out}" --json | head -n 1`],
      {
        encoding: "utf8",
      },
    );
    expect(result.stderr).toBe("");
    expect(JSON.parse(result.stdout)).toMatchObject({ policy: "expert" });
  });
});

describe("the completion script", () => {
  const hasBash = spawnSync("bash", ["--version"]).status === 0;
  it.skipIf(!hasBash)("works in bash", () => {
    const script = `
      pawl() { "${process.execPath}" "${cli}" "$@"; }
      source <(pawl completion bash)
      COMP_WORDS=(pawl rollout --env.noise b); COMP_CWORD=3
      _pawl 2>/dev/null; printf '%s\\n' "\${COMPREPLY[@]}"`;
    expect(spawnSync("bash", ["-c", script], { encoding: "utf8" }).stdout).toBe("brands\n");
  });
});
