import { basename, extname, join } from "node:path";
import { z } from "zod";
import { writeFileAtomically } from "../atomic-file.js";
import { ConfigError } from "../config/config-error.js";
import type { Environment } from "../envs/env.js";
import { type EnvConfig, openEnvironment } from "../envs/open.js";
import { UserError } from "../errors.js";
import { type Rescored, rescore, type StoredReward } from "../evaluation/rescore.js";
import { writeError } from "../io-error.js";
import { loadDefault } from "../plugins/load.js";
import { type Manifest, sealedManifest } from "../runs/manifest.js";
import { openRun } from "../runs/run-folder.js";
import { packageVersion } from "../version.js";
import { defineCommand, exitCodes } from "./command.js";
import { number, percent, table } from "./format.js";
import { type Io, print, warn } from "./io.js";

/** `pawl rescore`: another reward for the episodes of a run. */
export const rescoreCommand = defineCommand({
  name: "rescore",
  summary: "judge a run's stored episodes with another reward function",
  positionals: "RUN",
  details:
    "FILE is a module whose default export is a function of a finished episode ({ task, actions, answer, observations,\nmessages, episode }) to a number or { reward, success, score }. Nothing is played. The records stay as they are; old\nand new returns are written beside them.",
  options: () =>
    z.strictObject({
      reward: z.string().min(1).describe("module with the reward function, such as ./reward.ts"),
      out: z
        .string()
        .min(1)
        .optional()
        .describe("file for the results (default: RUN/rescored-NAME.jsonl)"),
      json: z.boolean().default(false).describe("print the results as one line of JSON"),
    }),
  examples: [
    ["pawl rescore runs/… --reward ./shorter.ts", "what if long episodes were worth less?"],
    ["pawl rescore runs/… --reward ./judge.ts --json", "one line of JSON, for other programs"],
  ],
  async run({ config, positionals, io, signal }) {
    const [folder] = positionals;
    if (folder === undefined)
      throw new ConfigError("pawl rescore needs a run: pawl rescore RUN --reward FILE");
    const { given, sha256 } = await loadDefault(config.reward, "reward");
    if (typeof given !== "function")
      throw new ConfigError(
        `reward ${config.reward}: the default export is ${given === undefined ? "missing" : `of type ${typeof given}`}; expected a function of a finished episode, as in export default ({ task, answer }) => …`,
      );
    const run = openRun(folder, (message) => warn(io, message));
    const environment = environmentOf(sealedManifest(folder), io);
    const name = basename(config.reward, extname(config.reward));
    const out = config.out ?? join(folder, `rescored-${name}.jsonl`);
    const options = { reward: given as StoredReward, environment, signal };
    const sums = createSums();
    let broken = 0;
    try {
      await writeFileAtomically(out, async (handle) => {
        const write = (value: unknown) => handle.appendFile(`${JSON.stringify(value)}\n`);
        const about = { reward: config.reward, sha256, run: folder };
        await write({ ...about, at: new Date().toISOString(), pawl: packageVersion() });
        for (const episode of run.episodes()) {
          signal.throwIfAborted();
          const judged = await rescore(episode, options);
          if (judged === undefined) broken++;
          else {
            sums.add(judged);
            await write(judged);
          }
        }
      });
    } catch (error) {
      throw writeError(error, out);
    }
    if (config.json) print(io, JSON.stringify({ broken, byType: sums.byType(), out }));
    else {
      for (const line of sumsTable(sums)) print(io, line);
      if (broken > 0) print(io, `\n${number(broken)} broken episodes were not judged`);
      print(io, `\nwritten to ${out}; the run's records are unchanged`);
    }
    return exitCodes.done;
  },
});

/** The run's environment, whose tasks know more than the record; without it they know less. */
function environmentOf({ config }: Manifest, io: Io): Environment | undefined {
  const { env } = config as { readonly env?: EnvConfig };
  if (typeof env?.name !== "string") return undefined;
  try {
    return openEnvironment(env, { play: false });
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    warn(
      io,
      `the environment of the run cannot be opened, so tasks have only what was recorded, and the largest return is taken to be 1: ${error.message}`,
    );
    return undefined;
  }
}

interface Sum {
  episodes: number;
  changed: number;
  readonly success: [before: number, after: number];
  readonly returns: [before: number, after: number];
}

interface Sums {
  add(one: Rescored): void;
  /** Means by task type; `all` is over all of them. */
  byType(): Readonly<Record<string, Sum>>;
}

function createSums(): Sums {
  const sums = new Map<string, Sum>();
  const addTo = (type: string, { before, after }: Rescored): void => {
    const sum = sums.get(type) ?? { episodes: 0, changed: 0, success: [0, 0], returns: [0, 0] };
    sum.episodes++;
    if (before.success !== after.success) sum.changed++;
    for (const [i, one] of [before, after].entries()) {
      sum.success[i]! += one.success ? 1 : 0;
      sum.returns[i]! += one.return;
    }
    sums.set(type, sum);
  };
  return {
    add(one) {
      addTo(one.type, one);
      addTo("all", one);
    },
    byType: () =>
      Object.fromEntries(
        [...sums]
          .sort(([a], [b]) => Number(a === "all") - Number(b === "all") || a.localeCompare(b))
          .map(([type, sum]) => {
            const mean = (values: [number, number]): [number, number] => [
              values[0] / sum.episodes,
              values[1] / sum.episodes,
            ];
            return [type, { ...sum, success: mean(sum.success), returns: mean(sum.returns) }];
          }),
      ),
  };
}

function sumsTable(sums: Sums): readonly string[] {
  const header = ["task type", "episodes", "success", "now", "return", "now", "success changed"];
  return table(
    header,
    Object.entries(sums.byType()).map(([type, { episodes, changed, success, returns }]) => [
      type,
      number(episodes),
      ...success.map(percent),
      ...returns.map((value) => number(value, 2)),
      number(changed),
    ]),
  );
}
