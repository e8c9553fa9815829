/** Training sends nothing over the network, and leaves nothing outside its run folder. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isWhole } from "@pawl/core/dose-testing.js";
import { expect, it } from "vitest";

const cli = join(process.cwd(), "dist/lib/main.js");
const hasStrace = spawnSync("strace", ["--version"]).status === 0;

/** A training run of one update with two worker threads. */
const train = (out: string) => [
  cli,
  ...["train", "--quick", "--warm-start.episodes", "8", "--updates", "1", "--groups", "2"],
  ...["--evaluation.every", "0", "--engine.threads", "2", "--out", out],
];

function folders() {
  const folder = mkdtempSync(join(tmpdir(), "pawl-telemetry-"));
  const home = join(folder, "home");
  mkdirSync(home);
  const { ORT_DISABLE_TELEMETRY: _, ...clean } = process.env;
  const environment = { ...clean, HOME: home, XDG_CACHE_HOME: join(home, ".cache") };
  return { folder, home, environment };
}

it.runIf(isWhole)(
  "training leaves nothing in the home folder, and no log of ONNX Runtime's telemetry",
  () => {
    const { folder, home, environment } = folders();
    const ran = spawnSync(process.execPath, train(join(folder, "run")), {
      env: environment,
      encoding: "utf8",
    });
    expect(ran.status, ran.stderr).toBe(0);
    expect(readdirSync(home)).toEqual([]);
    expect(existsSync(join(tmpdir(), `mat-debug-${ran.pid}.log`))).toBe(false);
  },
);

it.skipIf(!hasStrace)("training opens no connection (needs strace)", () => {
  const { folder, environment } = folders();
  const log = join(folder, "calls");
  const traced = ["-f", "-o", log, "-e", "trace=connect,sendto,bind", process.execPath];
  const ran = spawnSync("strace", [...traced, ...train(join(folder, "run"))], {
    env: environment,
    encoding: "utf8",
  });
  expect(ran.status, ran.stderr).toBe(0);
  const calls = readFileSync(log, "utf8").split("\n");
  expect(calls.some((line) => line.includes("exited with 0"))).toBe(true);
  expect(calls.filter((line) => /AF_INET/.test(line))).toEqual([]);
});
