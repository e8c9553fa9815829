import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../../", import.meta.url));

it("starts its worker from compiled JavaScript too", async () => {
  // Inside the repository, so that the compiled files find their packages.
  const cache = join(root, "node_modules", ".cache");
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, "pawl-build-"));
  try {
    const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
    const entry = join(root, "src", "engine", "embedded");
    const config = join(folder, "tsconfig.json");
    await writeFile(
      config,
      JSON.stringify({
        extends: join(root, "tsconfig.json"),
        compilerOptions: { noEmit: false, rootDir: root, outDir: join(folder, "dist") },
        include: [],
        files: ["embedded-engine.ts", "worker.ts", "replica-worker.ts"].map((file) =>
          join(entry, file),
        ),
      }),
    );
    await run(process.execPath, [compiler, "-p", config], { cwd: root });
    await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
    const script = `
      const { createEmbeddedEngine } = await import("./dist/src/engine/embedded/embedded-engine.js");
      const engine = await createEmbeddedEngine({ model: { preset: "tiny", vocabularySize: 16 } });
      const [[sample]] = await engine.sample([{ prompt: [1, 2], maxTokens: 3, seed: 0 }]);
      console.log(JSON.stringify(sample.tokens));`;
    await writeFile(join(folder, "main.js"), script);
    // The process ends although the engine was not disposed: an idle engine does not keep it alive.
    const { stdout } = await run(process.execPath, ["main.js"], { cwd: folder, timeout: 20_000 });
    expect(JSON.parse(stdout)).toHaveLength(3);
  } finally {
    await rm(folder, { recursive: true });
  }
});
