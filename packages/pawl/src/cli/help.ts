/** The text of `--help`, generated from the commands and their schemas. */
import { type Applies, DEFAULT, describedWith } from "@pawl/core/config/applies.js";
import type { ConfigLayer } from "@pawl/core/config/resolve.js";
import { flagOf, type Setting, SHORT_KEY, settingsOf } from "@pawl/core/config/settings.js";
import { valueAt } from "@pawl/core/config/settings-tree.js";
import type { Command, Peek } from "./command.js";
import { widthOf, wrap, wrapParagraphs } from "./format.js";
import type { Io } from "./io.js";

/**
 * Settings that belong together: `--help all` of a command with many settings has one line for each
 * group, and docs/reference/commands.md documents each once.
 */

/** What the settings of a group are about, by the group's key. */
export const settingGroups: Readonly<Record<string, string>> = {
  limits: "how long a world may take, and how long its texts may be",
  prompt: "how the model is asked: style, history, template, form of answers",
  engine: "where the model is computed, LoRA adapters, a separate sampler",
  warmStart: "teacher episodes to imitate before RL",
  sft: "how episodes are imitated (SFT)",
  rollout: "the pace of episodes, what happens to the slowest, and branches",
  corrections: "a teacher takes over failed episodes",
  distillation: "a teacher scores the policy's own tokens",
  advantage: "the advantage estimator and its settings",
  critic: "PPO's critic",
  objective: "the policy loss: clipping, KL penalty, entropy bonus",
  paw: "the world-model loss that is trained with the policy (PaW)",
  optimizer: "AdamW and the learning-rate schedule",
  evaluation: "when to evaluate, and on which tasks",
  gradients: "measuring the gradients of both losses",
  track: "trackers that the run is sent to",
  alarms: "when training counts as gone wrong",
  chat: "a chat model behind OpenAI's API",
  policy: "who plays, and the chat model if it is one",
  player: "the chat model that plays, and how it is asked",
  protocol: "how a world model is asked for the next observation",
  anchor: "when an episode inside a world model is compared with the real world",
  collect: "where triplets come from",
  filter: "leaving out triplets that are too easy",
  reward: "how predictions are scored",
  encoder: "the sentence encoder of the embeddings",
  task: "RL on the task in addition to predictions",
  heldOut: "what is held out to be measured",
  server: "the PyTorch servers that are started",
  train: "settings of pawl train",
  rwml: "settings of pawl rwml",
  world: "settings of pawl wm train",
};

/** The groups that a setting is in, from the outermost: their paths. */
export function groupsOf(path: readonly string[]): readonly (readonly string[])[] {
  return path
    .slice(0, -1)
    .flatMap((key, i) => (Object.hasOwn(settingGroups, key) ? [path.slice(0, i + 1)] : []));
}

/** Commands with more options than this show the common ones first. */
const LONG_LIST = 20;
/** Of more than this, `--help all` names groups of settings instead of listing all. */
const MOST_LISTED = 60;
/** The column in which descriptions begin, at most. */
const DESCRIPTIONS_AT = 34;

/** What of a command's options to show: `all`, a group, those that mention a word, or the common ones. */
export interface HelpOptions {
  readonly topic?: string | undefined;
  /** Settings beneath the given ones, such as a recipe's: the values that really hold. */
  readonly layers?: readonly ConfigLayer[];
}

/** Help for the whole program. */
export function programHelp(commands: readonly Command[], io: Io): string {
  const { bold, dim } = io.colors;
  const columns = columnsOf(
    commands.map(({ name, summary }) => [name, summary]),
    io,
  );
  return [
    `${bold("pawl")} trains language agents that know what their actions do.`,
    "",
    bold("Usage"),
    "  pawl COMMAND [OPTIONS]",
    "",
    bold("Commands"),
    ...columns,
    "",
    bold("Start here"),
    ...columnsOf(
      [
        [
          "pawl train",
          "watch an agent learn, in ten minutes on two cores (--quick: in one and a half)",
        ],
        ["pawl play", "play a household task yourself"],
        ["pawl rollout", "watch the expert play and record it to a run folder"],
        [
          "pawl COMMAND --help",
          "one command; --help all shows all its options, --help WORD searches",
        ],
      ],
      io,
    ),
    "",
    ...wrap(
      "Exit codes: 0 done, 1 failed or differences found, 2 wrong usage, 130 interrupted.",
      widthOf(io.stdout.columns),
    ).map(dim),
  ].join("\n");
}

/** Help for a family of commands, such as `pawl wm`. */
export function familyHelp(words: readonly string[], commands: readonly Command[], io: Io): string {
  const { bold, dim } = io.colors;
  const name = `pawl ${words.join(" ")}`;
  return [
    bold("Usage"),
    `  ${name} COMMAND [OPTIONS]`,
    "",
    bold("Commands"),
    ...columnsOf(
      commands.map((command) => [`pawl ${command.name}`, command.summary]),
      io,
    ),
    "",
    bold("Examples"),
    ...commands.flatMap(({ examples }) => exampleLines(examples.slice(0, 1), io)),
    "",
    dim(`${name} COMMAND --help describes one of them.`),
  ].join("\n");
}

