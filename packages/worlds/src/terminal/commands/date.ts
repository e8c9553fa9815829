/** `date`, and times in words. */
import * as files from "../shell/file-system.js";
import type { Call } from "../shell/shell.js";
import { Failure, options, out, pathOf } from "./call.js";

const DAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");
const MONTHS =
  "January February March April May June July August September October November December".split(
    " ",
  );
const two = (n: number): string => String(n).padStart(2, "0");

/** A time as `date +FORMAT` writes it, in UTC. */
export function dateText(time: number, format: string): string {
  const date = new Date(time);
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()];
  const [hour, minute, second] = [date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()];
  const startOfYear = Date.UTC(year, 0, 1);
  const dayOfYear = Math.floor((time - startOfYear) / 86_400_000) + 1;
  const weekday = date.getUTCDay();
  const facts: Readonly<Record<string, () => string>> = {
    Y: () => String(year),
    C: () => two(Math.floor(year / 100)),
    y: () => two(year % 100),
    m: () => two(month + 1),
    d: () => two(day),
    e: () => String(day).padStart(2),
    H: () => two(hour),
    I: () => two(hour % 12 || 12),
    k: () => String(hour).padStart(2),
    l: () => String(hour % 12 || 12).padStart(2),
    M: () => two(minute),
    S: () => two(second),
    N: () => `${String(((time % 1000) + 1000) % 1000).padStart(3, "0")}000000`,
    s: () => String(Math.floor(time / 1000)),
    p: () => (hour < 12 ? "AM" : "PM"),
    a: () => DAYS[weekday]!.slice(0, 3),
    A: () => DAYS[weekday]!,
    b: () => MONTHS[month]!.slice(0, 3),
    h: () => MONTHS[month]!.slice(0, 3),
    B: () => MONTHS[month]!,
    j: () => String(dayOfYear).padStart(3, "0"),
    u: () => String(weekday || 7),
    w: () => String(weekday),
    U: () => two(Math.floor((dayOfYear + 6 - weekday) / 7)),
    W: () => two(Math.floor((dayOfYear + 6 - ((weekday + 6) % 7)) / 7)),
    V: () => two(isoWeek(date)),
    Z: () => "UTC",
    z: () => "+0000",
    n: () => "\n",
    t: () => "\t",
    F: () => `${year}-${two(month + 1)}-${two(day)}`,
    T: () => `${two(hour)}:${two(minute)}:${two(second)}`,
    R: () => `${two(hour)}:${two(minute)}`,
    D: () => `${two(month + 1)}/${two(day)}/${two(year % 100)}`,
    c: () => dateText(time, "%a %b %e %T %Y"),
    x: () => dateText(time, "%D"),
    X: () => dateText(time, "%T"),
    r: () => dateText(time, "%I:%M:%S %p"),
    "%": () => "%",
  };
  const known = new Map(Object.entries(facts));
  return format.replace(
    /%([-_0^#]?)(\d*)([a-zA-Z%])/g,
    (all, flag: string, width: string, letter: string) => {
      const text = known.get(letter)?.();
      if (text === undefined) return all;
      if (letter === "N" && width !== "") return text.slice(0, Number(width));
      if (flag === "-") return text.replace(/^[0 ]+(?=.)/, "");
      if (flag === "_") return text.replace(/^0+(?=.)/, (zeros) => " ".repeat(zeros.length));
      return flag === "^" ? text.toUpperCase() : text;
    },
  );
}

function isoWeek(date: Date): number {
  const thursday = new Date(date);
  thursday.setUTCDate(date.getUTCDate() + 4 - (date.getUTCDay() || 7));
  const first = Date.UTC(thursday.getUTCFullYear(), 0, 1);
  return Math.ceil(((thursday.getTime() - first) / 86_400_000 + 1) / 7);
}

const UNITS: ReadonlyMap<string, number> = new Map([
  ["sec", 1000],
  ["second", 1000],
  ["min", 60_000],
  ["minute", 60_000],
  ["hour", 3_600_000],
  ["day", 86_400_000],
  ["week", 604_800_000],
  ["fortnight", 1_209_600_000],
]);

/** A time in words, such as `2024-01-31 + 2 days`, `yesterday` or `@0`. */
function timeOf(text: string, now: number): number {
  let rest = text.trim();
  let time = now;
  const stamp = /^@(-?\d+(?:\.\d+)?)/.exec(rest);
  const day =
    /^(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?:[T ]+(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?)?/.exec(
      rest,
    );
  if (stamp !== null) {
    time = Number(stamp[1]) * 1000;
    rest = rest.slice(stamp[0].length);
  } else if (day !== null) {
    const [year, month, date, hour = 0, minute = 0, second = 0] = day
      .slice(1)
      .map((one) => (one === undefined ? undefined : Number(one))) as number[];
    time = Date.UTC(year!, month! - 1, date, hour, minute, second);
    if (new Date(time).getUTCDate() !== date) throw new Failure(`invalid date '${text}'`);
    rest = rest.slice(day[0].length);
  } else if (
    /^[A-Za-z]{3}.*\d/.test(rest) &&
    !Number.isNaN(Date.parse(`${rest} UTC`)) &&
    !/ago|next|last/.test(rest)
  ) {
    return Date.parse(/UTC|GMT|Z$/.test(rest) ? rest : `${rest} UTC`);
  }
  for (rest = rest.trim(); rest !== ""; rest = rest.trim()) {
    const named = /^(now|today|yesterday|tomorrow|midnight|UTC|GMT|Z)\b/i.exec(rest);
    const clock = /^(\d{1,2}):(\d{2})(?::(\d{2}))?/.exec(rest);
    const shift =
      /^([-+]?)\s*(\d+|next|last|a|an)?\s*(sec|second|min|minute|hour|day|week|fortnight|month|year)s?(\s+ago)?\b/i.exec(
        rest,
      );
    if (named !== null) {
      const word = named[1]!.toLowerCase();
      if (word === "yesterday") time -= 86_400_000;
      if (word === "tomorrow") time += 86_400_000;
      if (word === "midnight") time -= time % 86_400_000;
      rest = rest.slice(named[0].length);
    } else if (clock !== null) {
      time =
        time -
        (time % 86_400_000) +
        ((Number(clock[1]) * 60 + Number(clock[2])) * 60 + Number(clock[3] ?? 0)) * 1000;
      rest = rest.slice(clock[0].length);
    } else if (shift !== null) {
      const [all, sign, count = "1", unit, ago] = shift;
      const size = /^\d/.test(count) ? Number(count) : count.toLowerCase() === "last" ? -1 : 1;
      const amount = size * (sign === "-" ? -1 : 1) * (ago === undefined ? 1 : -1);
      const length = UNITS.get(unit!.toLowerCase());
      const date = new Date(time);
      if (length !== undefined) time += amount * length;
      else if (/month/i.test(unit!)) time = date.setUTCMonth(date.getUTCMonth() + amount);
      else time = date.setUTCFullYear(date.getUTCFullYear() + amount);
      rest = rest.slice(all!.length);
    } else throw new Failure(`invalid date '${text}'`);
  }
  if (Number.isNaN(time) || Math.abs(time) > 8e15) throw new Failure(`invalid date '${text}'`);
  return time;
}

export function date(call: Call): number {
  const given = options(call, "d:uRI:r:f:", {
    date: "d",
    utc: "u",
    "iso-8601": "I",
    reference: "r",
    "rfc-3339": "I",
  });
  const { machine } = call.shell;
  const reference = given.value("r");
  const written = given.value("d");
  let time = Math.floor(machine.time);
  if (reference !== undefined)
    time = files.statFile(machine.fs, pathOf(call, reference)).modified * 1000;
  if (written !== undefined) time = timeOf(written, time);
  const [format] = given.operands;
  if (format !== undefined && !format.startsWith("+"))
    throw new Failure(`invalid date '${format}'`);
  const iso = given.has("I") ? (given.value("I") === "seconds" ? "%FT%T+00:00" : "%F") : undefined;
  out(
    call,
    `${dateText(time, format?.slice(1) ?? iso ?? (given.has("R") ? "%a, %d %b %Y %T +0000" : "%a %b %e %T UTC %Y"))}\n`,
  );
  return 0;
}
