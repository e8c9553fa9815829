/** Tasks about scripts that fail their tests. */
import type { Family, Made, SplitFamilies } from "./task.js";
import { supplies, textOf } from "./words.js";

/** A script that reads lines and prints one answer, and the mistake in it. */
interface Broken {
  readonly does: string;
  readonly script: (wrong: boolean) => string;
  readonly answer: (numbers: readonly number[]) => string | number;
  /** What the mistake answers, where that may happen to be right. */
  readonly mistaken?: (numbers: readonly number[]) => string | number;
  /** The edit that mends it. */
  readonly edit: string;
}

const loop = (start: string, body: string, end: string): string =>
  textOf([start, "while read -r n; do", `  ${body}`, "done", end]);

/** A task to mend a script until its check passes; the hidden test asks for other numbers, too. */
function mended({ does, script: write, answer, mistaken, edit }: Broken): Family {
  return (random, difficulty): Made => {
    const { word, number } = supplies(random, difficulty);
    const numbers = (count: number): readonly number[] => {
      const drawn = Array.from({ length: count }, () => number(3, 99));
      return mistaken?.(drawn) === answer(drawn) ? numbers(count) : drawn;
    };
    const file = `${word()}.sh`;
    const run = (some: readonly number[]) => `printf '${some.join("\\n")}\\n' | bash ${file}`;
    const shown = numbers(2 + difficulty);
    const before = {
      [file]: write(true),
      "check.sh": textOf([
        `got=$(${run(shown)})`,
        `if [ "$got" = "${answer(shown)}" ]; then`,
        "  echo passed",
        "else",
        `  echo "failed: expected ${answer(shown)}, got $got"`,
        "  exit 1",
        "fi",
      ]),
    };
    const holds = (some: readonly number[]) => `[ "$(${run(some)})" = "${answer(some)}" ]`;
    return {
      instruction: `${file} should read numbers, one on a line, and print ${does}, but check.sh fails. Mend ${file}.`,
      before,
      after: { ...before, [file]: null },
      conditions: [numbers(3), numbers(4 + difficulty)].map(holds),
      solution: ["bash check.sh", `cat ${file}`, `sed -i '${edit}' ${file}`, "bash check.sh"],
    };
  };
}

const sum = (numbers: readonly number[]): number => numbers.reduce((all, n) => all + n, 0);

export const script: SplitFamilies = {
  train: {
    total: mended({
      does: "their sum",
      script: (wrong) => loop("total=0", `total=$((total ${wrong ? "-" : "+"} n))`, "echo $total"),
      answer: sum,
      edit: "s/total - n/total + n/",
    }),
    largest: mended({
      does: "the largest of them",
      script: (wrong) =>
        loop("best=0", `if [ $n -${wrong ? "lt" : "gt"} $best ]; then best=$n; fi`, "echo $best"),
      answer: (numbers) => Math.max(...numbers),
      edit: "s/-lt/-gt/",
    }),
    last: mended({
      does: "the last of them",
      script: (wrong) => loop("last=", "last=$n", wrong ? "echo $lst" : "echo $last"),
      answer: (numbers) => numbers.at(-1)!,
      edit: "s/lst/last/",
    }),
  },
  valid: {
    count: mended({
      does: "how many there are",
      script: (wrong) => loop(`count=${wrong ? 1 : 0}`, "count=$((count + 1))", "echo $count"),
      answer: (numbers) => numbers.length,
      edit: "s/count=1/count=0/",
    }),
  },
  test: {
    even: mended({
      does: "how many of them are even",
      script: (wrong) =>
        loop(
          "count=0",
          `if [ $((n % ${wrong ? 3 : 2})) -eq 0 ]; then count=$((count + 1)); fi`,
          "echo $count",
        ),
      answer: (numbers) => numbers.filter((n) => n % 2 === 0).length,
      mistaken: (numbers) => numbers.filter((n) => n % 3 === 0).length,
      edit: "s/% 3/% 2/",
    }),
  },
};
