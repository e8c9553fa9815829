/** Tasks about finding files, reshaping text, and tables. */
import type { Random } from "@pawl/core/random.js";
import type { Made, SplitFamilies, Texts } from "./task.js";
import { supplies, TAGS, textOf } from "./words.js";

/** Files here and in folders, some inside others; each line is a word and a tag. */
function tree(random: Random, difficulty: number) {
  const kit = supplies(random, difficulty);
  const folders = [""];
  for (const name of kit.words(difficulty)) folders.push(`${random.pick(folders)}${name}/`);
  const files: Record<string, string> = {};
  for (let n = 0; n < 3 + 2 * difficulty; n++) {
    const lines = kit.words(2).map((word) => `${word} ${random.pick(TAGS)}`);
    files[`${folders[n % folders.length]!}${kit.word()}.txt`] = textOf(lines);
  }
  return { ...kit, files, paths: Object.keys(files) };
}

const baseOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
const linesOf = (text: string): string[] => text.split("\n").slice(0, -1);

/** Changes some texts, or removes them (undefined). */
function changed(files: Texts, change: (text: string, path: string) => string | undefined): Texts {
  const entries = Object.entries(files).map(([path, text]) => [path, change(text, path)] as const);
  return Object.fromEntries(
    entries.filter((one): one is readonly [string, string] => one[1] !== undefined),
  );
}

export const find: SplitFamilies = {
  train: {
    replace(random, difficulty) {
      const { files, paths, word } = tree(random, difficulty);
      const path = random.pick(paths);
      const old = files[path]!.split(" ")[0]!;
      const fresh = word();
      return {
        instruction: `One of the files, perhaps in a folder, has the word ${old}. Replace it there by ${fresh}.`,
        before: files,
        after: changed(files, (text) => text.replaceAll(old, fresh)),
        solution: [`grep -r ${old} .`, `sed -i s/${old}/${fresh}/g ${path}`],
      };
    },
    move(random, difficulty) {
      const { files, paths, word } = tree(random, difficulty);
      const target = word();
      const moved = new Set(random.shuffle([...paths]).slice(0, 1 + difficulty));
      const rename = (path: string) => (moved.has(path) ? path.replace(/txt$/, "bak") : path);
      const before = Object.fromEntries(
        Object.entries(files).map(([path, text]) => [rename(path), text]),
      );
      const after = Object.fromEntries(
        Object.entries(files).map(([path, text]) => [
          moved.has(path) ? `${target}/${baseOf(rename(path))}` : path,
          text,
        ]),
      );
      return {
        instruction: `Make the folder ${target}, and move every file that ends in .bak there, from here and from all folders.`,
        before,
        after,
        solution: [
          `mkdir ${target}`,
          "find . -name '*.bak'",
          `mv $(find . -name '*.bak') ${target}`,
        ],
      };
    },
    empty(random, difficulty) {
      const { files, paths } = tree(random, difficulty);
      const gone = new Set(random.shuffle([...paths]).slice(0, 1 + difficulty));
      return {
        instruction: "Delete the files that are empty, here and in all folders.",
        before: changed(files, (text, path) => (gone.has(path) ? "" : text)),
        after: changed(files, (text, path) => (gone.has(path) ? undefined : text)),
        solution: ["find . -type f -size 0", "rm $(find . -type f -size 0)"],
      };
    },
    copy(random, difficulty) {
      const { files, paths, word } = tree(random, difficulty);
      const path = random.pick(paths);
      const target = word();
      return {
        instruction: `Copy the file ${baseOf(path)}, wherever it is, to ${target}.txt here.`,
        before: files,
        after: { ...files, [`${target}.txt`]: files[path]! },
        solution: [`find . -name ${baseOf(path)}`, `cp ${path} ${target}.txt`],
      };
    },
  },
  valid: {
    "drop-lines"(random, difficulty) {
      const { files } = tree(random, difficulty);
      const tag = random.pick(linesOf(Object.values(files)[0]!)).split(" ")[1]!;
      return {
        instruction: `Delete every line that ends in ${tag}, in all files here and in folders.`,
        before: files,
        after: changed(files, (text) =>
          textOf(linesOf(text).filter((line) => !line.endsWith(tag))),
        ),
        solution: [`grep -rl ${tag} .`, `sed -i '/${tag}$/d' $(grep -rl ${tag} .)`],
      };
    },
  },
  test: {
    list(random, difficulty) {
      const { files, word } = tree(random, difficulty);
      const tag = random.pick(linesOf(Object.values(files)[0]!)).split(" ")[1]!;
      const target = `${word()}.list`;
      const having = Object.keys(files).filter((path) => files[path]!.includes(tag));
      return {
        instruction: `Write the paths of all files with the word ${tag}, here and in folders, sorted, one on a line and beginning with ./, to ${target}.`,
        before: files,
        after: { ...files, [target]: textOf(having.map((path) => `./${path}`).sort()) },
        solution: [`grep -rl ${tag} . | sort > ${target}`, `cat ${target}`],
      };
    },
  },
};

