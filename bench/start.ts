/**
 * How long commands take to start: the package as users have it, joined into few files (packaging/join.js), beside the
 * modules that it is joined from. Processor seconds, the least of several starts, so that other work counts little
 * (Linux).
 *
 *   npm run bench -- start [--times N]
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

const PROGRAMS = { joined: "dist/lib/main.js", modules: "dist/packages/pawl/src/cli/main.js" };
const COMMANDS = ["--version", "runs", "env list", "rollout --dry-run", "train --dry-run"];
/** Linux counts processor time in hundredths of a second. */
const TICKS = 100;

/** Processor seconds of the processes that this one has started and that have ended. */
function ofChildren(): number {
  const fields = readFileSync("/proc/self/stat", "utf8").split(") ")[1]!.split(" ");
  return (Number(fields[13]) + Number(fields[14])) / TICKS;
}

function start(program: string, command: string): number {
  const before = ofChildren();
  const { status, stderr } = spawnSync(process.execPath, [program, ...command.split(" ")], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`pawl ${command} ended with ${status}: ${stderr}`);
  return ofChildren() - before;
}

export async function main(args: readonly string[]): Promise<object> {
  const at = args.indexOf("--times");
  const times = at < 0 ? 7 : Number(args[at + 1]);
  const rows = COMMANDS.map((command) => {
    const least: Record<string, number> = { joined: Infinity, modules: Infinity };
    // In turns, so that a busy moment meets both.
    for (let i = 0; i < times; i++)
      for (const [name, program] of Object.entries(PROGRAMS))
        least[name] = Math.min(least[name]!, start(program, command));
    const told = Object.entries(least).map(([name, seconds]) => `${name} ${seconds.toFixed(2)} s`);
    process.stdout.write(`pawl ${command}: ${told.join(", ")}\n`);
    return [command, least] as const;
  });
  return { times, seconds: Object.fromEntries(rows) };
}
