/**
 * A disk that is too small, for commands that write: a sentence says where, what was kept and how to
 * go on, and nothing that was written before is lost. Needs Linux with user namespaces.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";

const cli = join(process.cwd(), "dist/src/cli/main.js");
const folder = mkdtempSync(join(tmpdir(), "pawl-full-"));
const disk = join(folder, "disk");
const canMount =
  spawnSync("unshare", ["-rm", "mount", "-t", "tmpfs", "tmpfs", folder]).status === 0;

const tiny = [
  ...["--warm-start.episodes", "8", "--warm-start.sft.epochs", "1", "--updates", "1"],
  ...["--groups", "2", "--group-size", "2", "--evaluation.every", "0", "--engine.threads", "1"],
];
const played = join(folder, "played");

/** Runs `pawl ARGS` with an empty disk of this size, and then shell commands that look at it. */
function onDisk(size: string, args: readonly string[], then = "true") {
  const script = `mkdir -p ${disk} && mount -t tmpfs -o size=${size} tmpfs ${disk} && cd ${disk} && "$@"; code=$?; cd /; ${then}; exit $code`;
  const command = [process.execPath, cli, ...args];
  return spawnSync("unshare", ["-rm", "sh", "-c", script, "sh", ...command], {
    encoding: "utf8",
    env: { ...process.env, TMPDIR: disk, XDG_CACHE_HOME: join(disk, "cache") },
  });
}

beforeAll(() => {
  const made = spawnSync(process.execPath, [cli, "rollout", "--groups", "2", "--out", played]);
  expect(made.status).toBe(0);
});

it.skipIf(!canMount).each([
  ["while a run begins", "8k", ["rollout", "--groups", "2", "--out", join(disk, "run")]],
  ["while episodes are recorded", "40k", ["rollout", "--groups", "60", "--out", join(disk, "run")]],
  ["while weights are written", "400k", ["train", "--quick", ...tiny, "--out", join(disk, "run")]],
  [
    "while data is written",
    "16k",
    ["wm", "data", "--mix", "expert:40", "--out", join(disk, "data")],
  ],
  [
    "while a data set is exported",
    "4k",
    ["wm", "data", "--from", played, "--format", "sharegpt", "--out", join(disk, "data")],
  ],
  ["while a starter is written", "4k", ["env", "new", "mine", "--dir", join(disk, "mine")]],
])("%s", (_, size, args) => {
  const { status, stderr } = onDisk(size, args, `ls -laR ${disk}`);
  expect(status, stderr).toBe(1);
  expect(stderr).toMatch(/^error: .*the disk is full: free some space/m);
  expect(stderr).toContain(disk);
  expect(stderr).not.toMatch(/\n\s+at /);
});

it.skipIf(!canMount)("keeps the checkpoint before, says so, and goes on when there is room", () => {
  const run = join(disk, "run");
  const kept = join(folder, "kept");
  // Room for the start and one checkpoint, but not for two.
  const size = "9m";
  const args = [
    "train",
    "--quick",
    ...tiny.map((arg, i) => (tiny[i - 1] === "--updates" ? "3" : arg)),
  ];
  const { status, stderr } = onDisk(size, [...args, "--out", run], `cp -r ${run} ${kept}`);
  expect(status, stderr).toBe(1);
  const [, update] =
    /Everything up to update (\d) is kept in \S+\. When there is room again, --resume/.exec(
      stderr,
    ) ?? [];
  expect(["1", "2"], stderr).toContain(update);
  expect(JSON.parse(readFileSync(join(kept, "manifest.json"), "utf8"))).toMatchObject({
    status: "failed",
  });
  const resumed = spawnSync(process.execPath, [cli, "train", "--resume", kept], {
    encoding: "utf8",
  });
  expect(resumed.status, resumed.stderr).toBe(0);
});
