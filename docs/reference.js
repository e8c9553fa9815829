/**
 * Writes docs/reference/: every command and setting, from the commands and their zod schemas.
 *
 *   npm run docs:reference              writes the pages
 *   node docs/reference.js --check      fails where a page is not what it would be; tests call this
 *
 * Needs the compiled package (`npm run build`).
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import "../dist/packages/pawl/src/cli/all-worlds.js";
import { DEFAULT } from "../dist/packages/core/src/config/applies.js";
import { flagOf, settingsOf } from "../dist/packages/core/src/config/settings.js";
import { valueAt } from "../dist/packages/core/src/config/settings-tree.js";
import { limitOptions } from "../dist/packages/core/src/envs/limits.js";
import { envKinds } from "../dist/packages/core/src/envs/registry.js";
import { loadCommands } from "../dist/packages/pawl/src/cli/command-entry.js";
import { commands as entries } from "../dist/packages/pawl/src/cli/commands.js";
import { groupsOf, settingGroups } from "../dist/packages/pawl/src/cli/help.js";
import { MODEL_NAMES } from "../dist/packages/pawl/src/cli/model-name.js";

const folder = join(dirname(fileURLToPath(import.meta.url)), "reference");
const nothing = () => undefined;
const commands = await loadCommands(entries);
/** Commands that people call; `complete` is what shells ask. */
const shown = commands.filter((command) => command.name !== "complete");
/** Settings below these keys are those of another command, and listed there. */
const nested = { train: "train", rwml: "rwml", world: "wm train", server: "serve engine" };

/** Text as Markdown: the site's templates read `<` and `{{` otherwise. */
const plain = (text) =>
  text.replaceAll("<", "&lt;").replaceAll("{{", "&#123;&#123;").replaceAll("\n", " ");
const code = (text) => `\`${text}\``;
const anchor = (name) => `#pawl-${name.replaceAll(" ", "-")}`;

/** The default of a setting: the schema's, and the recipe's where a command has one that says otherwise. */
function defaultOf(setting, base) {
  const recipe = base && valueAt(base.content, setting.path);
  const own = setting.required ? "required" : shownValue(setting.default);
  const set = shownValue(recipe);
  return set === "" || set === own ? own : `${set}, recipe`;
}

/** A value as a flag has it; nothing for what is absent, off, empty or a whole object. */
function shownValue(value) {
  if (value === undefined || value === false) return "";
  if (value === true) return "on";
  if (Array.isArray(value)) return value.length === 0 ? "" : code(value.join(","));
  return typeof value === "object" ? "" : code(String(value));
}

function usageOf(setting, value = setting.placeholder) {
  return code(`${setting.flag.replace(/\.name$/, "")} ${value}`.trimEnd());
}

/** A default that stands in place of what its flag takes: `--groups 16` says more than `--groups NUMBER`. */
const BARE_DEFAULT = /^`([^`\s]+)`(, recipe)?$/;

/** A setting, its default and what it does, as an item of a list. */
function item(setting, base) {
  const text = plain(setting.description);
  const [inWords = ""] = DEFAULT.exec(text) ?? [];
  const value = inWords === "" ? defaultOf(setting, base) : inWords.slice(2, -1);
  const about = text.slice(0, text.length - inWords.length);
  const [, bare, recipe = ""] = BARE_DEFAULT.exec(value) ?? [];
  const isBare = bare !== undefined && /^(NUMBER|TEXT|A,B,…)$/.test(setting.placeholder);
  const shown = isBare ? recipe.slice(2) : value.replace(/^default:? /, "");
  const usage = isBare ? usageOf(setting, bare) : usageOf(setting);
  return `- ${usage}${shown === "" ? "" : ` (${shown})`}${about === "" ? "" : `: ${about}`}`;
}

/** A command with no more settings of a group names them. */
const FEW = 3;

const settingsByCommand = new Map(
  shown.map((command) => [command.name, settingsOf(command.options(nothing))]),
);

/** Whether a setting is listed elsewhere: an environment's option, or another command's setting. */
function elsewhere({ path, flag }, command) {
  const from = path.indexOf("env");
  if (from >= 0 && path.length > from + 1 && path.at(-1) !== "name") return true;
  const other = nested[path[0]];
  if (other === undefined || other === command.name) return false;
  const own = `--${flag.slice(path[0].length + 3)}`;
  return settingsByCommand.get(other).some((setting) => setting.flag === own);
}

/** What makes a setting of a group the same wherever it stands. */
const sameness = ({ path, placeholder, description }) =>
  [path.at(-1), placeholder, description].join("|");

/**
 * The groups of settings, each with those that no earlier group has; the chat model comes first,
 * because a policy may be one.
 */
const groups = groupList();
const groupOfSetting = new Map(
  [...groups].flatMap(([key, { settings }]) => settings.map((one) => [sameness(one), key])),
);

function groupList() {
  const found = new Map(Object.keys(settingGroups).map((key) => [key, { settings: [] }]));
  const listed = new Set();
  for (const key of ["chat", ...found.keys()])
    for (const command of shown) {
      const { settings } = found.get(key);
      for (const setting of settingsByCommand.get(command.name)) {
        const innermost = groupsOf(setting.path).at(-1);
        if (innermost?.at(-1) !== key || elsewhere(setting, command)) continue;
        const about = sameness(setting);
        const taken = settings.some((one) => one.path.at(-1) === setting.path.at(-1));
        if (listed.has(about) || taken) continue;
        listed.add(about);
        settings.push(setting);
      }
    }
  return new Map([...found].filter(([, { settings }]) => settings.length > 0));
}

function groupSection([key, { settings }]) {
  const items = settings.map((setting) => {
    const from = groupsOf(setting.path).at(-1).length - 1;
    return item({ ...setting, flag: flagOf(setting.path.slice(from)) });
  });
  const about = settingGroups[key];
  return [
    `### ${flagOf([key]).slice(2)}`,
    "",
    `${about[0].toUpperCase()}${about.slice(1)}.`,
    "",
    ...items,
  ].join("\n");
}

