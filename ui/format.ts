/** Numbers, times and durations for people. */
import { shortNumber, shortPercent } from "@pawl/ui/report/scale.js";

export { shortNumber, shortPercent };

/** Seconds as `1 h 05 min`, `3 min`, `12 s`. */
export function duration(seconds: number | null): string {
  if (seconds === null || !Number.isFinite(seconds)) return "–";
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const minutes = Math.round(whole / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${String(minutes % 60).padStart(2, "0")} min`;
  return `${Math.round(hours / 24)} days`;
}

/** A point in time, to the minute, in UTC as in every record. */
export const moment = (time: string): string => time.slice(0, 16).replace("T", " ");

/** A count with its noun. */
export const count = (n: number, noun: string): string =>
  `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;

/** Characters of a path in a list. */
const PATH = 24;

/** The end of a long path, from the start of a name on; other texts as they are. */
export function shortPath(text: string): string {
  if (text.length <= PATH || !/^[^\s[{"]*\/[^\s]*$/.test(text)) return text;
  const end = text.slice(-PATH);
  return `…${end.slice(Math.max(0, end.indexOf("/")))}`;
}
