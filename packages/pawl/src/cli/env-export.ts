import { existsSync } from "node:fs";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { writeFolderAtomically } from "@pawl/core/files/atomic-file.js";
import { folder } from "@pawl/core/trust/reach.js";
import { writeHarborTask } from "@pawl/worlds/terminal/harbor-write.js";
import { madeTaskOptions, madeTasks } from "@pawl/worlds/terminal/tasks.js";
import { z } from "zod";
import { defineCommand, exitCodes } from "./command.js";
import { number } from "./format.js";
import { print } from "./io.js";

/** `pawl env export`: tasks of the terminal as folders of Harbor. */
export const envExport = defineCommand({
  name: "env export",
  summary: "write made-up tasks of the terminal as task folders of Harbor",
  details:
    "Each is a folder with instruction.md, task.toml, environment/, tests/test.sh and solution/solve.sh, by split:\nOUT/train/0, OUT/test/0, …",
  plugins: "none",
  options: () =>
    z.strictObject({
      ...madeTaskOptions,
      splits: z
        .array(z.enum(["train", "valid", "test"]))
        .min(1)
        .default(["train", "valid", "test"])
        .describe("splits to write"),
      count: z.int().min(1).default(100).describe("tasks of each split, the first ones"),
      out: folder(z.string()).default("tasks").describe("folder to write to"),
    }),
  examples: [
    ["pawl env export --count 1000 --out tasks", "1,000 tasks of each split, of all kinds"],
    [
      "pawl env export --kinds script --difficulty 3 --splits test --out tasks",
      "scripts to mend, of the hardest level",
    ],
  ],
  async run({ config, io }) {
    const { splits, count, out, ...options } = config;
    if (existsSync(out)) throw new ConfigError(`${out} exists already: choose another --out`);
    const source = madeTasks(options);
    let written = 0;
    await writeFolderAtomically(out, async (temporary) => {
      for (const split of splits)
        for (const task of source.lists[split]!().slice(0, count)) {
          await writeHarborTask(temporary, source.load(task));
          written += 1;
        }
    });
    print(io, `wrote ${number(written)} tasks to ${out}`);
    return exitCodes.done;
  },
});
