/**
 * Mutation testing: makes every small mistake (`mutants.ts`) in turn, and checks whether a test
 * notices.
 *
 *   npm run mutate                              all of the four folders: hours
 *   npm run mutate -- packages/core/src/advantages            a folder, or files
 *   npm run mutate -- --sample 100 packages/core/src/train    some of them, chosen by --seed (default 0)
 *
 * A file's mutants are run against the tests that import it, and then the others of its folder,
 * except in packages/core/src/train, where tests train. Look at each survivor: either a test is missing, or the
 * mutant changes nothing observable. In the second case explain it in explained.json, and it no
 * longer counts.
 */
import { fork } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { createRandom } from "@pawl/core/random.js";
import type { Job, Report } from "./child.js";
import { type Mutant, mutantsOf } from "./mutants.js";

const FOLDERS = [
  "packages/core/src/objectives",
  "packages/core/src/advantages",
  "packages/core/src/update",
  "packages/core/src/train",
];
/**
 * A mutant that takes this much longer than the tests themselves is an endless loop: it counts as
 * noticed.
 */
const PATIENCE = { factor: 5, atLeastMs: 30_000 };

interface Explained extends Pick<Mutant, "context" | "original" | "replacement"> {
  readonly file: string;
  readonly why: string;
}

type Fate = "killed" | "survived" | "explained";

/** Runs the mutants of the paths and returns the exit code: 1 if one survived unexplained. */
export async function main(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { sample: { type: "string" }, seed: { type: "string", default: "0" } },
  });
  const files = (positionals.length > 0 ? positionals : FOLDERS).flatMap(sourcesOf);
  const all = files.flatMap((file) =>
    mutantsOf(readFileSync(file, "utf8")).map((mutant, index) => ({ file, index, mutant })),
  );
  const chosen = createRandom(Number(values.seed))
    .shuffle([...all])
    .slice(0, Number(values.sample ?? all.length));
  const explained = JSON.parse(
    readFileSync(new URL("explained.json", import.meta.url), "utf8"),
  ) as readonly Explained[];
  const fates = new Map<string, Fate[]>();
  for (const file of files) {
    const own = chosen.filter((one) => one.file === file).sort((a, b) => a.index - b.index);
    const mutants = new Map(own.map(({ index, mutant }) => [index, mutant]));
    const tests = testsOf(file);
    if (mutants.size === 0) continue;
    await runMutants({ file, tests, mutants: [...mutants.keys()] }, (index, killed) => {
      const mutant = mutants.get(index)!;
      const reason = explained.find((one) => one.file === file && isSame(one, mutant));
      const fate = killed ? "killed" : reason === undefined ? "survived" : "explained";
      fates.set(dirname(file), [...(fates.get(dirname(file)) ?? []), fate]);
      if (fate === "survived")
        console.log(
          `${file}:${mutant.line}: ${mutant.original} → ${mutant.replacement}   in   ${mutant.context}`,
        );
    });
  }
  for (const [folder, list] of fates) console.log(`${folder}: ${scoreOf(list)}`);
  const whole = [...fates.values()].flat();
  console.log(`${chosen.length} of ${all.length} mutants: ${scoreOf(whole)}`);
  return whole.includes("survived") ? 1 : 0;
}

const isSame = (a: Explained, b: Mutant): boolean =>
  a.context === b.context && a.original === b.original && a.replacement === b.replacement;

function scoreOf(fates: readonly Fate[]): string {
  const count = (fate: Fate) => fates.filter((one) => one === fate).length;
  const counted = fates.length - count("explained");
  const share = ((100 * count("killed")) / Math.max(counted, 1)).toFixed(1);
  return `${share} % noticed (${count("killed")} of ${counted}; ${count("explained")} explained)`;
}

/** The sources in a path, without tests and their helpers. */
function sourcesOf(path: string): readonly string[] {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path)
    .filter((name) => name.endsWith(".ts") && !/(\.test|testing)\.ts$/.test(name))
    .map((name) => join(path, name));
}

/** The tests that should notice: those that import the file, then the others of its folder. */
function testsOf(file: string): Job["tests"] {
  const folder = dirname(file);
  const tests = readdirSync(folder)
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => join(folder, name));
  const source = `./${basename(file).replace(/\.ts$/, ".js")}`;
  const direct = tests.filter((test) => readFileSync(test, "utf8").includes(`"${source}"`));
  if (basename(folder) !== "train") return [direct, tests.filter((one) => !direct.includes(one))];
  return [direct.length > 0 ? direct : [join(folder, "run.test.ts")]];
}

/** Runs a file's mutants in a separate process, and in a new one after each that hangs. */
async function runMutants(
  job: Job,
  tell: (mutant: number, killed: boolean) => void,
): Promise<void> {
  let left = [...job.mutants];
  while (left.length > 0) {
    const hung = await inChild({ ...job, mutants: left }, (mutant, killed) => {
      left = left.filter((one) => one !== mutant);
      tell(mutant, killed);
    });
    if (hung) tell(left.shift()!, true);
  }
}

/** Whether the process had to be killed in the middle of a mutant. */
function inChild(job: Job, tell: (mutant: number, killed: boolean) => void): Promise<boolean> {
  return new Promise((resolve, reject) => {
    // Its own process group: the tests run in child processes.
    const child = fork(new URL("run.js", import.meta.url), [JSON.stringify(job)], {
      detached: true,
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    let hung = false;
    let ready = false;
    let limit = 600_000;
    const watch = (): NodeJS.Timeout =>
      setTimeout(() => {
        hung = ready;
        process.kill(-child.pid!, "SIGKILL");
      }, limit);
    let timer = watch();
    child.on("message", (report: Report) => {
      clearTimeout(timer);
      if ("ready" in report) {
        ready = true;
        limit = Math.max(PATIENCE.atLeastMs, PATIENCE.factor * report.ready);
      } else tell(report.mutant, report.killed);
      timer = watch();
    });
    child.on("exit", (code) => {
      clearTimeout(timer);
      if (hung || code === 0) resolve(hung);
      else reject(new Error(`the tests of ${job.file} could not be run`));
    });
  });
}
