import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "tests/**/*.test.ts", "examples/**/*.test.ts"],
    globalSetup: ["tests/build.ts"],
    testTimeout: 240_000,
    hookTimeout: 240_000,
    pool: "forks",
    // By default one core is left idle, which on two cores is half of them.
    maxWorkers: "100%",
  },
});