/** A task that writes lines made of one file's lines to another. */
function reshape(
  says: string,
  make: (lines: readonly string[]) => readonly string[],
  command: string,
  fill?: (random: Random, difficulty: number) => readonly string[],
) {
  return (random: Random, difficulty: number): Made => {
    const kit = supplies(random, difficulty);
    const [from, to] = kit.words(2).map((name) => `${name}.txt`) as [string, string];
    const some = kit.words(2 + difficulty);
    const lines =
      fill?.(random, difficulty) ??
      Array.from(
        { length: 4 + 3 * difficulty },
        () => `${random.pick(some)} ${random.pick(TAGS)} ${1 + random.int(50)}`,
      );
    const before = { [from]: textOf(lines) };
    return {
      instruction: `${says.replace("FROM", from)} to ${to}.`,
      before,
      after: { ...before, [to]: textOf(make(lines)) },
      solution: [
        `head ${from}`,
        `${command.replace("FROM", from)} > ${to}`,
        ...(difficulty > 1 ? [`cat ${to}`] : []),
      ],
    };
  };
}

/** Words, some of them often; one is the most frequent. */
function repeated(random: Random, difficulty: number): readonly string[] {
  const words = supplies(random, difficulty).words(2 + difficulty);
  return random.shuffle(
    words.flatMap((word, n) => Array.from({ length: n === 0 ? 5 : 1 + (n % 3) }, () => word)),
  );
}

export const text: SplitFamilies = {
  train: {
    unique: reshape(
      "Write the lines of FROM, sorted and without repetitions,",
      (lines) => [...new Set(lines)].sort(),
      "sort -u FROM",
      repeated,
    ),
    column: reshape(
      "Write the second word of every line of FROM",
      (lines) => lines.map((line) => line.split(" ")[1]!),
      "cut -d ' ' -f 2 FROM",
    ),
    capitals: reshape(
      "Write FROM in capital letters",
      (lines) => lines.map((line) => line.toUpperCase()),
      "tr a-z A-Z < FROM",
    ),
    numbered: reshape(
      'Write the lines of FROM, each after its number and a colon, as in "1:word",',
      (lines) => lines.map((line, n) => `${n + 1}:${line}`),
      "grep -n '' FROM",
    ),
    swapped: reshape(
      "Write of every line of FROM the last word and then the first, with a space between,",
      (lines) => lines.map((line) => `${line.split(" ")[2]} ${line.split(" ")[0]}`),
      "awk '{print $3, $1}' FROM",
    ),
  },
  valid: {
    largest: reshape(
      "Write the line of FROM that ends with the largest number",
      (lines) =>
        [...lines].sort((a, b) => Number(b.split(" ")[2]) - Number(a.split(" ")[2])).slice(0, 1),
      "sort -k 3 -n FROM | tail -n 1",
      (random, difficulty) => {
        const { words, number } = supplies(random, difficulty);
        return words(4 + 3 * difficulty).map(
          (word) => `${word} ${random.pick(TAGS)} ${number(1, 99)}`,
        );
      },
    ),
  },
  test: {
    frequent: reshape(
      "Write the line that FROM has most often, once,",
      (lines) => {
        const times = (line: string) => lines.filter((one) => one === line).length;
        return [...lines].sort((a, b) => times(b) - times(a)).slice(0, 1);
      },
      "sort FROM | uniq -c | sort -n | tail -n 1 | awk '{print $2}'",
      repeated,
    ),
  },
};

interface Row {
  readonly name: string;
  readonly place: string;
  readonly amount: number;
}

