import { envKinds } from "@pawl/core/envs/registry.js";
import { z } from "zod";
import { defineCommand, exitCodes } from "./command.js";
import { table } from "./format.js";
import { print } from "./io.js";

/** `pawl env list`: the available environments. */
export const envList = defineCommand({
  name: "env list",
  summary: "list the environments",
  options: () => z.strictObject({}),
  examples: [["pawl env list", "names and what each world is"]],
  async run({ io }) {
    const rows = envKinds().map((kind) => [kind.name, kind.summary]);
    for (const line of table(["environment", "what it is"], rows)) print(io, line);
    print(io, "\npawl env info NAME describes one in detail.");
    return exitCodes.done;
  },
});
