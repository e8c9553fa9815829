import { existsSync, readdirSync } from "node:fs";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { type Setting, settingsOf } from "@pawl/core/config/settings.js";
import { hasManifest } from "@pawl/core/runs/manifest.js";
import { z } from "zod";
import { type Command, defineCommand, exitCodes } from "./command.js";
import { type CommandEntry, findCommand, loadCommandWorlds } from "./command-entry.js";
import { print } from "./io.js";

/** The scripts ask `pawl complete` for the candidates, so they never grow stale. */
const scripts: Readonly<Record<string, string>> = {
  bash: `_pawl() {
  local IFS=$'\\n'
  COMPREPLY=($(pawl complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  [ \${#COMPREPLY[@]} -eq 0 ] && compopt -o default
}
complete -F _pawl pawl`,
  zsh: `#compdef pawl
_pawl() {
  local -a candidates
  candidates=("\${(@f)$(pawl complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  [[ -n "$candidates" ]] && compadd -- $candidates || _files
}
compdef _pawl pawl`,
  fish: `complete -c pawl -f -a '(pawl complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'`,
};

/** `pawl completion`: a script for the shell. */
export const completion = defineCommand({
  name: "completion",
  summary: "print a completion script for bash, zsh or fish",
  plugins: "none",
  worlds: "none",
  positionals: "SHELL",
  options: () => z.strictObject({}),
  examples: [
    ["source <(pawl completion bash)", "in ~/.bashrc; for zsh the same in ~/.zshrc"],
    ["pawl completion fish > ~/.config/fish/completions/pawl.fish", "for fish"],
  ],
  async run({ positionals, io }) {
    const script = scripts[positionals[0] ?? ""];
    if (script === undefined)
      throw new ConfigError(
        `pawl completion: expected ${Object.keys(scripts).join(", ")}, got ${positionals[0] ?? "nothing"}`,
      );
    print(io, script);
    return exitCodes.done;
  },
});

/**
 * `pawl complete`: what could stand at the end of a command line, for the completion scripts. The
 * commands are given as a function, because this is one of them.
 */
export const completeCommand = (commands: () => readonly CommandEntry[]) =>
  defineCommand({
    name: "complete",
    summary: "list what may follow on a command line (used by the completion scripts)",
    plugins: "none",
    worlds: "none",
    positionals: "WORD…",
    options: () => z.strictObject({}),
    examples: [["pawl complete -- rollout --gr", "prints --group-size and --groups"]],
    async run({ positionals, io }) {
      for (const candidate of await candidates(commands(), positionals)) print(io, candidate);
      return exitCodes.done;
    },
  });

/** The candidates for the last word, which may be empty or begun. */
export async function candidates(
  commands: readonly CommandEntry[],
  words: readonly string[],
): Promise<string[]> {
  const begun = words.at(-1) ?? "";
  const before = words.slice(0, -1);
  const command = await findCommand(commands, before)?.load();
  if (command !== undefined) await loadCommandWorlds(command, before);
  const all = command === undefined ? nextNames(commands, before) : afterCommand(command, before);
  return [...new Set(all)].filter((candidate) => candidate.startsWith(begun)).sort();
}

function nextNames(commands: readonly CommandEntry[], before: readonly string[]): string[] {
  return commands
    .map((command) => command.name.split(" "))
    .filter((name) => before.every((word, i) => name[i] === word))
    .flatMap((name) => name[before.length] ?? []);
}

function afterCommand(command: Command, before: readonly string[]): string[] {
  const at = before.findIndex((word) => word === "--env" || word === "--env.name");
  const settings = settingsOf(
    command.options((path) => (path === "env.name" && at >= 0 ? before[at + 1] : undefined)),
  );
  const last = before.at(-1);
  const named = before.length > command.name.split(" ").length;
  const open = settings.find((setting) => short(setting) === last || setting.flag === last);
  if (open !== undefined && !open.isSwitch)
    return [...open.choices, ...(RUN_SETTINGS.includes(open.path.join(".")) ? runFolders() : [])];
  return [
    ...(/RUN|MODEL/.test(command.positionals ?? "") ? runFolders() : []),
    ...(command.takesEnv && !named ? environments(settings) : []),
    ...settings.map(short),
    ...["--config", "--recipe", "--plugin", "--trust", "--help", "--print-config", "--quiet"],
    ...(command.check === undefined ? [] : ["--dry-run"]),
  ];
}

/** Settings whose value may be a run. */
const RUN_SETTINGS = ["resume", "checkpoint", "model.start"];
/** Where runs are recorded unless --out says otherwise. */
const RUNS = "runs";

const runFolders = (): string[] =>
  existsSync(RUNS)
    ? readdirSync(RUNS)
        .map((name) => `${RUNS}/${name}`)
        .filter(hasManifest)
    : [];

/** The environments that may be named without --env. */
const environments = (settings: readonly Setting[]): readonly string[] =>
  settings.find((setting) => short(setting) === "--env")?.choices ?? [];

const short = (setting: Setting): string => setting.flag.replace(/\.name$/, "");