/** A table of names, places and amounts, as CSV. */
function table(random: Random, difficulty: number) {
  const kit = supplies(random, difficulty);
  const places = TAGS.slice(0, 1 + difficulty);
  const rows = kit.words(5 + 3 * difficulty).map(
    (name, n): Row => ({
      name,
      place: n === 0 ? places[0]! : random.pick(places),
      amount: kit.number(10, 99),
    }),
  );
  const [from, to] = kit.words(2) as [string, string];
  return { ...kit, rows, from: `${from}.csv`, to, place: places[0]! };
}

const HEADER = "name,kind,amount";
const csvLine = ({ name, place, amount }: Row): string => `${name},${place},${amount}`;

/** A task that writes what it makes of a table. */
function tabular(
  says: string,
  make: (rows: readonly Row[], place: string) => readonly (string | number)[],
  command: string,
  ending: string,
) {
  return (random: Random, difficulty: number): Made => {
    const { rows, from, to, place } = table(random, difficulty);
    const target = `${to}.${ending}`;
    const before = { [from]: textOf([HEADER, ...rows.map(csvLine)]) };
    const filled = (words: string): string =>
      words.replaceAll("FROM", from).replaceAll("KIND", place).replaceAll("TO", target);
    return {
      instruction: filled(`${says} to TO.`),
      before,
      after: { ...before, [target]: textOf(make(rows, place)) },
      solution: [`head -n 3 ${from}`, `${filled(command)} > ${target}`],
    };
  };
}

export const data: SplitFamilies = {
  train: {
    sum: tabular(
      "Write the sum of the amounts of kind KIND in FROM, the number alone,",
      (rows, kind) => [
        rows.filter(({ place }) => place === kind).reduce((sum, { amount }) => sum + amount, 0),
      ],
      "awk -F, '$2 == \"KIND\" {sum += $3} END {print sum}' FROM",
      "txt",
    ),
    filter: tabular(
      "Write the header of FROM and its rows of kind KIND",
      (rows, kind) => [HEADER, ...rows.filter(({ place }) => place === kind).map(csvLine)],
      "awk -F, 'NR == 1 || $2 == \"KIND\"' FROM",
      "csv",
    ),
    columns: tabular(
      "Write the columns name and amount of FROM, with the header,",
      (rows) => ["name,amount", ...rows.map(({ name, amount }) => `${name},${amount}`)],
      "cut -d , -f 1,3 FROM",
      "csv",
    ),
    tabs: tabular(
      "Write FROM without its header and with tabs in place of commas",
      (rows) => rows.map((row) => csvLine(row).replaceAll(",", "\t")),
      "tail -n +2 FROM | tr , '\\t'",
      "tsv",
    ),
    "json-set"(random, difficulty) {
      const { words, number } = supplies(random, difficulty);
      const fields = words(3 + difficulty).map((word) => [word, number(10, 999)] as const);
      const [file] = words(1);
      const [key, old] = random.pick(fields);
      const fresh = number(10, 999);
      const json = (value: number) =>
        `${JSON.stringify(Object.fromEntries(fields.map(([name, n]) => [name, name === key ? value : n])), null, 2)}\n`;
      const path = `${file}.json`;
      return {
        instruction: `Set ${key} to ${fresh} in ${path}, and leave the rest as it is.`,
        before: { [path]: json(old) },
        after: { [path]: json(fresh) },
        solution: [`cat ${path}`, `sed -i 's/"${key}": ${old}/"${key}": ${fresh}/' ${path}`],
      };
    },
  },
  valid: {
    sorted: tabular(
      "Write FROM, its header first and then its rows by rising amount,",
      (rows) => [HEADER, ...[...rows].sort((a, b) => a.amount - b.amount).map(csvLine)],
      "(head -n 1 FROM; tail -n +2 FROM | sort -t , -k 3 -n)",
      "csv",
    ),
  },
  test: {
    "to-json": tabular(
      'Write each row of FROM as a line of JSON with name and amount, as in {"name":"word","amount":12},',
      (rows) => rows.map(({ name, amount }) => JSON.stringify({ name, amount })),
      `tail -n +2 FROM | awk -F, '{print "{\\"name\\":\\"" $1 "\\",\\"amount\\":" $3 "}"}'`,
      "jsonl",
    ),
  },
};
