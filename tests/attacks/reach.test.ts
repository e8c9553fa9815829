/** Every setting of every command is known either to reach nothing, or by what it reaches. */

import { type Setting, settingsOf } from "@pawl/core/config/settings.js";
import { envKinds } from "@pawl/core/envs/registry.js";
import { address, folder, markOf, program, reachedBy, variable } from "@pawl/core/trust/reach.js";
import { loadCommands } from "@pawl/pawl/cli/command-entry.js";
import { commands } from "@pawl/pawl/cli/commands.js";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import "@pawl/worldmodel/simulator-kind.js";

/**
 * Settings in words that reach nothing: names, texts, and what is only read. The environment's own stand below `env`
 * wherever a command has one. Whoever adds a setting in words adds it here, or marks what it reaches (`packages/core/src/trust/reach.ts`).
 */
const PLAIN: readonly RegExp[] = [
  // Names and lists of names.
  /(^|\.)(model|encoderModel|samplerModel|project|split|splits|types|kinds|families|relations|simplifications|stopOn)$/,
  /(^|\.)(algorithms|arms|only|part|settings|seeds|sizes|budget|budgets|loraTargets|task|tasks|name|license|base)$/,
  // Texts, and numbers that may be words.
  /(^|\.)(goal|instructions|system|marker|extra|lambda|history|actions|prefix|until|skip|targets|prices)$/,
  // Files and folders that are read: data, never code. A run among them is read by the same rules.
  /(^|\.)(data|corpus|ids|train|test|valid|text|template|choices|paraphrases|examples|file|from|cards|compare|models|student)$/,
  /(^|\.)(runs|run|start|checkpoint|resume|finished|mix|policies|policy|world|distillation\.teacher)$/,
];

/** What only a command line gives: what no run records, or no command takes from a record. */
const LINE_ONLY: readonly RegExp[] = [
  /^(out|dir|host|keyFile|checkpoints|agent|engine|engines|arguments|twMake|python|server\.python|reward)$/,
];

const inWords = ({ choices, isSwitch, placeholder }: Setting): boolean =>
  choices.length === 0 && !isSwitch && placeholder !== "NUMBER";

async function settingsInWords(): Promise<ReadonlyMap<string, Setting>> {
  const all = new Map<string, Setting>();
  for (const command of await loadCommands(commands))
    for (const { name } of envKinds())
      for (const setting of settingsOf(
        command.options((path) => (/(^|\.)env\.name$/.test(path) ? name : undefined)),
      ))
        if (inWords(setting)) all.set(setting.path.join("."), setting);
  return all;
}

describe("no setting that reaches something is forgotten", () => {
  it("every setting in words of every command is marked, or known to reach nothing", async () => {
    const all = await settingsInWords();
    const unknown = [...all].filter(
      ([path, { schema }]) =>
        markOf(schema) === undefined && ![...PLAIN, ...LINE_ONLY].some((plain) => plain.test(path)),
    );
    expect(unknown.map(([path, { description }]) => `${path}: ${description}`)).toEqual([]);
  });

  it("a setting whose description speaks of an address, a program or a variable is marked", async () => {
    const speaks = /\b(URL|address) of\b|environment variable|\bcommand \(|\bjar\b|interpreter/i;
    const unmarked = [...(await settingsInWords())].filter(
      ([path, { schema, description }]) =>
        speaks.test(description) &&
        markOf(schema) === undefined &&
        !LINE_ONLY.some((plain) => plain.test(path)),
    );
    expect(unmarked.map(([path, { description }]) => `${path}: ${description}`)).toEqual([]);
  });

  it("marks are found below defaults, lists and variants, and addresses without a mark", () => {
    const schema = z.strictObject({
      tool: program(z.string()).optional().describe("a tool"),
      one: z.union([
        z.strictObject({ at: address(z.url()), key: variable(z.string()).default("USUAL") }),
        z.strictObject({ into: folder(z.string()) }),
      ]),
      free: z.record(z.string(), z.unknown()),
      usual: address(z.url()).default("http://usual.example"),
    });
    const reached = reachedBy(schema, {
      tool: "sh",
      one: { at: "https://a.example/v1", key: "OTHER" },
      free: { deep: [{ there: "ws://b.example:1/x" }] },
      usual: "http://usual.example",
    });
    expect(reached.map(({ setting, shown }) => `${setting} ${shown}`)).toEqual([
      "tool runs sh",
      "one.at calls https://a.example",
      "one.at sends the key in OTHER to https://a.example",
      "free calls ws://b.example:1",
    ]);
  });
});
