/** What the commands make of a damaged run folder, and whether that is right. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Outcome } from "../../src/cli/testing.js";
import type { RecordedRun } from "../../src/runs/run-folder.js";
import { filesOf } from "./damage-cases.js";
import type { RunToDamage } from "./damage-kinds.js";
import type { Damage } from "./one-damage.js";

const built = resolve("dist/src");

/** Everything that a run's numbers are, by update. */
interface Numbers {
  readonly metrics: ReadonlyMap<number, string>;
  readonly episodes: ReadonlyMap<string, string>;
  readonly weights: string;
}

/** How a whole run answers. */
export interface Whole {
  readonly show: string;
  readonly report: string;
  /** Undefined if it cannot be replayed. */
  readonly replay?: string;
  /** Of `replay --no-losses`. */
  readonly recount?: string;
  /** After it was resumed. */
  readonly numbers: Numbers;
}

/** What came out. */
export interface Judged {
  /** `refused`, `same numbers`, `kept aside`, `other numbers, as meant`, or `BUG`. */
  readonly outcome: string;
  /** `found` or `not found` by pawl check. */
  readonly check: string;
  readonly problems: readonly string[];
}

type Cli = (args: readonly string[]) => Promise<Outcome>;

async function cli(): Promise<Cli> {
  const { runCli } = await import(join(built, "cli/testing.js"));
  return async (args) => {
    try {
      return await runCli(args);
    } catch (error) {
      return { code: 70, stdout: "", stderr: (error as Error).stack ?? String(error) };
    }
  };
}

/** How long it takes differs, and so do the names of folders and moments. */
const plain = (text: string, run: string): string =>
  text
    .replaceAll(run, "RUN")
    .replace(/took [^,]+/g, "took")
    // Which evaluated weights are still there.
    .replace(/: RUN\/checkpoints\/\d+/g, "")
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "then");

async function numbersOf(folder: string): Promise<Numbers> {
  const { openRun } = await import(join(built, "runs/run-folder.js"));
  const run = openRun(folder, () => undefined) as RecordedRun;
  const timeless = (line: Readonly<Record<string, number>>): string =>
    JSON.stringify(Object.entries(line).filter(([name]) => !/^(seconds|memory)\./.test(name)));
  const last = join(folder, newestOf(folder));
  const weights = ["model.safetensors", "optimizer.safetensors"].map((file) =>
    existsSync(join(last, file)) ? readFileSync(join(last, file)).toString("base64") : "missing",
  );
  return {
    metrics: new Map(run.metrics().map((line) => [line.update!, timeless(line)])),
    episodes: new Map(
      [...run.episodes()].map((episode) => [
        `${episode.group}.${episode.attempt}`,
        JSON.stringify(episode),
      ]),
    ),
    weights: weights.join(),
  };
}

/** The newest checkpoint of a run, relative to it. */
export const newestOf = (run: string): string =>
  join("checkpoints", readdirSync(join(run, "checkpoints")).sort().at(-1) ?? "");

/** What a run without damage answers; it is resumed. */
export async function wholeRun(run: string, kind: RunToDamage): Promise<Whole> {
  const pawl = await cli();
  const said = async (...args: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await pawl(args);
    if (code !== 0) throw new Error(`the whole run fails: ${stderr}`);
    return plain(stdout, run);
  };
  const show = await said("show", run);
  const report = await said(...reporting(run));
  const replays = kind.isReplayed && {
    replay: await said("replay", run),
    recount: await said("replay", run, "--no-losses"),
  };
  await said(...kind.resume(run));
  return { show, report, ...replays, numbers: await numbersOf(run) };
}

const isGone = ({ kind, file }: Damage): boolean =>
  kind === "deleted" && /^checkpoints(\/\d+)?$/.test(file);
/** Whole files of another run show that run. */
const isForeignRecord = ({ kind, file }: Damage): boolean =>
  kind === "of another run" && ["episodes.jsonl.gz", "manifest.json"].includes(file);
const isModel = (file: string): boolean => /^(checkpoints|reference|tokenizer|model)/.test(file);

