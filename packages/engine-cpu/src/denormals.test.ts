import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const run = promisify(execFile);

it.runIf(process.platform === "linux" && process.arch === "x64")(
  "makes threads that are started later take denormal numbers for zero",
  async () => {
    const module = new URL("../../../dist/packages/engine-cpu/src/denormals.js", import.meta.url);
    // In a process of its own, which has had no session.
    const script = `
    const { Worker } = require("node:worker_threads");
    const small = "require('node:worker_threads').parentPort.postMessage(2.3e-308 / Number('3') === 0)";
    const found = () => new Promise((done) => new Worker(small, { eval: true }).on("message", done));
    import(${JSON.stringify(module)}).then(async ({ flushDenormals }) => {
      const before = await found();
      await flushDenormals();
      console.log(JSON.stringify([before, await found()]));
      process.exit();
    });`;
    const { stdout } = await run(process.execPath, ["--eval", script], { timeout: 60_000 });
    expect(JSON.parse(stdout)).toEqual([false, true]);
  },
);
