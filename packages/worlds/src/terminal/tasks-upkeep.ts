/** Tasks of upkeep: configuration, logs, and folders of versions. */
import type { Random } from "@pawl/core/random.js";
import type { Family, Made, SplitFamilies } from "./task.js";
import { supplies, textOf } from "./words.js";

/** Settings as `key=value`. */
function settings(random: Random, difficulty: number) {
  const kit = supplies(random, difficulty);
  const keys = kit.words(2 + difficulty);
  const lines = keys.map((key) => `${key}=${kit.number(10, 999)}`);
  return { ...kit, keys, lines, file: `${kit.word()}.conf` };
}

export const config: SplitFamilies = {
  train: {
    section(random, difficulty) {
      const { keys, words, number, word } = settings(random, difficulty);
      const sections = words(1 + difficulty);
      const values = sections.map(() => keys.map(() => number(10, 999)));
      const at = [random.int(sections.length), random.int(keys.length)] as const;
      const fresh = number(10, 999);
      const write = (replaced: boolean) =>
        textOf(
          sections.flatMap((section, s) => [
            `[${section}]`,
            ...keys.map(
              (key, k) =>
                `${key}=${replaced && s === at[0] && k === at[1] ? fresh : values[s]![k]}`,
            ),
          ]),
        );
      const file = `${word()}.ini`;
      const [section, key] = [sections[at[0]]!, keys[at[1]]!];
      return {
        instruction: `Set ${key} to ${fresh} in the section [${section}] of ${file}, and nowhere else.`,
        before: { [file]: write(false) },
        after: { [file]: write(true) },
        solution: [
          `cat ${file}`,
          `sed -i '/^\\[${section}\\]/,/^\\[/s/^${key}=.*/${key}=${fresh}/' ${file}`,
        ],
      };
    },
    set(random, difficulty) {
      const { keys, lines, file, number } = settings(random, difficulty);
      const key = random.pick(keys);
      const fresh = number(10, 999);
      const after = lines.map((line) => (line.startsWith(`${key}=`) ? `${key}=${fresh}` : line));
      return {
        instruction: `Set ${key} to ${fresh} in ${file}.`,
        before: { [file]: textOf(lines) },
        after: { [file]: textOf(after) },
        solution: [`grep ${key} ${file}`, `sed -i s/^${key}=.*/${key}=${fresh}/ ${file}`],
      };
    },
    add(random, difficulty) {
      const { lines, file, word, number } = settings(random, difficulty);
      const line = `${word()}=${number(10, 999)}`;
      return {
        instruction: `Add the setting ${line} at the end of ${file}.`,
        before: { [file]: textOf(lines) },
        after: { [file]: textOf([...lines, line]) },
        solution: [`echo ${line} >> ${file}`, `tail -n 2 ${file}`],
      };
    },
    comment(random, difficulty) {
      const { keys, lines, file } = settings(random, difficulty);
      const key = random.pick(keys);
      const after = lines.map((line) => (line.startsWith(`${key}=`) ? `# ${line}` : line));
      return {
        instruction: `Switch ${key} off in ${file}: put a # and a space before its line.`,
        before: { [file]: textOf(lines) },
        after: { [file]: textOf(after) },
        solution: [`sed -i 's/^${key}=/# ${key}=/' ${file}`, `cat ${file}`],
      };
    },
  },
  valid: {
    "rename-key"(random, difficulty) {
      const { keys, word, words, number } = settings(random, difficulty);
      const old = random.pick(keys);
      const fresh = word();
      const files = words(1 + difficulty).map((name) => `${name}.env`);
      const before = files.map((file) => [
        file,
        textOf(keys.map((key) => `${key}=${number(10, 999)}`)),
      ]) as readonly (readonly [string, string])[];
      return {
        instruction: `Rename the setting ${old} to ${fresh} in all files that end in .env.`,
        before: Object.fromEntries(before),
        after: Object.fromEntries(
          before.map(([file, text]) => [file, text.replace(`${old}=`, `${fresh}=`)]),
        ),
        solution: [`grep ${old} *.env`, `sed -i s/^${old}=/${fresh}=/ *.env`],
      };
    },
  },
  test: {
    merge(random, difficulty) {
      const { keys, lines, word, number } = settings(random, difficulty);
      const key = random.pick(keys);
      const [base, own, target] = [`${word()}.env`, "local.env", `${word()}.env`] as const;
      const line = `${key}=${number(10, 999)}`;
      const before = { [base]: textOf(lines), [own]: textOf([line]) };
      return {
        instruction: `${own} has one setting. Write the lines of ${base} without that setting, and after them the line of ${own}, to ${target}.`,
        before,
        after: {
          ...before,
          [target]: textOf([...lines.filter((one) => !one.startsWith(`${key}=`)), line]),
        },
        solution: [`cat ${own}`, `grep -v ^${key}= ${base} > ${target}`, `cat ${own} >> ${target}`],
      };
    },
  },
};

