/** `npm run mutate -- [--sample N] [--seed S] [PATH…]`: see run.ts. */
import { createJiti } from "jiti";

// Everything that tests can notice.
process.env.PAWL_DOSE = "whole";
const jiti = createJiti(import.meta.url);
if (process.send === undefined) {
  const { main } = await jiti.import("./run.ts");
  process.exitCode = await main(process.argv.slice(2));
} else {
  const { runJob } = await jiti.import("./child.ts");
  await runJob(JSON.parse(process.argv[2]), (report) => process.send(report));
  process.exit(0);
}
