/**
 * What masks cost: sampling with answers held to a schema, and without.
 *
 *   npm run bench -- masks MODEL [--rows 8] [--tokens 64] [--repetitions 7]
 *
 *   plain     answers that are held to nothing
 *   masked    each answer is an object with a long text
 *   counted   the same where the text has a least length, so that every place has its own mask
 *
 * All three sample as many tokens after the same prompt, interleaved in one process, and medians
 * are compared. `_ratio` is of seconds, `_processor_ratio` of the processors' seconds, which other
 * work on the machine distorts less: how much of plain sampling's speed is left. `_first_seconds`
 * is the first call, with the schema's automaton, its masks and the graphs.
 */
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import type { Constraint } from "@pawl/core/text/constraint.js";
import { engineOptions } from "@pawl/training/engines.js";
import { openModel, savedStartOf } from "@pawl/training/open-model.js";
import { interleave, machine, median } from "./peer/side.js";

const object = (text: object): Constraint => ({
  json: { type: "object", properties: { text }, required: ["text"], additionalProperties: false },
});

const SIDES: Readonly<Record<"plain" | "masked" | "counted", Constraint | undefined>> = {
  plain: undefined,
  masked: object({ type: "string", pattern: "^[^\\\\]*$" }),
  counted: object({ type: "string", minLength: 600 }),
};
type Side = keyof typeof SIDES;
const names = Object.keys(SIDES) as Side[];

/** Measures sampling with masks and without. */
export async function main(args: readonly string[]): Promise<Record<string, number | string>> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      rows: { type: "string", default: "8" },
      tokens: { type: "string", default: "64" },
      repetitions: { type: "string", default: "7" },
    },
  });
  const [start] = positionals;
  if (start === undefined) throw new Error("name a model");
  const [rows, maxTokens] = [Number(values.rows), Number(values.tokens)];
  const load = loadavg()[0]!;
  const engine = engineOptions.parse({});
  const open = await openModel({ start: await savedStartOf({ model: { start }, engine }), engine });
  const { tokenizer } = open;
  const text = "Tell a long story of a fox who lives in a forest, as JSON.";
  const message = { role: "user", content: text } as const;
  const prompt = tokenizer.encode(tokenizer.chat([message], { addGenerationPrompt: true }));
  let seed = 0;
  const processor: Record<Side, number[]> = { plain: [], masked: [], counted: [] };
  /** Seconds for a number of tokens that is always the same. */
  const sample = async (name: Side): Promise<number> => {
    const constraint = SIDES[name];
    const requests = Array.from({ length: rows }, () => ({
      ...{ prompt: [...prompt], maxTokens, seed: seed++ },
      ...(constraint && { constraint }),
    }));
    const [begin, used] = [performance.now(), process.cpuUsage()];
    const samples = (await open.engine.sample(requests)).flat();
    const seconds = (performance.now() - begin) / 1000;
    const { user, system } = process.cpuUsage(used);
    processor[name].push((user + system) / 1e6);
    const tokens = samples.reduce((sum, one) => sum + one.tokens.length, 0);
    if (tokens !== rows * maxTokens) throw new Error(`${name}: ${tokens} tokens were sampled`);
    return seconds;
  };
  const first: Partial<Record<Side, number>> = {};
  for (const name of names) first[name] = await sample(name);
  const seconds = await interleave(
    {
      plain: () => sample("plain"),
      masked: () => sample("masked"),
      counted: () => sample("counted"),
    },
    Number(values.repetitions),
  );
  await open.engine.dispose();
  const digits = (x: number) => Number(x.toFixed(3));
  const found: Record<string, number | string> = {};
  for (const name of names) {
    // The first call and the first round warm up.
    const spent = (one: Side) => median(processor[one].slice(2));
    found[`${name}_tokens_per_s`] = Number(((rows * maxTokens) / seconds[name]).toFixed(1));
    if (name !== "plain") {
      found[`${name}_ratio`] = digits(seconds.plain / seconds[name]);
      found[`${name}_processor_ratio`] = digits(spent("plain") / spent(name));
    }
    found[`${name}_first_seconds`] = digits(first[name]!);
  }
  return { ...found, machine: machine(), load: Number(load.toFixed(1)) };
}
