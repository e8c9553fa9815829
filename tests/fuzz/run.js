/** `npm run fuzz -- NAME… [--minutes M] [--seed S]`: see fuzz.ts. */
import { createJiti } from "jiti";

const jiti = createJiti(import.meta.url, { fsCache: "node_modules/.cache/jiti" });
await jiti.import("../../src/cli/all-worlds.ts");
const { main } = await jiti.import("./fuzz.ts");
process.exitCode = await main(process.argv.slice(2));