function isInGroup(setting) {
  return groupsOf(setting.path).length > 0 && groupOfSetting.has(sameness(setting));
}

/** What commands have in common beside groups: the same flag, about the same, with the same default. */
const COMMON = 2;
const alike = (setting) => [usageOf(setting), setting.description, defaultOf(setting)].join("|");
const timesNamed = new Map();
for (const command of shown)
  for (const setting of settingsByCommand.get(command.name))
    if (!elsewhere(setting, command) && !isInGroup(setting)) {
      const { count = 0 } = timesNamed.get(alike(setting)) ?? {};
      timesNamed.set(alike(setting), { setting, count: count + 1 });
    }
const shared = [...timesNamed]
  .filter(([, { count }]) => count >= COMMON)
  .sort(([, one], [, other]) => other.count - one.count)
  .filter(
    ([, { setting }], i, all) =>
      all.findIndex(([, one]) => one.setting.flag === setting.flag) === i,
  );
const isShared = (setting) => shared.some(([name]) => name === alike(setting));

function commandSection(command) {
  const settings = settingsByCommand.get(command.name);
  const base = command.base?.({ peek: nothing, file: undefined });
  const here = settings.filter((setting) => !elsewhere(setting, command));
  const listed = here.filter((setting) => !isInGroup(setting) && !isShared(setting));
  const common = here.filter((setting) => isShared(setting));
  const prefixes = Object.entries(nested).filter(
    ([key, name]) =>
      name !== command.name &&
      settings.some((setting) => setting.path[0] === key && elsewhere(setting, command)),
  );
  const bare = `pawl ${command.name}`;
  const [example] = command.examples.map(([line]) => line);
  const shownLine = command.positionals === undefined ? example : `${bare} ${command.positionals}`;
  const notes = [
    ...(common.length === 0
      ? []
      : [`Also ${common.map(({ flag }) => code(flag.replace(/\.name$/, ""))).join(", ")}.`]),
    ...groupNotes(here.filter(isInGroup)),
    ...prefixes.map(
      ([key, name]) => `\`--${key}.…\` sets any setting of [pawl ${name}](${anchor(name)}).`,
    ),
    ...(base?.path === undefined ? [] : [`Recipe: ${code(base.path)}.`]),
  ];
  return [
    `## pawl ${command.name}`,
    "",
    `${command.summary[0].toUpperCase()}${command.summary.slice(1)}.`,
    // A heading says as much as a line without any setting; `--help` has more examples.
    ...(shownLine === undefined || shownLine === bare ? [] : ["", "```sh", shownLine, "```"]),
    ...(listed.length === 0 ? [] : ["", ...listed.map((setting) => item(setting, base))]),
    ...(notes.length === 0 ? [] : ["", notes.join("\n")]),
  ].join("\n");
}

/** Which groups of settings a command has; where it has few of one, their names. */
function groupNotes(settings) {
  const references = new Map();
  for (const setting of settings) {
    const key = groupOfSetting.get(sameness(setting));
    const [outermost] = groupsOf(setting.path);
    const name = outermost.at(-1) === key ? flagOf(outermost).slice(2) : flagOf(outermost);
    references.set(key, {
      ...references.get(key),
      [name]: [...(references.get(key)?.[name] ?? []), setting],
    });
  }
  const names = [...references].flatMap(([key, places]) =>
    Object.entries(places).map(([name, some]) => {
      const anchored = flagOf([key]).slice(2);
      const link = `[${anchored}](#${anchored})`;
      if (some.length <= FEW && some.length < groups.get(key).settings.length)
        return `${some.map(({ flag }) => code(flag)).join(", ")} of ${link}`;
      return name.startsWith("--") ? `${link} below ${code(name)}` : link;
    }),
  );
  return names.length === 0 ? [] : [`Groups: ${names.join("; ")}.`];
}