/** Help for one command. */
export function commandHelp(
  command: Command,
  peek: Peek,
  io: Io,
  { topic, layers = [] }: HelpOptions = {},
): string {
  const { bold, dim } = io.colors;
  const settings = sorted(settingsOf(command.options(peek)));
  const usage = `pawl ${command.name}${command.positionals === undefined ? "" : ` ${command.positionals}`} [OPTIONS]`;
  const rules = command.applies?.() ?? [];
  const rowOf = (setting: Setting): Row => [usageOf(setting), describe(setting, layers, rules)];
  if (topic !== undefined && topic !== "all") {
    const { title, rows } = rowsAbout(topic, settings, command, rowOf);
    const lines =
      rows.length === 0 ? ["  none; --help all shows every option"] : columnsOf(rows, io);
    return [bold(title), ...lines].join("\n");
  }
  const common = commonOf(command, settings);
  const short = topic === undefined && settings.length > LONG_LIST;
  const grouped = !short && settings.length > MOST_LISTED;
  const isListed = (setting: Setting): boolean =>
    groupsOf(setting.path).length === 0 || common.includes(setting);
  const shown = short ? common : grouped ? settings.filter(isListed) : settings;
  const hidden = settings.length - shown.length;
  const name = `pawl ${command.name}`;
  const [title = "", ...more] = wrap(`${name}: ${command.summary}`, widthOf(io.stdout.columns));
  return [
    `${bold(name)}${title.slice(name.length)}`,
    ...more,
    ...(command.details === undefined
      ? []
      : ["", ...wrapParagraphs(command.details, widthOf(io.stdout.columns))]),
    ...["", bold("Usage"), `  ${usage}`],
    ...optionLines(command, shown, rowOf, io),
    ...(grouped ? groupLines(settings, io) : []),
    ...(short && hidden > 0
      ? [
          "",
          ...wrap(
            `${hidden} more options: ${name} --help all. Those that mention a word: --help WORD, such as --help KL.`,
            widthOf(io.stdout.columns),
          ).map(dim),
        ]
      : []),
    ...["", bold("Examples"), ...exampleLines(command.examples, io)],
  ].join("\n");
}

/** The options of a group, or those that mention a word. */
function rowsAbout(
  topic: string,
  settings: readonly Setting[],
  command: Command,
  rowOf: (setting: Setting) => Row,
): { readonly title: string; readonly rows: readonly Row[] } {
  const group = (path: readonly string[]): boolean =>
    [path.at(-1), flagOf(path.slice(-1)).slice(2)].includes(topic);
  const inGroup = settings.filter(({ path }) => groupsOf(path).slice(0, 1).some(group));
  const [first] = inGroup;
  if (first !== undefined) {
    const [path] = groupsOf(first.path) as [readonly string[]];
    return { title: `${flagOf(path)}.…: ${aboutGroup(path)}`, rows: inGroup.map(rowOf) };
  }
  const mentions = (row: Row): boolean =>
    row.some((text) => text.toLowerCase().includes(topic.toLowerCase()));
  return {
    title: `Options of pawl ${command.name} that mention "${topic}"`,
    rows: [...settings.map(rowOf), ...globalsBeside(command, settings)].filter(mentions),
  };
}

const aboutGroup = (path: readonly string[]): string => settingGroups[path.at(-1)!]!;

/** A line for each group of settings. */
function groupLines(settings: readonly Setting[], io: Io): string[] {
  const counts = new Map<string, { readonly about: string; count: number }>();
  for (const { path } of settings) {
    const [group] = groupsOf(path);
    if (group === undefined) continue;
    const row = counts.get(flagOf(group)) ?? { about: aboutGroup(group), count: 0 };
    row.count += 1;
    counts.set(flagOf(group), row);
  }
  const { bold, dim } = io.colors;
  return [
    ...["", bold("Groups of options")],
    ...columnsOf(
      [...counts].map(([flag, { about, count }]) => [`${flag}.…`, `${about} (${count})`]),
      io,
    ),
    "",
    ...wrap(
      "--help GROUP, such as --help engine, lists a group; docs/reference/commands.md describes them all.",
      widthOf(io.stdout.columns),
    ).map(dim),
  ];
}

/** `--env NAME` stands for `--env.name NAME`. */
function usageOf(setting: Setting): string {
  return `${setting.flag.replace(/\.name$/, "")} ${setting.placeholder}`.trimEnd();
}

/** Settings with their defaults in two columns, as help shows them. */
export function settingLines(settings: readonly Setting[], io: Io): readonly string[] {
  return columnsOf(
    settings.map((setting): Row => [usageOf(setting), describe(setting, [])]),
    io,
  );
}

type Row = readonly [usage: string, text: string];

