/** The PyTorch server killed by real signals, and the effect on the run. */
import "@pawl/pawl/cli/all-worlds.js";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { writeTestModel } from "@pawl/engine-remote/remote/model-testing.js";
import { connectRemoteEngine } from "@pawl/engine-remote/remote/remote-engine.js";
import {
  findTorchPython,
  startTorchServer,
  type TorchServer,
} from "@pawl/pawl/cli/torch-server.js";
import { trainRun } from "@pawl/training/run.js";
import { tinyConfig } from "@pawl/training/testing.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const python = await findTorchPython(process.env).catch((error: Error) => error.message);
const absent = typeof python === "string";
if (absent) console.warn(`killing the PyTorch server is not tested: ${python}`);
// The launcher of PyTorch 1 does not run under newer Pythons; servers/torch starts its two ranks by hand then.
const alone = absent || /^[01]\./.test(python.torch);
if (alone && !absent)
  console.warn(`torchrun is not tested: PyTorch is ${python.torch}, older than 2`);

const folder = mkdtempSync(join(tmpdir(), "pawl-torch-faults-"));
const model = join(folder, "model");
const checkpoints = join(folder, "checkpoints");
const fetchAsItWas = globalThis.fetch;
afterAll(() => {
  globalThis.fetch = fetchAsItWas;
  rmSync(folder, { recursive: true, force: true });
});

function serve(port: number, nproc = 1, said: string[] = []): Promise<TorchServer> {
  if (typeof python === "string") throw new Error(python);
  const options = { model, checkpoints, host: "127.0.0.1", port, nproc, threads: 1 };
  const environment = { ...process.env, PAWL_API_KEY: "" };
  return startTorchServer(python, options, environment, (line) => said.push(line));
}

/** Calls back once, when the server has accepted a call and is working on it. */
function onCall(call: string, then: () => void): void {
  globalThis.fetch = async (target, init) => {
    const answer = await fetchAsItWas(target, init);
    if (String(target).endsWith(`/${call}`)) {
      globalThis.fetch = fetchAsItWas;
      then();
    }
    return answer;
  };
}

const fail = (message: string): never => {
  throw new Error(message);
};
const config = (url: string) =>
  tinyConfig({ engine: { address: url }, evaluation: { every: 0 }, updates: 2 });
const lines = (run: string) => openRun(run, fail).metrics();

describe.skipIf(absent)("the PyTorch server", () => {
  let server: TorchServer;
  const whole = join(folder, "whole");
  beforeAll(async () => {
    if (absent) return;
    await writeTestModel(model);
    server = await serve(0);
    await trainRun(config(server.url), { folder: whole });
  });
  afterAll(() => server?.stop());

  // packages/training/src/remote-run.slow.test.ts kills it in other calls; here we check what is left on disk.
  it("ends quietly by Ctrl-C, which reaches it too in a terminal", async () => {
    const said: string[] = [];
    const other = await serve(0, 1, said);
    other.process.kill("SIGINT");
    expect(await other.ended).toBe(0);
    expect(said).toEqual([expect.stringContaining("computes on")]);
  });

  it("killed during a save: the run says so, and resuming loses only the update", async () => {
    const run = join(folder, "killed");
    const { port } = new URL(server.url);
    let back: Promise<TorchServer> | undefined;
    const running = trainRun(config(server.url), {
      folder: run,
      onMetrics: ({ update }) => {
        if (update === 1) arm();
      },
    });
    const arm = (): void =>
      onCall("save_weights", () => {
        server.process.kill("SIGKILL");
        back = server.ended.then(() => serve(Number(port)));
      });
    await expect(running).rejects.toThrow(/restarted.*resume from the last one/);
    server = await back!;
    expect(openRun(run, fail).manifest.status).toBe("failed");
    expect(readdirSync(join(run, "checkpoints")).filter((name) => /^\d+$/.test(name))).toEqual([
      "000001",
    ]);
    await trainRun(config(server.url), { folder: run, resume: true });
    const [expected, actual] = [lines(whole), lines(run)];
    expect(actual.map((line) => line.update)).toEqual([-1, 0, 1]);
    for (const name of ["loss", "world.loss", "policy.kl", "gradNorm", "train.tokens"])
      expect(actual[2]![name], name).toBeCloseTo(expected[2]![name]!, 4);
  });

  it.skipIf(alone)(
    "exits completely if one of its processes is killed, and the client says so",
    async () => {
      const pair = await serve(0, 2);
      const engine = await connectRemoteEngine({
        url: pair.url,
        environment: {},
        giveUpAfterMs: 500,
      });
      const ranks = execFileSync("ps", ["-o", "pid=", "--ppid", String(pair.process.pid)], {
        encoding: "utf8",
      });
      const pids = ranks.trim().split(/\s+/).map(Number);
      expect(pids).toHaveLength(2);
      process.kill(pids[1]!, "SIGKILL");
      expect(await pair.ended).not.toBe(0);
      await expect(engine.forward([{ ids: [1, 2, 3] }])).rejects.toThrow(/does not answer/);
      await engine.dispose();
    },
  );
});
