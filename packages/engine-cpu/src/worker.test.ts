import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const run = promisify(execFile);

it("starts its worker in the compiled package, and does not keep an idle process alive", async () => {
  const module = new URL("../../../dist/lib/index.js", import.meta.url);
  // The engine is not disposed.
  const script = `
    import(${JSON.stringify(module)}).then(async ({ createEmbeddedEngine }) => {
      const engine = await createEmbeddedEngine({ model: { preset: "tiny", vocabularySize: 16 } });
      const [[sample]] = await engine.sample([{ prompt: [1, 2], maxTokens: 3, seed: 0 }]);
      console.log(JSON.stringify(sample.tokens));
    });`;
  const { stdout } = await run(process.execPath, ["--eval", script], { timeout: 60_000 });
  expect(JSON.parse(stdout)).toHaveLength(3);
});

it("has telemetry switched off where native code looks, whatever module opens it", async () => {
  const module = new URL(
    "../../../dist/packages/engine-cpu/src/embedded-engine.js",
    import.meta.url,
  );
  const { ORT_DISABLE_TELEMETRY: _, ...environment } = process.env;
  const home = await mkdtemp(join(tmpdir(), "pawl-home-"));
  const script = `
    import(${JSON.stringify(module)}).then(async ({ createEmbeddedEngine }) => {
      const engine = await createEmbeddedEngine({ model: { preset: "tiny", vocabularySize: 16 } });
      await engine.sample([{ prompt: [1, 2], maxTokens: 3, seed: 0 }]);
      console.log("sampled");
    });`;
  const env = { ...environment, HOME: home, XDG_CACHE_HOME: join(home, ".cache") };
  const { stdout } = await run(process.execPath, ["--eval", script], { timeout: 60_000, env });
  expect(stdout).toBe("sampled\n");
  expect(await readdir(home)).toEqual([]);
  await rm(home, { recursive: true });
});
