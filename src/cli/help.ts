/** The text of `--help`, generated from the commands and their schemas. */
import { type Setting, SHORT_KEY, settingsOf } from "../config/settings.js";
import type { Command, Peek } from "./command.js";
import type { Io } from "./io.js";

/** Help for the whole program. */
export function programHelp(commands: readonly Command[], io: Io): string {
  const { bold, dim } = io.colors;
  const width = Math.max(...commands.map((command) => command.name.length));
  return [
    `${bold("pawl")} trains language agents that know what their actions do.`,
    "",
    bold("Usage"),
    "  pawl COMMAND [OPTIONS]",
    "",
    bold("Commands"),
    ...commands.map((command) => `  ${command.name.padEnd(width)}  ${dim(command.summary)}`),
    "",
    bold("Start here"),
    "  pawl train               watch an agent learn, in ten minutes on two cores (--quick: in one and a half)",
    "  pawl play                play a household task yourself",
    "  pawl rollout             watch the expert play and record it to a run folder",
    "  pawl COMMAND --help      everything about one command",
    "",
    dim("Exit codes: 0 done, 1 failed or differences found, 2 wrong usage, 130 interrupted."),
  ].join("\n");
}

/** Help for a family of commands, such as `pawl wm`. */
export function familyHelp(words: readonly string[], commands: readonly Command[], io: Io): string {
  const { bold, dim } = io.colors;
  const width = Math.max(...commands.map((command) => command.name.length));
  const name = `pawl ${words.join(" ")}`;
  return [
    bold("Usage"),
    `  ${name} COMMAND [OPTIONS]`,
    "",
    bold("Commands"),
    ...commands.map((command) => `  pawl ${command.name.padEnd(width)}  ${dim(command.summary)}`),
    "",
    bold("Examples"),
    ...commands.flatMap(({ examples }) => {
      const [line, does] = examples[0]!;
      return [`  ${line}`, `      ${dim(does)}`];
    }),
    "",
    dim(`${name} COMMAND --help describes one of them.`),
  ].join("\n");
}

/** Help for one command. */
export function commandHelp(command: Command, peek: Peek, io: Io): string {
  const { bold, dim } = io.colors;
  // The name comes before the options that depend on it.
  const settings = settingsOf(command.options(peek));
  const family = (setting: Setting): number =>
    settings.findIndex((other) => other.path[0] === setting.path[0]);
  const isName = (setting: Setting): boolean => SHORT_KEY.test(setting.path.at(-1)!);
  settings.sort((a, b) => family(a) - family(b) || Number(isName(b)) - Number(isName(a)));
  const rows = [
    ...settings.map((setting) => [usageOf(setting), describe(setting)] as const),
    ["--config FILE", "read settings from a .json, .yaml or .ts file; flags override it"] as const,
    [
      "--plugin FILE",
      "load a module with environments, losses, … of your own; repeatable",
    ] as const,
    ["--help", "show this text"] as const,
  ];
  const width = Math.min(34, Math.max(...rows.map(([usage]) => usage.length)));
  return [
    `${bold(`pawl ${command.name}`)}: ${command.summary}`,
    ...(command.details === undefined ? [] : ["", command.details]),
    "",
    bold("Usage"),
    `  pawl ${command.name}${command.positionals === undefined ? "" : ` ${command.positionals}`} [OPTIONS]`,
    "",
    bold("Options"),
    ...rows.map(([usage, text]) =>
      usage.length > width
        ? `  ${usage}\n  ${" ".repeat(width)}  ${dim(text)}`
        : `  ${usage.padEnd(width)}  ${dim(text)}`,
    ),
    "",
    bold("Examples"),
    ...command.examples.flatMap(([line, does]) => [`  ${line}`, `      ${dim(does)}`]),
  ].join("\n");
}

/** `--env NAME` stands for `--env.name NAME`. */
export function usageOf(setting: Setting): string {
  return `${setting.flag.replace(/\.name$/, "")} ${setting.placeholder}`.trimEnd();
}

function describe(setting: Setting): string {
  const value = setting.default;
  const extra = setting.required
    ? " (needed)"
    : value === undefined || typeof value === "object" || (setting.isSwitch && value === false)
      ? ""
      : ` (default: ${setting.isSwitch ? `on; --no-${setting.flag.slice(2)} turns it off` : value})`;
  return `${setting.description}${extra}`;
}