/** What commands take besides their own settings. */
const GLOBAL: readonly Row[] = [
  ["--config FILE", "read settings from a .json, .yaml or .ts file; flags override it"],
  ["--recipe NAME", "read settings from recipes/NAME.ts of this package, from anywhere"],
  ["--plugin FILE", "load a module with environments, losses, … of your own; repeatable"],
  ["--trust RUN", "use the programs, addresses and keys that this run names; repeatable"],
  ["--print-config", "print all settings as a file for --config, and do nothing else"],
  ["--dry-run", "check the settings, say what would be done, and do nothing else"],
  ["--quiet", "show no progress; results, warnings and errors remain"],
  ["--help [all|GROUP|WORD]", "show this text, all options, a group, or what mentions a word"],
];

/** Those that the command has no setting of its own for; not every command can check without starting. */
const globalsBeside = ({ check }: Command, settings: readonly Setting[]): readonly Row[] =>
  GLOBAL.filter(
    ([usage]) =>
      !settings.some(({ flag }) => flag === usage) &&
      (usage !== "--dry-run" || check !== undefined),
  );

/** The name comes before the options that depend on it. */
function sorted(settings: Setting[]): readonly Setting[] {
  const family = (setting: Setting): number =>
    settings.findIndex((other) => other.path[0] === setting.path[0]);
  const isName = (setting: Setting): boolean => SHORT_KEY.test(setting.path.at(-1)!);
  return settings.toSorted(
    (a, b) => family(a) - family(b) || Number(isName(b)) - Number(isName(a)),
  );
}

/** The options that the command calls common, or else those without a family of their own. */
function commonOf({ common }: Command, settings: readonly Setting[]): readonly Setting[] {
  if (common === undefined)
    return settings.filter(({ path }) => path.length === 1 || SHORT_KEY.test(path.at(-1)!));
  return common.flatMap((path) => settings.filter((setting) => setting.path.join(".") === path));
}

/** Options under the headings of their families, those of every command last. */
function optionLines(
  command: Command,
  settings: readonly Setting[],
  rowOf: (setting: Setting) => Row,
  io: Io,
): string[] {
  const { bold } = io.colors;
  const families = new Map<string, Setting[]>();
  for (const setting of settings) {
    const family = settings.length > LONG_LIST && setting.path.length > 1 ? setting.path[0]! : "";
    families.set(family, [...(families.get(family) ?? []), setting]);
  }
  const { "": own = [], ...others } = Object.fromEntries(families);
  const globals = globalsBeside(command, settings);
  const width = flagWidth([...settings.map(rowOf), ...globals]);
  return [
    ...["", bold("Options"), ...columnsOf([...own.map(rowOf), ...globals], io, width)],
    ...Object.entries(others).flatMap(([family, some]) => [
      ...["", bold(`--${family}.…`), ...columnsOf(some.map(rowOf), io, width)],
    ]),
  ];
}

const flagWidth = (rows: readonly Row[]): number =>
  Math.min(DESCRIPTIONS_AT, Math.max(...rows.map(([usage]) => usage.length)));

/** Two columns, the second wrapped at the terminal's width. */
function columnsOf(rows: readonly Row[], io: Io, first = flagWidth(rows)): string[] {
  const { dim } = io.colors;
  const room = widthOf(io.stdout.columns) - first - 4;
  const indent = " ".repeat(first + 4);
  return rows.flatMap(([usage, text]) => {
    const [line = "", ...rest] = wrap(text, room);
    const start =
      usage.length > first
        ? [...wrapChoices(usage, widthOf(io.stdout.columns) - 2), `${indent}${dim(line)}`]
        : [`  ${usage.padEnd(first)}  ${dim(line)}`];
    return [...start, ...rest.map((more) => `${indent}${dim(more)}`)];
  });
}

/** A long list of choices is broken after a bar. */
function wrapChoices(usage: string, width: number): string[] {
  const lines: string[] = [];
  let line = "  ";
  for (const part of usage.split(/(?<=\|)/)) {
    if (line.length + part.length > width && line.trim() !== "") {
      lines.push(line);
      line = "      ";
    }
    line += part;
  }
  return [...lines, line];
}

function exampleLines(examples: Command["examples"], io: Io): string[] {
  const room = widthOf(io.stdout.columns) - 6;
  return examples.flatMap(([line, does]) => [
    `  ${line}`,
    ...wrap(does, room).map((part) => `      ${io.colors.dim(part)}`),
  ]);
}

function describe(
  setting: Setting,
  layers: readonly ConfigLayer[],
  rules: readonly Applies<never>[] = [],
): string {
  const given = layers.map(({ content }) => valueAt(content, setting.path));
  const value = shownValue(given.findLast((one) => one !== undefined) ?? setting.default);
  const description = describedWith(setting, rules);
  const said = DEFAULT.test(description);
  if (setting.required && value === undefined && !said) return `${description} (needed)`;
  if (value === undefined || value === "off") return description;
  const on = `on; --no-${setting.flag.slice(2)} turns it off`;
  // A value that holds stands for the words about what would hold otherwise.
  return `${description.replace(DEFAULT, "")} (default: ${setting.isSwitch ? on : value})`;
}

/** A value as a flag has it; undefined for what is absent, empty or a whole object. */
function shownValue(value: unknown): string | undefined {
  if (typeof value === "boolean") return value ? "on" : "off";
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.join(",");
  return value === undefined || typeof value === "object" ? undefined : String(value);
}