/** An environment's options; those of a group of commands.md are named in one item, with its link. */
function environmentItems(settings) {
  const keyOf = (setting) => {
    const key = setting.path.length > 2 ? groupOfSetting.get(sameness(setting)) : undefined;
    const one = groups.get(key)?.settings.find((other) => sameness(other) === sameness(setting));
    return one !== undefined && defaultOf(one) === defaultOf(setting) ? key : undefined;
  };
  const prefixOf = ({ flag }) => flag.slice(0, flag.lastIndexOf("."));
  const placed = settings.map((setting) => ({ setting, key: keyOf(setting) }));
  return placed.flatMap(({ setting, key }, i) => {
    if (key === undefined) return [item(setting)];
    const isWith = (one) => one.key === key && prefixOf(one.setting) === prefixOf(setting);
    if (placed.findIndex(isWith) < i) return [];
    const names = placed
      .filter(isWith)
      .map((one) => code(one.setting.flag.slice(prefixOf(setting).length + 1)));
    const anchored = flagOf([key]).slice(2);
    return [
      `- \`${prefixOf(setting)}.…\`: ${names.join(", ")} of [${anchored}](commands.md#${anchored})`,
    ];
  });
}

const generated =
  "<!-- Written by `npm run docs:reference` from the schemas in packages/; change those, not this page. -->";

const pages = {
  "commands.md": [
    "# Commands and settings",
    "",
    generated,
    "",
    "Every setting is a flag and a key of a configuration file: `--objective.clip-low 0.1` is",
    "`objective: { clipLow: 0.1 }` ([where settings come from](../settings.md)). A switch is turned on",
    "by its flag and off by `--no-…`. Flags are shown with their defaults, or with the default in",
    "brackets; “recipe” marks one that the command's recipe sets (`--print-config` prints it). Every",
    "command also has `--config FILE`, `--plugin FILE` ([plugins](../plugins.md)), `--trust RUN`",
    "([whose settings](../settings.md#settings-of-a-run)) and",
    "`--help`, which has more: what the command does in detail, examples, and what a setting needs to",
    "have an effect. With `--env` come [the environment's options](environments.md).",
    "",
    `${MODEL_NAMES.replaceAll("\n", " ")}`,
    "",
    "Exit codes: 0 done, 1 failed or differences found, 2 wrong usage, 130 interrupted.",
    "",
    shown.map(commandSection).join("\n\n"),
    "",
    "## Settings of several commands",
    "",
    "Named after “Also” above.",
    "",
    ...shared.map(([, { setting }]) => item(setting)),
    "",
    "## Groups of settings",
    "",
    "Settings that several commands share, or that a recipe sets together. In a command they stand under the key",
    "that its section names: `--optimizer.warmup` in `pawl train`, and `--warm-start.sft.optimizer.warmup`. The",
    "defaults are those of the schema; recipes have others.",
    "",
    [...groups].map(groupSection).join("\n\n"),
    "",
  ].join("\n"),
  "environments.md": [
    "# Environments and their options",
    "",
    generated,
    "",
    "`--env NAME` chooses the environment, and `--env.OPTION` sets an option. `pawl env info NAME`",
    "says where its data is and what tasks it has. [Your own](../tutorials/own-environment.md) can",
    "stand beside them.",
    ...envKinds().flatMap((kind) => [
      "",
      `## ${kind.name}`,
      "",
      `${kind.summary[0].toUpperCase()}${kind.summary.slice(1)}.`,
      "",
      ...environmentItems(settingsOf(kind.options, ["env"])),
    ]),
    "",
    "## Every environment",
    "",
    "Limits that hold in all of them ([how they act](../tutorials/own-environment.md#limits)).",
    "",
    ...settingsOf(limitOptions, ["env", "limits"]).map((setting) => item(setting)),
    "",
  ].join("\n"),
};

const check = process.argv.includes("--check");
const stale = Object.entries(pages).filter(([name, text]) => read(join(folder, name)) !== text);
if (check) {
  for (const [name] of stale)
    console.error(`docs/reference/${name} is not up to date: run npm run docs:reference`);
  process.exitCode = stale.length > 0 ? 1 : 0;
} else {
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of stale) {
    writeFileSync(join(folder, name), text);
    console.log(`wrote docs/reference/${name}`);
  }
}

function read(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}
