/** `find` and `xargs`. */
import * as files from "../shell/file-system.js";
import { spend } from "../shell/machine.js";
import { matches } from "../shell/pattern.js";
import { matcherOf } from "../shell/regex.js";
import type { Call } from "../shell/shell.js";
import { complain, Failure, out, pathOf } from "./call.js";
import { modeOf } from "./modes.js";
import { modeText, sizeOf } from "./paths.js";

interface Found {
  /** As written: the start, and what lies below it. */
  readonly name: string;
  readonly path: string;
  readonly stat: files.Stat;
  readonly depth: number;
  readonly start: string;
}

/** Whether a file fits, and what is done with it. */
type Test = (found: Found) => boolean;

interface Plan {
  readonly call: Call;
  readonly words: readonly string[];
  at: number;
  acts: boolean;
  least: number;
  most: number;
  deepFirst: boolean;
  follows: boolean;
  pruned: boolean;
  quit: boolean;
  status: number;
  /** Commands that are run once, at the end. */
  readonly collected: { readonly words: readonly string[]; readonly names: string[] }[];
}

export function find(call: Call): number {
  const args = call.args.filter((one) => !/^-[LPH]$/.test(one));
  const first = args.findIndex((one) => /^[-(!,]/.test(one) && one !== "-");
  const starts = first < 0 ? args : args.slice(0, first);
  const words = first < 0 ? [] : args.slice(first);
  const plan: Plan = {
    call,
    words,
    at: 0,
    acts: false,
    least: 0,
    most: Number.POSITIVE_INFINITY,
    deepFirst: false,
    follows: call.args.includes("-L"),
    pruned: false,
    quit: false,
    status: 0,
    collected: [],
  };
  const test = words.length === 0 ? () => true : either(plan);
  if (plan.at < words.length)
    throw new Failure(`paths must precede expression: \`${words[plan.at]}'`);
  const { machine } = call.shell;
  const visit = (found: Found): void => {
    if (plan.quit) return;
    spend(machine, 2);
    plan.pruned = false;
    const use = (): void => {
      if (found.depth < plan.least || plan.quit) return;
      if (test(found) && !plan.acts) out(call, `${found.name}\n`);
    };
    if (!plan.deepFirst) use();
    if (found.stat.kind === "folder" && !plan.pruned && found.depth < plan.most)
      for (const inside of files.listFolder(machine.fs, found.path)) {
        const path = `${found.path}/${inside}`;
        const stat =
          files.lookUp(machine.fs, path, plan.follows) ?? files.lookUp(machine.fs, path, false);
        const name = found.name.endsWith("/") ? found.name + inside : `${found.name}/${inside}`;
        if (stat !== undefined)
          visit({ name, path, stat, depth: found.depth + 1, start: found.start });
      }
    if (plan.deepFirst) use();
  };
  for (const name of starts.length > 0 ? starts : ["."]) {
    const path = pathOf(call, name);
    const stat =
      files.lookUp(machine.fs, path, plan.follows || name.endsWith("/")) ??
      files.lookUp(machine.fs, path, false);
    if (stat === undefined) {
      complain(call, `'${name}': No such file or directory`);
      plan.status = 1;
    } else visit({ name, path, stat, depth: 0, start: name });
  }
  for (const { words: command, names } of plan.collected)
    if (names.length > 0 && execute(call, [...command, ...names]) !== 0) plan.status = 1;
  return plan.status;
}

/** Runs a command. */
export const execute = (call: Call, words: readonly string[]): number => {
  spend(call.shell.machine, 8);
  return call.shell.runner.execute(call.shell, words);
};

function either(plan: Plan): Test {
  let left = both(plan);
  while (/^-(o|or)$/.test(plan.words[plan.at] ?? "")) {
    plan.at += 1;
    const [a, b] = [left, both(plan)];
    left = (found) => a(found) || b(found);
  }
  return left;
}

function both(plan: Plan): Test {
  let left = one(plan);
  for (;;) {
    const word = plan.words[plan.at];
    if (word === undefined || word === ")" || /^-(o|or)$/.test(word)) return left;
    if (/^-(a|and)$/.test(word)) plan.at += 1;
    const [a, b] = [left, one(plan)];
    left = (found) => a(found) && b(found);
  }
}

function one(plan: Plan): Test {
  const word = plan.words[plan.at];
  plan.at += 1;
  if (word === "!" || word === "-not") {
    const inner = one(plan);
    return (found) => !inner(found);
  }
  if (word === "(") {
    const inner = either(plan);
    if (plan.words[plan.at] !== ")")
      throw new Failure("invalid expression; expected to find a ')' but didn't see one.");
    plan.at += 1;
    return inner;
  }
  if (word === undefined) throw new Failure("invalid expression");
  return primary(plan, word);
}

/** How a number with a sign compares: `+3`, `-3`, `3`. */
function compared(text: string, what: string): (value: number) => boolean {
  const found = /^([-+]?)(\d+)$/.exec(text);
  if (found === null) throw new Failure(`invalid argument \`${text}' to \`${what}'`);
  const wanted = Number(found[2]);
  if (found[1] === "+") return (value) => value > wanted;
  return found[1] === "-" ? (value) => value < wanted : (value) => value === wanted;
}

const baseOf = (name: string): string => name.replace(/\/+$/, "").split("/").at(-1) || "/";

function primary(plan: Plan, word: string): Test {
  const { call } = plan;
  const { machine } = call.shell;
  const value = (): string => {
    const text = plan.words[plan.at];
    if (text === undefined) throw new Failure(`missing argument to \`${word}'`);
    plan.at += 1;
    return text;
  };
  switch (word) {
    case "-name":
    case "-iname": {
      const pattern = value();
      const isSame = word === "-name";
      return ({ name }) =>
        matches(
          machine,
          isSame ? pattern : pattern.toLowerCase(),
          isSame ? baseOf(name) : baseOf(name).toLowerCase(),
        );
    }
    case "-path":
    case "-wholename":
    case "-ipath": {
      const pattern = value();
      return ({ name }) =>
        word === "-ipath"
          ? matches(machine, pattern.toLowerCase(), name.toLowerCase())
          : matches(machine, pattern, name);
    }
    case "-regex":
    case "-iregex": {
      const matcher = matcherOf(`^\\(${value()}\\)$`, {
        extended: false,
        ignoreCase: word === "-iregex",
      });
      return ({ name }) => matcher.test(name);
    }
    case "-regextype":
      value();
      return () => true;
    case "-type": {
      const kinds = value().split(",");
      const letters = { file: "f", folder: "d", link: "l", device: "c" } as const;
      return ({ stat }) => kinds.includes(letters[stat.kind]);
    }
    case "-empty":
      return ({ stat }) =>
        stat.kind === "folder"
          ? stat.entries.size === 0
          : stat.kind === "file" && sizeOf(stat) === 0;
    case "-size":
      return sizeTest(value());
    case "-mtime":
    case "-mmin":
    case "-atime":
    case "-ctime":
    case "-cmin":
    case "-amin": {
      const unit = word.endsWith("min") ? 60 : 86_400;
      const fits = compared(value(), word);
      return ({ stat }) => fits(Math.floor((machine.time / 1000 - stat.modified) / unit));
    }
    case "-newer": {
      const { modified } = files.statFile(machine.fs, pathOf(call, value()));
      return ({ stat }) => stat.modified > modified;
    }
    case "-perm":
      return permissionTest(value());
    case "-executable":
      return ({ stat }) => (stat.mode & 0o111) !== 0;
    case "-readable":
    case "-writable":
    case "-true":
      return () => true;
    case "-false":
      return () => false;
    case "-user":
    case "-group": {
      const who = value();
      return () => who === "root" || who === "0";
    }
    case "-links": {
      const fits = compared(value(), word);
      return ({ stat }) => fits(stat.links);
    }
    case "-maxdepth":
      plan.most = Number(value());
      return () => true;
    case "-mindepth":
      plan.least = Number(value());
      return () => true;
    case "-depth":
      plan.deepFirst = true;
      return () => true;
    case "-mount":
    case "-xdev":
    case "-noleaf":
    case "-daystart":
      return () => true;
    case "-prune":
      return () => {
        plan.pruned = true;
        return true;
      };
    default:
      return action(plan, word, value);
  }
}

function action(plan: Plan, word: string, value: () => string): Test {
  const { call } = plan;
  plan.acts = true;
  switch (word) {
    case "-print":
      return ({ name }) => {
        out(call, `${name}\n`);
        return true;
      };
    case "-print0":
      return ({ name }) => {
        out(call, `${name}\0`);
        return true;
      };
    case "-printf": {
      const format = value();
      return (found) => {
        out(call, formatted(call, format, found));
        return true;
      };
    }
    case "-ls":
      return (found) => {
        out(call, formatted(call, "%i 4 %M %n root root %s %TY-%Tm-%Td %p\n", found));
        return true;
      };
    case "-quit":
      return () => {
        plan.quit = true;
        return true;
      };
    case "-delete":
      plan.deepFirst = true;
      return ({ path, stat, name }) => {
        if (name === "." || name === "/") return true;
        try {
          if (stat.kind === "folder") files.removeFolder(call.shell.machine.fs, path);
          else files.removeFile(call.shell.machine.fs, path);
          return true;
        } catch (error) {
          complain(call, `cannot delete '${name}': ${(error as Error).message}`);
          plan.status = 1;
          return false;
        }
      };
    case "-exec":
    case "-execdir":
    case "-ok": {
      const words: string[] = [];
      for (let next = value(); next !== ";"; next = value()) {
        if (next === "+" && words.at(-1) === "{}") {
          const collected = { words: words.slice(0, -1), names: [] as string[] };
          plan.collected.push(collected);
          return ({ name }) => {
            collected.names.push(name);
            return true;
          };
        }
        words.push(next);
      }
      return ({ name }) =>
        execute(
          call,
          words.map((one) => one.replaceAll("{}", name)),
        ) === 0;
    }
    default:
      throw new Failure(`unknown predicate \`${word}'`);
  }
}

function sizeTest(text: string): Test {
  const found = /^([-+]?\d+)([bcwkMG]?)$/.exec(text);
  if (found === null) throw new Failure(`invalid -size type \`${text}'`);
  const unit = { "": 512, b: 512, c: 1, w: 2, k: 1024, M: 2 ** 20, G: 2 ** 30 }[found[2]!]!;
  const fits = compared(found[1]!, "-size");
  return ({ stat }) => fits(Math.ceil(sizeOf(stat) / unit));
}

function permissionTest(text: string): Test {
  const sign = /^[-/]/.exec(text)?.[0];
  const wanted = modeOf(sign === undefined ? text : text.slice(1), 0, false);
  return ({ stat: { mode } }) => {
    const bits = mode & 0o7777;
    if (sign === "-") return (bits & wanted) === wanted;
    return sign === "/" ? wanted === 0 || (bits & wanted) !== 0 : bits === wanted;
  };
}

function formatted(call: Call, format: string, { name, stat, depth, start }: Found): string {
  const date = new Date(stat.modified * 1000).toISOString();
  const above = name.includes("/") ? name.slice(0, name.lastIndexOf("/")) : ".";
  const facts = new Map<string, string>([
    ["p", name],
    ["f", baseOf(name)],
    ["h", above],
    ["P", name === start ? "" : name.slice(start.replace(/\/$/, "").length + 1)],
    ["s", String(sizeOf(stat))],
    ["d", String(depth)],
    ["m", (stat.mode & 0o7777).toString(8)],
    ["M", modeText(stat)],
    ["y", { file: "f", folder: "d", link: "l", device: "c" }[stat.kind]],
    ["i", String(stat.number)],
    ["n", String(stat.links)],
    ["u", "root"],
    ["g", "root"],
    ["l", stat.kind === "link" ? stat.content : ""],
    ["t", date.slice(0, 19)],
    ["T@", `${stat.modified}.0000000000`],
    ["TY", date.slice(0, 4)],
    ["Tm", date.slice(5, 7)],
    ["Td", date.slice(8, 10)],
    ["TH", date.slice(11, 13)],
    ["TM", date.slice(14, 16)],
    ["%", "%"],
  ]);
  const letters = new Map(Object.entries({ n: "\n", t: "\t", "0": "\0", "\\": "\\" }));
  spend(call.shell.machine, 1);
  return format.replace(/\\(.)|%(T.|.)/g, (all, code: string | undefined, directive: string) =>
    code === undefined ? (facts.get(directive) ?? all) : (letters.get(code) ?? all),
  );
}
