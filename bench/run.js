/**
 * `npm run bench -- NAME [ARGS]` runs bench/NAME.ts; the last line it prints is one JSON object.
 */
import { readdirSync } from "node:fs";
import { createJiti } from "jiti";

const folder = new URL(".", import.meta.url);
const [name, ...args] = process.argv.slice(2);
const names = readdirSync(folder)
  .filter((file) => file.endsWith(".ts"))
  .map((file) => file.replace(/\.ts$/, ""));

if (!names.includes(name)) {
  process.stderr.write(`usage: npm run bench -- NAME, where NAME is one of: ${names.join(", ")}\n`);
  process.exit(2);
}
const jiti = createJiti(import.meta.url);
await jiti.import("../src/cli/all-worlds.ts");
const { main } = await jiti.import(new URL(`${name}.ts`, folder).pathname);
const result = await main(args);
process.stdout.write(`${JSON.stringify(result)}\n`);
