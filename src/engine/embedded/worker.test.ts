import { execFile } from "node:child_process";
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