/** What the output of `show` or `report` is made of. */
function isRead(
  { file }: Damage,
  command: "show" | "report",
  { isReplayed }: RunToDamage,
): boolean {
  if (["manifest.json", "metrics.jsonl", "metrics.crc32"].includes(file)) return true;
  if (file === "episodes.jsonl.gz") return command === "show" || isReplayed;
  return command === "show" ? file.endsWith("state.json") : isReplayed && isAsked(file);
}

/** The weights before and after RL, which a report asks for predictions. */
const isAsked = (file: string): boolean => /^(reference|tokenizer)\/(?!pawl-checksums)/.test(file);

/** A report of a run; with predictions only if they are about what is damaged. */
const reporting = (run: string, isAboutWeights = false): readonly string[] => [
  ...["report", run, "--out", `${run}.html`, ...(isAboutWeights ? [] : ["--no-predictions"])],
];

const hasTrace = ({ stdout, stderr }: Outcome): boolean =>
  /^\s+at .*:\d+:\d+|TypeError|RangeError|internal error/m.test(stdout + stderr);

/** What differs, apart from what is missing; and how much that is. */
function compared<K>(found: ReadonlyMap<K, string>, expected: ReadonlyMap<K, string>) {
  const missing = [...expected.keys()].filter((key) => !found.has(key));
  const changed = [...found].filter(([key, value]) => expected.get(key) !== value);
  return { missing, changed: changed.map(([key]) => key) };
}

/** The names whose numbers differ between two lines. */
function differing(one: string, other: string): readonly string[] {
  const [a, b] = [one, other].map((text) => new Map<string, number>(JSON.parse(text)));
  const names = new Set([...a!.keys(), ...b!.keys()]);
  return [...names].filter((name) => a!.get(name) !== b!.get(name));
}

/** Reads, checks and resumes a damaged run. */
export async function judge(
  run: string,
  kind: RunToDamage,
  damage: Damage,
  whole: Whole,
): Promise<Judged> {
  const pawl = await cli();
  const problems: string[] = [];
  damage.apply(run);
  const before = new Map(
    filesOf(run).map((file) => [file, readFileSync(join(run, file)).toString("base64")]),
  );
  const checked = await pawl(["check", run]);
  const isFound = checked.code !== 0;
  let diverges = false;
  const commands = ["show", "report", ...(kind.isReplayed ? (["replay"] as const) : [])] as const;
  for (const command of commands) {
    // Only weights and their tokenizer need an engine to be replayed.
    const args = command === "replay" && !isModel(damage.file) ? ["--no-losses"] : [];
    const outcome = await pawl(
      command === "report" ? reporting(run, isModel(damage.file)) : [command, run, ...args],
    );
    diverges = command === "replay" && outcome.code === 1;
    if (hasTrace(outcome)) problems.push(`${command}: a stack trace: ${outcome.stderr}`);
    const expected = args.length > 0 ? whole.recount : whole[command];
    const isSame = plain(outcome.stdout, run) === expected;
    // What replay could not recompute without weights, it lists; it also knows foreign episodes.
    const mayDiffer =
      damage.isMeant || (command === "replay" ? isGone(damage) : isForeignRecord(damage));
    if (outcome.code === 0 && !isSame && outcome.stderr === "" && !mayDiffer)
      problems.push(`${command}: other output without a word`);
    // What is found in files that a command reads, it says too.
    if (command !== "replay" && outcome.code === 0 && outcome.stderr === "")
      if (isFound && isRead(damage, command, kind) && !mayDiffer)
        problems.push(`${command}: says nothing of what check finds: ${checked.stdout}`);
    if (outcome.code !== 0 && outcome.stderr + outcome.stdout === "")
      problems.push(`${command}: failed without a word`);
  }
  for (const [file, bytes] of before)
    if (!existsSync(join(run, file)) || readFileSync(join(run, file)).toString("base64") !== bytes)
      problems.push(`reading changed ${file}`);
  const resumed = await pawl(kind.resume(run));
  if (damage.isHeld && resumed.code === 0) problems.push("resume: a process has the folder");
  if (hasTrace(checked)) problems.push(`check: a stack trace: ${checked.stderr}`);
  if (hasTrace(resumed)) problems.push(`resume: a stack trace: ${resumed.stderr}`);
  const outcome =
    resumed.code === 0
      ? await judgeNumbers(run, { kind, damage, whole, resumed, isFound, diverges, problems })
      : judgeRefusal(run, { damage, before, resumed, isFound, problems });
  return {
    outcome: problems.length > 0 ? "BUG" : outcome,
    check: isFound ? "found" : "not found",
    problems,
  };
}

