#!/usr/bin/env node
/** The program `pawl`; in a clone that is not built it says how to build it, and needs nothing for that. */
import { existsSync } from "node:fs";

const program = new URL("../dist/lib/main.js", import.meta.url);
if (existsSync(program)) {
  await import(program.href);
} else {
  console.error("pawl: this clone is not installed yet: run npm ci first");
  process.exitCode = 1;
}
