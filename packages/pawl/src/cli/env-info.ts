import { settingsOf } from "@pawl/core/config/settings.js";
import { EnvError, type Environment } from "@pawl/core/envs/env.js";
import { type EnvConfig, openEnvironment } from "@pawl/core/envs/open.js";
import { envConfig, envKinds, findEnvKind } from "@pawl/core/envs/registry.js";
import { z } from "zod";
import { shortHash, taskListOf } from "../evaluation/task-list.js";
import { defineCommand, exitCodes, type Peek } from "./command.js";
import { envOptions } from "./env-options.js";
import { number, table, widthOf, wrap } from "./format.js";
import { settingLines } from "./help.js";
import { type Io, print } from "./io.js";

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

/** `pawl env info`: what an environment is, its options, its data and its tasks. */
export const envInfo = defineCommand({
  name: "env info",
  summary: "describe an environment: its options, data and tasks",
  positionals: "NAME|FILE",
  takesPlugin: true,
  takesEnv: true,
  options: (peek) => z.strictObject({ env: anyOptions(peek) }),
  examples: [
    ["pawl env info household", "options, splits, task types, a first observation"],
    ["pawl env info textworld --env.types coin", "the same with other options"],
    ["pawl env info ./guess.ts", "the same of a plugin's environment"],
  ],
  async run({ config, io }) {
    const { name, limits: _, ...given } = config.env;
    const kind = findEnvKind(String(name));
    const parsed = kind.options.safeParse(given);
    const { bold } = io.colors;
    print(io, `${bold(kind.name)}: ${kind.summary}`);
    print(io, `\n${bold("Options")}`);
    // The environment itself is named by the command.
    const own = settingsOf(envConfig(kind), ["env"]).filter(({ path }) => path.at(-1) !== "name");
    for (const line of settingLines(own, io)) print(io, line);
    if (!parsed.success) {
      print(io, `\nIt needs options to be opened:\n${z.prettifyError(parsed.error)}`);
      return exitCodes.failed;
    }
    const data = kind.describe?.(parsed.data) ?? [];
    const width = widthOf(io.stdout.columns) - 2;
    if (data.length > 0) print(io, `\n${bold("Data")}`);
    for (const line of data.flatMap((one) => wrap(one, width))) print(io, `  ${line}`);
    try {
      const env = { name: kind.name, ...parsed.data };
      printTasks(openEnvironment(env), env, io);
      return exitCodes.done;
    } catch (error) {
      // An environment can be described without its data, but not opened.
      if (!(error instanceof EnvError)) throw error;
      print(io, `\n${io.colors.red("not usable:")} ${error.message}`);
      return exitCodes.failed;
    }
  },
});

/** The options of the environment, also if some that it needs are missing: it is described then. */
function anyOptions(peek: Peek): z.ZodPrefault<z.ZodObject> {
  const { shape } = envOptions(peek).unwrap();
  const optional = Object.entries(shape).map(([key, one]) => [key, (one as z.ZodType).optional()]);
  return z.strictObject(Object.fromEntries(optional)).prefault({});
}

function printTasks(environment: Environment, config: EnvConfig, io: Io): void {
  const { bold, dim } = io.colors;
  print(io, `\n${bold("Tasks")}`);
  const rows = environment.splits.map((split) => {
    const tasks = environment.tasks(split);
    const types = [...new Set(tasks.map((task) => task.type))];
    const { name, sha256 } = taskListOf(config, split, tasks);
    return [name, number(tasks.length), shortHash(sha256), types.join(", ")];
  });
  for (const line of table(["task list", "tasks", "sha256", "types"], rows)) print(io, `  ${line}`);
  print(io, `  step limit ${environment.stepLimit}, largest return ${environment.maxReturn}`);
  const env = environment.create();
  const task = environment.tasks(environment.splits[0]!)[0];
  if (task === undefined || "close" in env) return;
  const observation = env.reset(task);
  print(io, `\n${bold("For example")} ${dim(task.id)}`);
  print(io, `  ${dim("goal")} ${env.goal}\n  ${dim("sees")} ${observation}`);
  const admissible = env.admissibleActions?.() ?? [];
  print(
    io,
    `  ${dim("can ")} ${admissible.slice(0, 6).join(", ")}${admissible.length > 6 ? ", …" : ""}`,
  );
}