/** A refusal names what is wrong, and leaves everything as it was. */
function judgeRefusal(
  run: string,
  {
    damage: { isHeld, isMeant, mayRefuse },
    before,
    resumed,
    isFound,
    problems,
  }: {
    damage: Damage;
    before: ReadonlyMap<string, string>;
    resumed: Outcome;
    isFound: boolean;
    problems: string[];
  },
): string {
  if (!resumed.stderr.includes(run)) problems.push(`resume names no file: ${resumed.stderr}`);
  if (!isFound && !isHeld && !isMeant && !mayRefuse)
    problems.push(`check finds nothing, but resume refuses: ${resumed.stderr}`);
  for (const [file, bytes] of before) {
    // A torn tail may be cut, and damage moved aside, before something else is refused.
    if (!existsSync(join(run, file))) problems.push(`refused, but ${file} is gone`);
    else if (file.startsWith("checkpoints") || file.startsWith("reference")) {
      if (readFileSync(join(run, file)).toString("base64") !== bytes)
        problems.push(`refused, but ${file} was changed`);
    }
  }
  return "refused";
}

/** A run that goes on has the numbers of the whole one, or lacks what was damaged and says so. */
async function judgeNumbers(
  run: string,
  {
    kind,
    damage,
    whole,
    resumed,
    isFound,
    diverges,
    problems,
  }: {
    kind: RunToDamage;
    damage: Damage;
    whole: Whole;
    resumed: Outcome;
    isFound: boolean;
    diverges: boolean;
    problems: string[];
  },
): Promise<string> {
  const found = await numbersOf(run);
  const metrics = compared(found.metrics, whole.numbers.metrics);
  const episodes = compared(found.episodes, whole.numbers.episodes);
  const changed = metrics.changed.flatMap((update) => {
    const names = differing(found.metrics.get(update)!, whole.numbers.metrics.get(update) ?? "[]");
    // Alarms compare with earlier lines.
    const counted = names.filter((name) => metrics.missing.length === 0 || !/^alarm\./.test(name));
    return counted.length === 0 ? [] : [`${update} (${counted.join(", ")})`];
  });
  const isOther = found.weights !== whole.numbers.weights;
  const differs = isOther || changed.length > 0 || episodes.changed.length > 0;
  if (differs && damage.isMeant) return "other numbers, as meant";
  if (isOther) problems.push("resume: other weights");
  if (changed.length > 0) problems.push(`resume: other metrics of updates ${changed.join(", ")}`);
  if (episodes.changed.length > 0) {
    // The record of another run fits its form; what it does not fit are the numbers.
    if (damage.kind === "of another run" && diverges) return "found by replay";
    if (damage.kind === "of another run" && !kind.isReplayed) return "of another run, unnoticed";
    problems.push(`resume: other episodes ${episodes.changed.slice(0, 3).join(", ")} …`);
  }
  if (metrics.missing.length + episodes.missing.length === 0) return "same numbers";
  const said = resumed.stderr.includes(run);
  if (!said) problems.push("resume: records are missing without a word");
  if (!isFound) problems.push("check finds nothing, but records are missing");
  // A flip damages one append, or one line; two if it joins them.
  const isFlip = damage.kind === "flipped bit";
  if (isFlip && (metrics.missing.length > 2 || episodes.missing.length > kind.appended))
    problems.push(
      `resume: a flip cost ${metrics.missing.length} lines and ${episodes.missing.length} episodes`,
    );
  const asides = filesOf(run).some((file) => file.includes(".damaged"));
  return asides ? "kept aside" : "left out";
}
