import { passTime, Stopped } from "../shell/machine.js";
import { type Call, environment, setVariable, subshell } from "../shell/shell.js";
import { Failure, joinLines, options, out } from "./call.js";
import { floatText } from "./print.js";

/** Seconds of `sleep` and `timeout`. */
function secondsOf(text: string): number {
  const found = /^(\d*\.?\d+)([smhd]?)$/.exec(text);
  if (found === null && text !== "infinity") throw new Failure(`invalid time interval '${text}'`);
  if (found === null) return Number.POSITIVE_INFINITY;
  return Number(found[1]) * { "": 1, s: 1, m: 60, h: 3600, d: 86_400 }[found[2]!]!;
}

export function sleep(call: Call): number {
  if (call.args.length === 0) throw new Failure("missing operand");
  passTime(call.shell.machine, call.args.map(secondsOf).reduce((sum, one) => sum + one, 0) * 1000);
  return 0;
}

export function timeout(call: Call): number {
  let at = 0;
  while (/^-/.test(call.args[at] ?? "")) at += /^-[ks]$/.test(call.args[at]!) ? 2 : 1;
  const [duration, ...words] = call.args.slice(at);
  if (duration === undefined || words.length === 0) throw new Failure("missing operand", 125);
  const { machine } = call.shell;
  const { deadline, work } = machine;
  const seconds = secondsOf(duration);
  machine.deadline = Math.min(deadline, machine.time + seconds * 1000);
  // A second is a million units of work, so that what never ends is stopped here, too.
  const least = Math.max(0, work - seconds * 1e6);
  machine.work = work - least;
  try {
    return call.shell.runner.execute(call.shell, words);
  } catch (error) {
    if (!(error instanceof Stopped) || (least === 0 && machine.deadline === deadline)) throw error;
    machine.work = Math.max(0, machine.work);
    return 124;
  } finally {
    machine.work += least;
    machine.deadline = deadline;
  }
}

export function seq(call: Call): number {
  const args = [...call.args];
  let separator = "\n";
  let format: string | undefined;
  let isEven = false;
  while (/^-[swf]/.test(args[0] ?? "") && !/^-\d/.test(args[0]!)) {
    const option = args.shift()!;
    if (option[1] === "w") isEven = true;
    else {
      const value = option.length > 2 ? option.slice(2) : (args.shift() ?? "");
      if (option[1] === "s") separator = value.replaceAll("\\n", "\n").replaceAll("\\t", "\t");
      else format = value;
    }
  }
  for (const one of args)
    if (!/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(one))
      throw new Failure(`invalid floating point argument: '${one}'`);
  if (args.length === 0) throw new Failure("missing operand");
  const numbers = args.map(Number);
  const [first, step, last] =
    numbers.length === 1
      ? [1, 1, numbers[0]!]
      : numbers.length === 2
        ? [numbers[0]!, 1, numbers[1]!]
        : (numbers as [number, number, number]);
  if (step === 0) throw new Failure(`invalid Zero increment value: '${args[1]}'`);
  const decimals = Math.max(
    ...args.slice(0, Math.max(1, args.length - 1)).map((one) => (one.split(".")[1] ?? "").length),
  );
  const count = Math.floor((last - first) / step + 1e-9) + 1;
  const shown = (n: number): string => (first + n * step).toFixed(Math.min(decimals, 20));
  const width = isEven ? Math.max(shown(0).length, shown(Math.max(0, count - 1)).length) : 0;
  const lines: string[] = [];
  const flush = (isLast: boolean): void => {
    if (lines.length > 0) out(call, lines.join(separator) + (isLast ? "\n" : separator));
    lines.length = 0;
  };
  for (let n = 0; n < count; n++) {
    const text = shown(n);
    const padded = text.startsWith("-")
      ? `-${text.slice(1).padStart(width - 1, "0")}`
      : text.padStart(width, "0");
    lines.push(
      format === undefined
        ? padded
        : format.replace(
            /%(0?)(\d*)(?:\.(\d+))?([gfe])/,
            (_, zero: string, wide: string, precise: string | undefined, kind: string) =>
              floatText(
                kind,
                first + n * step,
                precise === undefined ? undefined : Number(precise),
              ).padStart(Math.min(Number(wide || 0), 100), zero || " "),
          ),
    );
    if (lines.length >= 1000) flush(n === count - 1);
  }
  flush(true);
  return 0;
}

export function yes(call: Call): number {
  const line = `${call.args.join(" ") || "y"}\n`;
  const many = line.repeat(Math.max(1, Math.floor(4096 / line.length)));
  for (;;) {
    out(call, many);
    passTime(call.shell.machine, 10);
  }
}

export function env(call: Call): number {
  const words = [...call.args];
  const inner = subshell(call.shell);
  for (;;) {
    const word = words[0] ?? "";
    if (word === "-i" || word === "-" || word === "--ignore-environment") {
      for (const [name, { exported }] of inner.variables)
        if (exported) inner.variables.delete(name);
    } else if (word === "-u") {
      words.shift();
      inner.variables.delete(words[0] ?? "");
    } else if (/^[A-Za-z_]\w*=/.test(word)) {
      const [name, ...value] = word.split("=") as [string, ...string[]];
      setVariable(inner, name, value.join("="));
      inner.variables.set(name, { ...inner.variables.get(name)!, exported: true });
    } else if (word !== "--") break;
    words.shift();
  }
  if (words.length > 0) {
    inner.functions.clear();
    return call.shell.runner.execute(inner, words);
  }
  out(call, joinLines(environment(inner).map(([name, value]) => `${name}=${value}`)));
  return 0;
}

export function printenv(call: Call): number {
  const known = new Map(environment(call.shell));
  if (call.args.length === 0)
    out(call, joinLines([...known].map(([name, value]) => `${name}=${value}`)));
  let status = 0;
  for (const name of call.args) {
    const value = known.get(name);
    if (value === undefined) status = 1;
    else out(call, `${value}\n`);
  }
  return status;
}

export function uname(call: Call): number {
  const given = options(call, "asnrvmpio");
  const facts = [
    ["s", "Linux"],
    ["n", "box"],
    ["r", "6.1.0"],
    ["v", "#1 SMP"],
    ["m", "x86_64"],
    ["o", "GNU/Linux"],
  ] as const;
  const chosen = facts.filter(
    ([letter]) => given.has("a") || given.has(letter) || (letter === "s" && call.args.length === 0),
  );
  out(call, `${chosen.map(([, text]) => text).join(" ")}\n`);
  return 0;
}

export function id(call: Call): number {
  const given = options(call, "ugnGr");
  const one = given.has("n") ? "root" : "0";
  out(
    call,
    given.has("u") || given.has("g") || given.has("G")
      ? `${one}\n`
      : "uid=0(root) gid=0(root) groups=0(root)\n",
  );
  return 0;
}

/** Programs that run another with nothing changed. */
export function pass(call: Call): number {
  let at = 0;
  while (/^-/.test(call.args[at] ?? "")) at += /^-[nop]$/.test(call.args[at]!) ? 2 : 1;
  const words = call.args.slice(at);
  return words.length === 0 ? 0 : call.shell.runner.execute(call.shell, words);
}
