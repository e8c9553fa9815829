import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it, vi } from "vitest";
import { createServerPool } from "./bench-observations.js";
import { runCli } from "./testing.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-server-pool-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** A stand-in for Python with PyTorch: its port is its process id, and it serves nothing. */
function standIn(): string {
  const file = join(folder, "python");
  const lines = [
    "#!/bin/sh",
    'echo "args: $*" >&2',
    `echo "{\\"listening\\": \\"http://127.0.0.1:$$\\"}"`,
    "exec cat",
  ];
  writeFileSync(file, lines.join("\n"));
  chmodSync(file, 0o755);
  return file;
}

const pidOf = (url: string): number => Number(url.split(":").at(-1));
function runs(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

it.skipIf(process.platform === "win32")(
  "starts a server when a place needs one, again if it has ended, and stops all",
  async () => {
    const out = join(folder, "out");
    const pool = createServerPool({
      ...{ count: 2, out, threads: 1, memory: 3, batchTokens: 64, environment: process.env },
      python: { command: standIn(), torch: "2" },
      onProblem: expect.unreachable,
    });
    expect(existsSync(out)).toBe(false);
    const first = await pool.open(0);
    expect(await pool.open(0)).toBe(first);
    expect(existsSync(join(out, "servers", "2.log"))).toBe(false);
    const second = await pool.open(1);
    expect(second).not.toBe(first);

    process.kill(pidOf(first), "SIGKILL");
    const again = await vi.waitUntil(async () => {
      const url = await pool.open(0);
      return url === first ? undefined : url;
    });
    expect(await pool.open(1)).toBe(second);

    const args = `--checkpoints ${join(out, "checkpoints")} --host 127.0.0.1 --port 0 --threads 1 --batch-tokens 64 --memory 3 --until-stdin-closes\n`;
    const startsIn = (name: string): number =>
      readFileSync(join(out, "servers", name), "utf8").split(args).length - 1;
    await vi.waitFor(() => expect(["1.log", "2.log"].map(startsIn)).toEqual([2, 1]));

    expect([again, second].map(pidOf).map(runs)).toEqual([true, true]);
    await pool.stop();
    expect([again, second].map(pidOf).map(runs)).toEqual([false, false]);
  },
);

it.skipIf(process.platform === "win32")("serves even if its output cannot be kept", async () => {
  const out = join(folder, "full");
  // A file where the folder should be stands for a full disk.
  writeFileSync(out, "");
  const problems: string[] = [];
  const pool = createServerPool({
    ...{ count: 1, out, threads: 1, environment: process.env },
    python: { command: standIn(), torch: "2" },
    onProblem: (message) => problems.push(message),
  });
  const first = await pool.open(0);
  process.kill(pidOf(first), "SIGKILL");
  await vi.waitUntil(async () => (await pool.open(0)) !== first);
  await pool.stop();
  await vi.waitFor(() => expect(problems).toHaveLength(1));
  expect(problems[0]).toMatch(/^what the servers say is lost: .*full/);
});

it("is refused beside other servers, and its settings without it, before anything is made", async () => {
  const out = join(folder, "refused");
  const refused = (...args: readonly string[]) =>
    runCli(["bench", "observations", "--out", out, ...args], { env: { PAWL_PYTHON: "none" } });
  for (const [args, message] of [
    [["--server.memory", "3"], /--server\.memory: has no effect without --servers/],
    [
      ["--servers", "2", "--engines", "http://127.0.0.1:1"],
      /--servers: .*leave out --engines, or this/,
    ],
    [
      ["--servers", "2", "--train.engine.address", "http://127.0.0.1:1"],
      /--servers: .*the runs are to use http:\/\/127\.0\.0\.1:1/,
    ],
    [["--servers", "2"], /needs Python with PyTorch.*no none.*PAWL_PYTHON/],
  ] as const) {
    const { code, stderr } = await refused(...args);
    expect(stderr).toMatch(message);
    expect(code).toBeGreaterThan(0);
  }
  expect(existsSync(out)).toBe(false);
});
