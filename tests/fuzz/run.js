/** `npm run fuzz -- NAME… [--minutes M] [--seed S]`: see fuzz.ts. */
import { createJiti } from "jiti";

const { main } = await createJiti(import.meta.url, {
  fsCache: "node_modules/.cache/jiti",
}).import("./fuzz.ts");
process.exitCode = await main(process.argv.slice(2));
