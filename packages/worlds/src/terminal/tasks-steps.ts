/**
 * Chains of small commands: "sort amber.txt into birch.txt, then delete cedar.txt".
 *
 * A family is an ordered pair of steps, such as `sort+delete`. The families of a split occur in no
 * other, but every step occurs in training in both places: unseen families ask for known steps in
 * new company, which a model that was trained from scratch can learn.
 */
import type { Random } from "@pawl/core/random.js";
import type { Family, Made, SplitFamilies } from "./task.js";
import { supplies, TAGS, textOf } from "./words.js";

/** The files while a chain is made, and what is left to name things with. */
interface Scene {
  readonly files: Map<string, string>;
  readonly random: Random;
  /** An unused file name, and a word that no file has. */
  name(): string;
  word(): string;
}

/** What a step says and does to a file; `result` is the file that the next step may use. */
interface Step {
  readonly says: string;
  readonly command: string;
  readonly result: string | undefined;
}

type MakeStep = (scene: Scene, file: string) => Step;

const linesOf = (scene: Scene, file: string): readonly string[] =>
  scene.files.get(file)!.split("\n").slice(0, -1);

const baseOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

/** A step that writes lines made of a file to a new one. */
function writes(
  says: (from: string, to: string) => string,
  command: (from: string, to: string) => string,
  make: (lines: readonly string[]) => readonly string[],
): MakeStep {
  return (scene, from) => {
    const to = scene.name();
    scene.files.set(to, textOf(make(linesOf(scene, from))));
    return { says: says(from, to), command: command(from, to), result: to };
  };
}

const STEPS: Readonly<Record<string, MakeStep>> = {
  copy: writes(
    (from, to) => `copy ${from} to ${to}`,
    (from, to) => `cp ${from} ${to}`,
    (lines) => lines,
  ),
  sort: writes(
    (from, to) => `sort ${from} into ${to}`,
    (from, to) => `sort ${from} > ${to}`,
    (lines) => [...lines].sort(),
  ),
  count: writes(
    (from, to) => `write how many lines ${from} has to ${to}`,
    (from, to) => `wc -l < ${from} > ${to}`,
    (lines) => [String(lines.length)],
  ),
  first: writes(
    (from, to) => `write the first line of ${from} to ${to}`,
    (from, to) => `head -n 1 ${from} > ${to}`,
    (lines) => lines.slice(0, 1),
  ),
  last: writes(
    (from, to) => `write the last line of ${from} to ${to}`,
    (from, to) => `tail -n 1 ${from} > ${to}`,
    (lines) => lines.slice(-1),
  ),
  pick(scene, from) {
    const word = scene.random.pick(linesOf(scene, from)).split(" ")[0]!;
    return writes(
      (_, to) => `write the lines of ${from} with ${word} to ${to}`,
      (_, to) => `grep ${word} ${from} > ${to}`,
      (lines) => lines.filter((line) => line.includes(word)),
    )(scene, from);
  },
  rename(scene, from) {
    const name = scene.name();
    const to = from.slice(0, from.length - baseOf(from).length) + name;
    scene.files.set(to, scene.files.get(from)!);
    scene.files.delete(from);
    return { says: `rename ${from} to ${name}`, command: `mv ${from} ${to}`, result: to };
  },
  delete(scene, file) {
    scene.files.delete(file);
    return { says: `delete ${file}`, command: `rm ${file}`, result: undefined };
  },
  replace(scene, file) {
    const text = scene.files.get(file)!;
    const old = scene.random.pick(text.split(/\s+/).filter((word) => word !== ""));
    const word = scene.word();
    scene.files.set(file, text.replaceAll(old, word));
    return {
      says: `replace ${old} by ${word} in ${file}`,
      // Blanks between, so that the words are written as the instruction has them.
      command: `sed -i 's ${old} ${word} g' ${file}`,
      result: file,
    };
  },
  append(scene, file) {
    const word = scene.word();
    scene.files.set(file, `${scene.files.get(file)!}${word}\n`);
    return {
      says: `add the line ${word} to ${file}`,
      command: `echo ${word} >> ${file}`,
      result: file,
    };
  },
};

const STEP_NAMES = Object.keys(STEPS);
/** What a chain can begin with: a step, or a file that has to be found by what it says. */
const BEGINNINGS = [...STEP_NAMES, "find"];

/** Of every step's ten companions, two are kept for tests and one for validation. */
function splitOf(first: string, second: string): "train" | "valid" | "test" {
  const place = (BEGINNINGS.indexOf(first) + 3 * STEP_NAMES.indexOf(second)) % STEP_NAMES.length;
  return place < 2 ? "test" : place < 3 ? "valid" : "train";
}

/** Chains by name, in the split that has them. */
function stepFamilies(): SplitFamilies {
  const splits: Record<keyof SplitFamilies, Record<string, Family>> = {
    train: {},
    valid: {},
    test: {},
  };
  for (const first of BEGINNINGS)
    for (const second of STEP_NAMES)
      splits[splitOf(first, second)][`${first}+${second}`] = (random, difficulty) =>
        makeChain(random, difficulty, first, second);
  return splits;
}

export const chains: SplitFamilies = stepFamilies();

function makeChain(random: Random, difficulty: number, first: string, second: string): Made {
  const { word, words } = supplies(random, difficulty);
  const files = new Map<string, string>();
  // From the second level on, files lie in folders that the instruction does not name.
  const folders = difficulty > 1 ? words(2).map((one) => `${one}/`) : [""];
  for (let n = 0; n < 3 + difficulty; n++) {
    const lines = words(2 + random.int(3)).map((one) =>
      difficulty > 1 ? `${one} ${random.pick(TAGS)}` : one,
    );
    files.set(`${folders[n % folders.length]!}${word()}.txt`, textOf(lines));
  }
  const before = Object.fromEntries(files);
  const scene: Scene = { files, random, name: () => `${word()}.txt`, word };
  const untouched = random.shuffle([...files.keys()]);
  const solution: string[] = [];
  const clauses: string[] = [];
  const add = (kind: string, file: string, called = baseOf(file)): string | undefined => {
    const step = STEPS[kind]!(scene, file);
    clauses.push(step.says.replace(file, called));
    solution.push(step.command);
    return step.result;
  };
  /** A file that no step had yet, once it is known where it lies. */
  const another = (): string => {
    const file = untouched.pop()!;
    if (file !== baseOf(file)) solution.push(`find . -name ${baseOf(file)}`);
    return file;
  };
  /** What the next step is about; what was just made is not deleted again. */
  const next = (result: string | undefined, kind: string): string =>
    result !== undefined && kind !== "delete" && random.int(2) === 0 ? result : another();
  let result: string | undefined;
  if (first === "find") {
    const file = untouched.pop()!;
    const word = linesOf(scene, file)[0]!.split(" ")[0]!;
    solution.push(difficulty > 1 ? `grep -rl ${word} .` : `grep -l ${word} *`);
    result = add(second, file, `the file with ${word}`);
  } else {
    result = add(second, next(add(first, another()), second));
  }
  if (difficulty > 2) {
    const own = splitOf(first, second);
    const third = random.pick(STEP_NAMES.filter((name) => splitOf(second, name) === own));
    add(third, next(result, third));
  }
  const said = clauses.join(", then ");
  return {
    instruction: `${said[0]!.toUpperCase()}${said.slice(1)}.`,
    before,
    after: Object.fromEntries(files),
    solution,
  };
}
