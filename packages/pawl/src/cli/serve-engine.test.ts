import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { createRun } from "@pawl/core/runs/run-folder.js";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { createColours } from "./colours.js";
import { main } from "./dispatch.js";
import { runCli } from "./testing.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-serve-engine-"));
const model = join(folder, "model");
const windows = process.platform === "win32";
beforeAll(() => {
  mkdirSync(model);
  writeFileSync(join(model, "config.json"), "{}");
  writeFileSync(join(model, "model.safetensors"), "");
});
afterAll(() => rmSync(folder, { recursive: true }));

/** A stand-in for Python: it has PyTorch, prints its arguments, and serves nothing. */
function python(name: string, serving: string): string {
  const file = join(folder, name);
  const version = 'if [ "$1" = -c ]; then echo 2.9.0; exit 0; fi';
  writeFileSync(file, `#!/bin/sh\n${version}\necho "args: $*" >&2\n${serving}\n`);
  chmodSync(file, 0o755);
  return file;
}

describe("pawl serve engine", () => {
  const refused = (...args: readonly string[]) =>
    runCli(["serve", "engine", ...args], { env: { PATH: folder } });

  it("says what is missing: a model, a key, Python, PyTorch", async () => {
    expect(await refused("--model", folder)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/no checkpoint in .*config.json/),
    });
    // A run stands for its latest checkpoint.
    const config = {};
    createRun({ folder: join(folder, "run"), kind: "train", seed: 0, config }, () => undefined);
    expect(await refused("--model", join(folder, "run"))).toMatchObject({
      stderr: expect.stringMatching(/run has no checkpoint: wait for its first one/),
    });
    expect(await refused("--model", model, "--host", "0.0.0.0")).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/0\.0\.0\.0 can be reached .* set PAWL_API_KEY/),
    });
    expect(await refused("--model", model, "--python", join(folder, "none"))).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/needs Python with PyTorch.*no .*none.*pip install torch/),
    });
    // Node is not a Python with PyTorch either, and says so in its own way.
    expect(await refused("--model", model, "--python", process.execPath)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/none was found .*PAWL_PYTHON/),
    });
  });

  it.skipIf(windows)("says that weights are random if a folder has none", async () => {
    const bare = join(folder, "bare");
    mkdirSync(bare);
    writeFileSync(join(bare, "config.json"), "{}");
    const ends = python("ends", "exit 3");
    const served = (name: string) => refused("--model", name, "--port", "0", "--python", ends);
    expect((await served(bare)).stderr).toMatch(/no weights in .*bare .*serving random ones/);
    expect((await served(model)).stderr).not.toContain("random");
  });

  it.skipIf(windows)("starts one process or torchrun, and stops it", async () => {
    const listens = `echo '{"listening": "http://127.0.0.1:1"}'; exec sleep 60`;
    for (const [nproc, expected] of [
      ["1", /^args: \S*serve\.py --model .*model --checkpoints \S+ --host 127\.0\.0\.1 --port 0/],
      ["4", /^args: -m torch\.distributed\.run --standalone --nproc_per_node=4 \S*serve\.py/],
    ] as const) {
      const [stdout, stderr] = [new PassThrough(), new PassThrough()];
      const controller = new AbortController();
      const io = {
        stdin: Readable.from([""]),
        stdout,
        stderr,
        env: {
          ...process.env,
          PAWL_API_KEY: "never-shown",
          PAWL_PYTHON: python("listens", listens),
        },
        colors: createColours(false),
      };
      const args = ["serve", "engine", "--model", model, "--port", "0", "--nproc", nproc];
      const ended = main(args, io, controller.signal);
      const line = await new Promise<string>((resolve) => {
        stdout.setEncoding("utf8").once("data", resolve);
      });
      expect(line).toMatch(/model at http:\/\/127\.0\.0\.1:1 \(PyTorch 2\.9\.0\); --engine http/);
      controller.abort();
      expect(await ended).toBe(0);
      const said = String(stderr.read());
      expect(said).toMatch(expected);
      expect(said + line).not.toContain("never-shown");
    }
  });

  it.skipIf(windows)("stops the server when it is killed", async () => {
    const [started, over] = [join(folder, "started"), join(folder, "over")];
    // The stand-in watches its standard input as the real server does.
    const listens = `echo '{"listening": "http://127.0.0.1:1"}'; touch ${started}; cat; touch ${over}`;
    const module = JSON.stringify(
      new URL("../../../../dist/packages/pawl/src/cli/torch-server.js", import.meta.url),
    );
    const options = { checkpoints: folder, host: "127.0.0.1", port: 0, nproc: 1 };
    const start = `m.startTorchServer({ command: process.argv[1], torch: "2" }, ${JSON.stringify(options)}, process.env, () => undefined)`;
    const load = `import(${module}).then((m) => ${start})`;
    const args = ["-e", load, python("watches", listens)];
    const parent = spawn(process.execPath, args, { stdio: "ignore" });
    const ended = new Promise((resolve) => parent.once("exit", (_, signal) => resolve(signal)));
    await vi.waitUntil(() => existsSync(started), { timeout: 120_000 });
    expect(existsSync(over)).toBe(false);
    parent.kill("SIGKILL");
    expect(await ended).toBe("SIGKILL");
    await vi.waitUntil(() => existsSync(over), { timeout: 120_000 });
  });

  it.skipIf(windows)("passes on why the server could not start", async () => {
    const fails = python("fails", "echo 'out of memory' >&2; exit 3");
    const { code, stderr } = await refused("--model", model, "--python", fails);
    expect(code).toBe(1);
    expect(stderr).toMatch(/ended with 3 before it was listening: args: .*\n.*out of memory/s);
  });
});
