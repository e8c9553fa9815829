/**
 * What every command does to the machine: it writes only to its output, the temporary folder and
 * our own cache, and opens no connection. Runs each command once, as small as possible, under
 * strace (Linux).
 *
 *   npm run bench -- trace [COMMAND …]
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { FILES, type Line, lines, words } from "./shared/command-lines.js";

const cli = resolve("dist/lib/main.js");

/** Commands that are not traced, with the reason. */
const LEFT_OUT: Readonly<Record<string, string>> = {
  "model pull": "its purpose is to fetch",
  "env make": "runs TextWorld's own generator, in Python",
  "serve engine": "runs PyTorch",
  "bench observations": "a long comparison of what train does",
  tune: "several of what train does",
  distill: "its purpose is to ask a teacher",
  track: "its purpose is to send",
  push: "its purpose is to send",
  "wm threshold": "fetches its encoder when there is none yet, and says so",
};

/** Calls that write, and calls that talk. */
const CALLS =
  "open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,connect,bind,sendto";

interface Traced {
  readonly code: number | null;
  readonly text: string;
  readonly calls: readonly string[];
}

async function trace(name: string, line: Line, folder: string): Promise<Traced> {
  const log = join(folder, `${name.replaceAll(" ", "-")}.strace`);
  const home = join(folder, "home");
  const { ORT_DISABLE_TELEMETRY: _, ...clean } = process.env;
  const child = spawn(
    "strace",
    [
      "-f",
      "-qq",
      "-o",
      log,
      "-e",
      `trace=${CALLS}`,
      process.execPath,
      cli,
      ...words(name),
      ...line.args,
    ],
    {
      cwd: join(folder, "work"),
      env: {
        ...clean,
        HOME: home,
        XDG_CACHE_HOME: join(home, ".cache"),
        TMPDIR: join(folder, "tmp"),
      },
      stdio: ["pipe", "pipe", "pipe"],
      // strace itself ignores signals: its group gets them.
      detached: true,
    },
  );
  let text = "";
  const listen = (chunk: Buffer): void => {
    text += chunk.toString();
    // A server says that it listens; then it is told to stop.
    if (line.serves && /http:\/\//.test(text)) process.kill(-child.pid!, "SIGINT");
  };
  child.stdout.on("data", listen);
  child.stderr.on("data", listen);
  child.stdin.on("error", () => undefined);
  child.stdin.end(line.input ?? "");
  const timer = setTimeout(() => process.kill(-child.pid!, "SIGKILL"), 300_000);
  const code = await new Promise<number | null>((done) => child.on("close", done));
  clearTimeout(timer);
  return { code, text, calls: readFileSync(log, "utf8").split("\n") };
}

/** Calls that write somewhere else, or talk to another machine. */
function strays(calls: readonly string[], folder: string, serves: boolean): readonly string[] {
  const allowed = [
    ...["work", "tmp", "home/.cache/pawl"].map((name) => join(folder, name)),
    ...["/dev/", "/proc/self/", "/proc/thread-self/"],
  ];
  return calls.filter((call) => {
    if (/ = -1 E/.test(call) && !/EINPROGRESS/.test(call)) return false;
    if (/\b(connect|sendto)\(/.test(call)) return /AF_INET6?/.test(call);
    if (/\bbind\(/.test(call))
      return /AF_INET/.test(call) && !(serves && /127\.0\.0\.1|::1/.test(call));
    if (/\bopen(at)?\(/.test(call) && !/O_WRONLY|O_RDWR|O_CREAT/.test(call)) return false;
    const paths = [...call.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, path]) =>
      resolve(join(folder, "work"), path!),
    );
    return paths.some((path) => !allowed.some((prefix) => path.startsWith(prefix)));
  });
}

export async function main(args: readonly string[]): Promise<object> {
  if (spawnSync("strace", ["--version"]).status !== 0) return { skipped: "there is no strace" };
  const help = spawnSync(process.execPath, [cli, "--help"], { encoding: "utf8" }).stdout;
  const listed = help.slice(help.indexOf("Commands\n"), help.indexOf("Start here"));
  const untraced = [...listed.matchAll(/^ {2}(\S+(?: \S+)*) {2,}/gm)]
    .map(([, name]) => name!)
    .filter((name) => lines[name] === undefined && LEFT_OUT[name] === undefined);
  const folder = mkdtempSync(join(tmpdir(), "pawl-trace-"));
  for (const name of ["work", "tmp", "home"]) mkdirSync(join(folder, name));
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, "work", name), text);
  const failed: string[] = [];
  const results: Record<string, number> = {};
  for (const [name, line] of Object.entries(lines)) {
    if (args.length > 0 && !args.includes(name)) continue;
    const { code, text, calls } = await trace(name, line, folder);
    const found = strays(calls, folder, line.serves === true);
    results[name] = found.length;
    process.stderr.write(`${found.length === 0 ? "✓" : "✗"} pawl ${name} (exit ${code})\n`);
    // A command that stops at its settings would show nothing.
    if (code !== (line.code ?? 0) && !(line.serves && code === 130))
      failed.push(`pawl ${name} ended with ${code}: ${text.slice(-500)}`);
    failed.push(...found.slice(0, 5).map((call) => `pawl ${name}: ${call}`));
  }
  if (untraced.length > 0) failed.push(`not traced: ${untraced.join(", ")}`);
  for (const line of failed) process.stderr.write(`${line}\n`);
  if (failed.length > 0) process.exitCode = 1;
  return { commands: Object.keys(results).length, leftOut: LEFT_OUT, failed: failed.length };
}
