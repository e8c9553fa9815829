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
import "../dist/src/cli/all-worlds.js";
import { loadCommands } from "../dist/src/cli/command-entry.js";
import { commands as entries } from "../dist/src/cli/commands.js";
import { describedWith } from "../dist/src/config/applies.js";
import { settingsOf } from "../dist/src/config/settings.js";
import { valueAt } from "../dist/src/config/settings-tree.js";
import { limitOptions } from "../dist/src/envs/limits.js";
import { envKinds } from "../dist/src/envs/registry.js";

const folder = join(dirname(fileURLToPath(import.meta.url)), "reference");
const nothing = () => undefined;
const commands = await loadCommands(entries);
/** Commands that people call; `complete` is what shells ask. */
const shown = commands.filter((command) => command.name !== "complete");
/** Settings below these keys are those of another command, and listed there. */
const nested = { train: "train", world: "wm train" };

/** Text of a table cell: Markdown and the site's templates read `|`, `<` and `{{` otherwise. */
const cell = (text) =>
  text
    .replaceAll("|", "\\|")
    .replaceAll("<", "&lt;")
    .replaceAll("{{", "&#123;&#123;")
    .replaceAll("\n", " ");
const code = (text) => `\`${text.replaceAll("|", "\\|")}\``;
const anchor = (name) => `#pawl-${name.replaceAll(" ", "-")}`;

/** A table with its columns padded, as the other pages have them. */
function table(header, rows) {
  const width = header.map((title, k) =>
    Math.max(3, title.length, ...rows.map((row) => row[k].length)),
  );
  const line = (row) => `| ${row.map((text, k) => text.padEnd(width[k])).join(" | ")} |`;
  return [line(header), line(width.map((n) => "-".repeat(n))), ...rows.map(line)].join("\n");
}

/** The default of a setting: the schema's, and the recipe's where a command has one that says otherwise. */
function defaultOf(setting, base) {
  const recipe = base && valueAt(base.content, setting.path);
  const own = setting.required ? "required" : shownValue(setting.default);
  const set = shownValue(recipe);
  return set === "" || set === own ? own : `${set} (recipe)`;
}

/** A value as a flag has it; nothing for what is absent, off, empty or a whole object. */
function shownValue(value) {
  if (value === undefined || value === false) return "";
  if (value === true) return "on";
  if (Array.isArray(value)) return value.length === 0 ? "" : code(value.join(","));
  return typeof value === "object" ? "" : code(String(value));
}

function usageOf(setting) {
  return code(`${setting.flag.replace(/\.name$/, "")} ${setting.placeholder}`.trimEnd());
}

function settingRows(settings, base, rules = []) {
  return settings.map((setting) => [
    usageOf(setting),
    cell(describedWith(setting, rules)),
    defaultOf(setting, base),
  ]);
}

const flagsOf = new Map(
  Object.values(nested).map((name) => {
    const command = commands.find((one) => one.name === name);
    return [name, new Set(settingsOf(command.options(nothing)).map((setting) => setting.flag))];
  }),
);

/** Whether a setting is listed elsewhere: an environment's option, or another command's setting. */
function elsewhere({ path, flag }, command) {
  const from = path.indexOf("env");
  if (from >= 0 && path.length > from + 1 && path.at(-1) !== "name") return true;
  const other = nested[path[0]];
  return (
    other !== undefined &&
    other !== command.name &&
    flagsOf.get(other).has(`--${flag.slice(path[0].length + 3)}`)
  );
}

function commandSection(command) {
  const settings = settingsOf(command.options(nothing));
  const base = command.base?.({ peek: nothing, file: undefined });
  const listed = settings.filter((setting) => !elsewhere(setting, command));
  const prefixes = Object.entries(nested).filter(
    ([key, name]) =>
      name !== command.name &&
      settings.some(
        ({ path }) =>
          path[0] === key && path.length > 1 && !listed.some((one) => one.path === path),
      ),
  );
  const usage = ["pawl", command.name, command.positionals, "[OPTIONS]"].filter(Boolean).join(" ");
  const notes = [
    ...(settings.some(({ path }) => path[0] === "env" && path.length > 1)
      ? ["`--env.…` sets the [environment's options](environments.md)."]
      : []),
    ...prefixes.map(
      ([key, name]) => `\`--${key}.…\` sets any setting of [pawl ${name}](${anchor(name)}).`,
    ),
    ...(base === undefined
      ? []
      : [`Values marked _recipe_ come from \`${base.path}\`, which holds where no file is given.`]),
  ];
  return [
    `## pawl ${command.name}`,
    "",
    `${command.summary[0].toUpperCase()}${command.summary.slice(1)}.`,
    ...(command.details === undefined ? [] : ["", prose(command.details)]),
    "",
    "```sh",
    usage,
    ...command.examples.flatMap(([line, does]) => ["", `# ${does}`, line]),
    "```",
    ...(listed.length === 0
      ? []
      : [
          "",
          table(
            ["setting", "what it does", "default"],
            settingRows(listed, base, command.applies?.()),
          ),
        ]),
    ...(notes.length === 0 ? [] : ["", notes.join("\n")]),
  ].join("\n");
}

/** Help text as Markdown: lists in columns are shown as they are, and `<` is text elsewhere. */
function prose(text) {
  const lines = text.split("\n");
  const isColumn = (line) => line?.startsWith("  ") ?? false;
  return lines
    .flatMap((line, i) => {
      const plain = line.replaceAll("<", "&lt;").replaceAll("{{", "&#123;&#123;");
      if (!isColumn(line)) return [plain];
      const opens = isColumn(lines[i - 1]) ? [] : ["", "```text"];
      const closes = isColumn(lines[i + 1]) ? [] : ["```", ""];
      return [...opens, line.slice(2), ...closes];
    })
    .join("\n")
    .replace(/\n{3,}/g, "\n\n")
    .trimEnd();
}

const generated =
  "<!-- Written by `npm run docs:reference` from the schemas in src/; change those, not this page. -->";

const pages = {
  "commands.md": [
    "# Commands and settings",
    "",
    generated,
    "",
    "Every setting is a flag and a key of a configuration file: `--objective.clip-low 0.1` is",
    "`objective: { clipLow: 0.1 }` ([where settings come from](../settings.md)). A switch is turned on",
    "by its flag and off by `--no-…`. Every command also has `--config FILE`,",
    "`--plugin FILE` ([plugins](../plugins.md)), `--trust RUN` ([whose settings](../settings.md#settings-of-a-run)) and `--help`.",
    "",
    table(
      ["command", "what it does"],
      shown.map(({ name, summary }) => [`[\`pawl ${name}\`](${anchor(name)})`, cell(summary)]),
    ),
    "",
    "Exit codes: 0 done, 1 failed or differences found, 2 wrong usage, 130 interrupted.",
    "",
    shown.map(commandSection).join("\n\n"),
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
      table(["option", "what it does", "default"], settingRows(settingsOf(kind.options, ["env"]))),
    ]),
    "",
    "## Every environment",
    "",
    "Limits that hold in all of them ([how they act](../tutorials/own-environment.md#limits)).",
    "",
    table(
      ["option", "what it does", "default"],
      settingRows(settingsOf(limitOptions, ["env", "limits"])),
    ),
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
