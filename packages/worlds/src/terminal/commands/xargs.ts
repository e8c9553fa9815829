import type { Call } from "../shell/shell.js";
import { nothing } from "../shell/streams.js";
import { complain, countOf, Failure, linesOf, options, readInput } from "./call.js";
import { execute } from "./find.js";

/** The words of an input as xargs reads them: quotes and backslashes keep blanks. */
function wordsOf(text: string): readonly string[] {
  const words: string[] = [];
  for (const [all] of text.matchAll(/(?:\\.|'[^'\n]*'|"[^"\n]*"|[^\s'"\\])+|['"]/gs)) {
    if (all === "'" || all === '"')
      throw new Failure(
        `unmatched ${all === "'" ? "single" : "double"} quote; by default quotes are special to xargs unless you use the -0 option`,
      );
    words.push(
      all.replace(
        /\\(.)|'([^']*)'|"([^"]*)"/gs,
        (_, a?: string, b?: string, c?: string) => a ?? b ?? c ?? "",
      ),
    );
  }
  return words;
}

export function xargs(call: Call): number {
  // Options end at the command.
  let at = 0;
  while (at < call.args.length && /^-./.test(call.args[at]!))
    at += /^-[nILPdsEa]$|^--(max-args|delimiter|arg-file|max-procs|replace|max-lines)$/.test(
      call.args[at]!,
    )
      ? 2
      : 1;
  const given = options({ ...call, args: call.args.slice(0, at) }, "0rtn:I:L:P:d:s:E:xpa:", {
    null: "0",
    "no-run-if-empty": "r",
    "max-args": "n",
    delimiter: "d",
    verbose: "t",
    "max-procs": "P",
    replace: "I",
    "max-lines": "L",
  });
  const command = call.args.slice(at);
  const base = command.length > 0 ? command : ["echo"];
  const text = readInput(call);
  const replaced = given.value("I");
  const delimiter = given.has("0")
    ? "\0"
    : given.value("d")?.replace("\\n", "\n").replace("\\t", "\t").replace("\\0", "\0");
  const items =
    delimiter !== undefined
      ? linesOf(text, delimiter)
      : replaced !== undefined
        ? linesOf(text)
            .map((line) => line.trimStart())
            .filter((line) => line !== "")
        : wordsOf(text);
  let groups: readonly (readonly string[])[];
  const count = given.value("n");
  if (replaced !== undefined) groups = items.map((one) => [one]);
  else if (given.has("L"))
    groups = chunks(
      linesOf(text).filter((line) => line.trim() !== ""),
      countOf(given.value("L")!, "number"),
    ).map((lines) => lines.flatMap(wordsOf));
  else if (count !== undefined) groups = chunks(items, countOf(count, "number"));
  else groups = items.length === 0 ? (given.has("r") ? [] : [[]]) : [items];
  let status = 0;
  const { streams } = call.shell;
  call.shell.streams = new Map(streams).set(0, nothing);
  try {
    for (const group of groups) {
      const words =
        replaced === undefined
          ? [...base, ...group]
          : base.map((one) => one.replaceAll(replaced, group[0]!));
      if (given.has("t")) complain({ ...call, name: "+" }, words.join(" "));
      const code = execute(call, words);
      if (code === 255) return 124;
      if (code === 127 || code === 126) return code;
      if (code !== 0) status = 123;
    }
  } finally {
    call.shell.streams = streams;
  }
  return status;
}

function chunks(items: readonly string[], size: number): readonly (readonly string[])[] {
  if (size < 1) throw new Failure("value for -n option should be >= 1");
  return Array.from({ length: Math.ceil(items.length / size) }, (_, n) =>
    items.slice(n * size, (n + 1) * size),
  );
}
