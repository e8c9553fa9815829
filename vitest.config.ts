import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "tests/**/*.test.ts", "examples/**/*.test.ts"],
    globalSetup: ["tests/build.ts"],
    testTimeout: 120_000,
    pool: "forks",
  },
});