interface Entry {
  readonly hour: string;
  readonly service: string;
  readonly level: string;
  readonly line: string;
}

/** A log of services, with times, levels and durations. */
function logged(random: Random, difficulty: number) {
  const kit = supplies(random, difficulty);
  const services = kit.words(1 + difficulty);
  const two = (n: number): string => String(n).padStart(2, "0");
  const entries = Array.from({ length: 8 + 6 * difficulty }, (_, n): Entry => {
    const hour = two(9 + Math.floor((n * 6) / (8 + 6 * difficulty)));
    const service = n < 2 ? services[0]! : random.pick(services);
    const level = n === 0 ? "ERROR" : n === 1 ? "WARN" : random.pick(["INFO", "WARN", "ERROR"]);
    const time = `${hour}:${two(random.int(60))}:${two(random.int(60))}`;
    const line = `2031-04-07 ${time} ${service} ${level} request ${kit.number(100, 999)} took ${kit.number(1000, 9999)} ms`;
    return { hour, service, level, line };
  });
  return { ...kit, entries, file: `${kit.word()}.log`, target: `${kit.word()}.txt` };
}

/** A task that writes what it makes of a log; SERVICE is one that has errors, HOUR one of its own. */
function fromLog(
  says: string,
  make: (entries: readonly Entry[], first: Entry) => readonly (string | number)[],
  command: string,
): Family {
  return (random, difficulty): Made => {
    const { entries, file, target } = logged(random, difficulty);
    const first = entries[0]!;
    const before = { [file]: textOf(entries.map(({ line }) => line)) };
    const filled = (words: string): string =>
      words
        .replaceAll("LOG", file)
        .replaceAll("SERVICE", first.service)
        .replaceAll("HOUR", first.hour);
    return {
      instruction: filled(`${says} to ${target}.`),
      before,
      after: { ...before, [target]: textOf(make(entries, first)) },
      solution: [`head -n 3 ${file}`, `${filled(command)} > ${target}`],
    };
  };
}

export const logs: SplitFamilies = {
  train: {
    errors: fromLog(
      "Write the lines of LOG with an ERROR of SERVICE",
      (entries, { service }) =>
        entries
          .filter((one) => one.service === service && one.level === "ERROR")
          .map((e) => e.line),
      "grep 'SERVICE ERROR' LOG",
    ),
    warnings: fromLog(
      "Write how many lines of LOG are of level WARN, the number alone,",
      (entries) => [entries.filter(({ level }) => level === "WARN").length],
      "grep -c ' WARN ' LOG",
    ),
    failing: fromLog(
      "Write the names of the services that have an ERROR in LOG, sorted, each once,",
      (entries) =>
        [...new Set(entries.filter((e) => e.level === "ERROR").map((e) => e.service))].sort(),
      "grep ' ERROR ' LOG | cut -d ' ' -f 3 | sort -u",
    ),
    slowest: fromLog(
      "Write the line of LOG that took longest",
      (entries) => {
        const took = ({ line }: Entry): number => Number(line.split(" ")[7]);
        return [...entries]
          .sort((a, b) => took(b) - took(a))
          .map(({ line }) => line)
          .slice(0, 1);
      },
      "sort -k 8 -n LOG | tail -n 1",
    ),
  },
  valid: {
    "per-service": fromLog(
      'Write how many lines each service has in LOG, as in "name 3", sorted by name,',
      (entries) =>
        [...new Set(entries.map(({ service }) => service))]
          .sort()
          .map((name) => `${name} ${entries.filter(({ service }) => service === name).length}`),
      "cut -d ' ' -f 3 LOG | sort | uniq -c | awk '{print $2, $1}'",
    ),
  },
  test: {
    hour: fromLog(
      "Write how many lines of level ERROR there are between HOUR:00 and HOUR:59 in LOG, the number alone,",
      (entries, { hour }) => [
        entries.filter((one) => one.hour === hour && one.level === "ERROR").length,
      ],
      "grep ' HOUR:' LOG | grep -c ' ERROR '",
    ),
  },
};

