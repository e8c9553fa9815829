/**
 * Every command that writes, on disks that are too small for it: it says where, and how to go on,
 * in a sentence. Needs Linux with user namespaces.
 *
 *   npm run bench -- full-disk [COMMAND …]
 *
 * Each command runs once with room enough, which shows what it writes; then on disks of a part of
 * that, where output, caches and temporary files are together.
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { FILES, type Line, lines, words } from "./shared/command-lines.js";

const cli = resolve("dist/lib/main.js");

/** The same commands with other outputs. */
const MORE: Readonly<Record<string, Line>> = {
  ...Object.fromEntries(
    [
      ["jsonl", "episodes.jsonl"],
      ["parquet", "episodes.parquet"],
      ["inspect", "log.eval"],
      ["hub-traces", "traces"],
      ["verifiers", "verifiers.jsonl"],
      ["sharegpt", "shared.jsonl"],
    ].map(([format, out]) => [`export run --to ${format}`, { args: ["--out", out!] }]),
  ),
  "push run me/agent": { args: words("--dry-run --out page") },
  "wm data --from played": { args: words("--format sharegpt --out shared-data") },
  "wm eval fidelity --data data": {
    args: words("--part all --trajectories 1 --model world --max-tokens 4 --out fidelity.json"),
  },
  "wm eval consistency --model world": {
    args: words(
      "--env household --env.rooms 1 --env.receptacles 4 --env.objects 3 --tasks 1 --step-limit 2 --max-tokens 4 --out consistency.json",
    ),
  },
  "wm eval verifier --env webshop": {
    args: words("--policy expert --tasks 1 --budgets 1 --out verifier.json"),
  },
  "track run": { args: words("--again --to trackio=trackio") },
  // A stand-in for TextWorld's generator: it writes what it is told to.
  "env make textworld": { args: words("--count 2 --jobs 1 --out games --tw-make ./tw-make") },
  "bench observations": {
    args: words(
      "--train.updates 1 --train.groups 2 --train.group-size 2 --train.warm-start.episodes 16 --train.evaluation.every 0 --settings actions-only --arms plain --seeds 0 --eval-tasks 2 --out observations",
    ),
  },
};

const TW_MAKE = `#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = --output ] && out=$2; shift; done
head -c 30000 /dev/zero >"$out" && echo {} >"$(dirname "$out")/$(basename "$out" .z8).json" || exit 1
`;

/** A stand-in for a chat model that says of every action that it reaches the goal. */
const CHAT = `
const server = require("node:http").createServer((request, reply) => {
  request.resume().on("end", () => {
    reply.writeHead(200, { "content-type": "application/json" });
    const message = { role: "assistant", content: "All done. [SUCCESS]" };
    reply.end(JSON.stringify({ choices: [{ index: 0, finish_reason: "stop", message }] }));
  });
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
`;

/** Commands whose output others read. */
const SOURCES = ["train", "export", "rollout", "wm data", "wm train"];

/** Shares of what a command writes. */
const SHARES = [0, 0.3, 0.6, 0.9];
const PAGE = 4096;

/** The room that files take, in whole pages. */
function roomOf(path: string): number {
  const stat = statSync(path);
  if (!stat.isDirectory()) return Math.ceil(stat.size / PAGE) * PAGE;
  return readdirSync(path).reduce((sum, name) => sum + roomOf(join(path, name)), 0);
}

function environmentOf(folder: string) {
  const home = join(folder, "home");
  return { ...process.env, HOME: home, XDG_CACHE_HOME: join(home, ".cache"), TMPDIR: folder };
}

export async function main(args: readonly string[]): Promise<object> {
  const folder = mkdtempSync(join(tmpdir(), "pawl-full-disk-"));
  const [work, disk] = ["work", "disk"].map((name) => join(folder, name)) as [string, string];
  if (spawnSync("unshare", ["-rm", "mount", "-t", "tmpfs", "tmpfs", folder]).status !== 0)
    return { skipped: "user namespaces cannot mount here" };
  for (const name of [work, disk]) mkdirSync(name);
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(work, name), text);
  writeFileSync(join(work, "tw-make"), TW_MAKE, { mode: 0o755 });
  const chat = spawn(process.execPath, ["-e", CHAT], { stdio: ["ignore", "pipe", "inherit"] });
  const port = await new Promise<string>((done) =>
    chat.stdout.once("data", (text: Buffer) => done(text.toString().trim())),
  );
  const failed: string[] = [];
  const fail = (what: string): void => {
    failed.push(what);
    process.stderr.write(`✗ ${what}\n`);
  };
  let commands = 0;
  let disks = 0;
  try {
    for (const [name, line] of Object.entries({ ...lines, ...MORE })) {
      const isAsked = args.length === 0 || args.includes(name);
      if (line.serves || !(isAsked || SOURCES.includes(name))) continue;
      const before = readdirSync(work);
      const given = line.args.map((arg) => arg.replace("$CHAT", `http://127.0.0.1:${port}/v1`));
      const command = [process.execPath, cli, ...words(name), ...given];
      const usual = spawnSync(command[0]!, command.slice(1), {
        cwd: work,
        input: line.input ?? "",
        encoding: "utf8",
        env: environmentOf(folder),
      });
      const after = readdirSync(work).filter((made) => !before.includes(made));
      if (usual.status !== (line.code ?? 0)) {
        fail(`pawl ${name} ended with ${usual.status}: ${usual.stderr.slice(-400)}`);
        continue;
      }
      const needs = after.reduce((sum, made) => sum + roomOf(join(work, made)), 0);
      if (needs === 0 || !isAsked) continue;
      commands += 1;
      const sizes = SHARES.map((share) => Math.floor((share * needs) / PAGE) * PAGE);
      for (const size of new Set(sizes)) {
        disks += 1;
        const links = before.map((made) => `ln -s ${work}/${made} ${disk}/${made}`).join(" && ");
        // A disk of no size is one without a limit: a page of it is full already.
        const script = `mount -t tmpfs -o size=${size + PAGE} tmpfs ${disk} && head -c ${PAGE} /dev/zero >${disk}/full && ${links} && cd ${disk} && exec "$@"`;
        const { status, stdout, stderr } = spawnSync(
          "unshare",
          ["-rm", "sh", "-c", script, "sh", ...command],
          { input: line.input ?? "", encoding: "utf8", env: environmentOf(disk) },
        );
        const problem =
          status === 0
            ? "ended well without room for its output"
            : /^\s+at .*:\d+:\d+/m.test(stderr)
              ? "shows a stack trace"
              : !/disk is full: free some space|no room for|No space left on device/.test(stderr)
                ? "does not say that the disk is full"
                : undefined;
        const what = `pawl ${name}, ${size} of ${needs} bytes`;
        if (problem === undefined) process.stderr.write(`✓ ${what}\n`);
        else
          fail(`${what} ${problem} (exit ${status}): ${stderr.slice(-600)}${stdout.slice(-200)}`);
      }
    }
  } finally {
    chat.kill();
    rmSync(folder, { recursive: true, force: true });
  }
  if (failed.length > 0) process.exitCode = 1;
  return { commands, disks, failed: failed.length };
}