/** Versions of a few files, each in a folder of its own, and what changed, by number. */
function versioned(random: Random, difficulty: number) {
  const kit = supplies(random, difficulty);
  const files = kit.words(1 + difficulty).map((name) => `${name}.txt`);
  const count = 2 + difficulty;
  const before: Record<string, string> = {};
  const changes: string[] = [];
  let texts = files.map(() => [...kit.words(2)]);
  for (let version = 1; version <= count; version++) {
    const at = random.int(files.length);
    const word = kit.word();
    texts = texts.map((lines, n) => (n === at ? [...lines, word] : lines));
    changes.push(`${version} ${files[at]} has ${word}`);
    for (const [n, file] of files.entries())
      before[`versions/${version}/${file}`] = textOf(texts[n]!);
  }
  for (const [n, file] of files.entries())
    before[file] = textOf([...texts[n]!.slice(1), kit.word()]);
  before.CHANGES = textOf(changes);
  return { ...kit, files, count, before };
}

export const history: SplitFamilies = {
  train: {
    restore(random, difficulty) {
      const { files, count, before } = versioned(random, difficulty);
      const file = random.pick(files);
      const version = 1 + random.int(count);
      const from = `versions/${version}/${file}`;
      return {
        instruction: `The folder versions keeps earlier versions by number. Put ${file} back to version ${version}.`,
        before,
        after: { ...before, [file]: before[from]! },
        solution: ["ls versions", `cp ${from} ${file}`],
      };
    },
    release(random, difficulty) {
      const { files, count, before, word } = versioned(random, difficulty);
      const [fresh, note] = [count + 1, word()];
      const kept = files.map((file) => [`versions/${fresh}/${file}`, before[file]!]);
      return {
        instruction: `Keep the present .txt files as the next version in the folder versions, and add its number and the word ${note} as a line at the end of CHANGES.`,
        before,
        after: {
          ...before,
          ...Object.fromEntries(kept),
          CHANGES: `${before.CHANGES}${fresh} ${note}\n`,
        },
        solution: [
          "ls versions",
          `mkdir versions/${fresh}`,
          `cp *.txt versions/${fresh}`,
          `echo ${fresh} ${note} >> CHANGES`,
        ],
      };
    },
    since(random, difficulty) {
      const { count, before, word } = versioned(random, difficulty);
      const version = 1 + random.int(count);
      const [, , , brought] = before.CHANGES!.split("\n")[version - 1]!.split(" ");
      const target = `${word()}.txt`;
      return {
        instruction: `CHANGES says what each version brought. Write the number of the version that brought ${brought}, alone, to ${target}.`,
        before,
        after: { ...before, [target]: textOf([version]) },
        solution: ["cat CHANGES", `grep ${brought} CHANGES | cut -d ' ' -f 1 > ${target}`],
      };
    },
  },
  valid: {
    changed(random, difficulty) {
      const { files, count, before, word } = versioned(random, difficulty);
      const target = `${word()}.list`;
      const differ = files.filter(
        (file) => before[`versions/1/${file}`] !== before[`versions/${count}/${file}`],
      );
      return {
        instruction: `Write the names of the files that differ between versions/1 and versions/${count}, sorted, one on a line, to ${target}.`,
        before,
        after: { ...before, [target]: textOf([...differ].sort()) },
        solution: [
          `for f in $(ls versions/1); do cmp -s versions/1/$f versions/${count}/$f || echo $f; done > ${target}`,
          `cat ${target}`,
        ],
      };
    },
  },
  test: {
    prune(random, difficulty) {
      const { count, before } = versioned(random, difficulty);
      const old = Array.from({ length: count - 1 }, (_, n) => `versions/${n + 1}`);
      const after = Object.entries(before).filter(
        ([path]) => !old.some((folder) => path.startsWith(`${folder}/`)),
      );
      return {
        instruction: "Delete all folders in versions but the newest.",
        before,
        after: Object.fromEntries(after),
        conditions: old.slice(0, 1).map((folder) => `[ ! -e ${folder} ]`),
        solution: ["ls versions", `rm -r ${old.join(" ")}`],
      };
    },
  },
};
