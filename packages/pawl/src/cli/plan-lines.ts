/** What a run will take, in words. */

import type { SizePlan, TimePlan } from "@pawl/training/plan.js";
import type { RunPlan } from "@pawl/training/run.js";
import { number } from "./format.js";

/** All that can be said. */
export const planLines = (
  { size, time, contradictions = [] }: RunPlan,
  updates: number,
): readonly string[] => [
  ...(size === undefined ? [] : [sizeLine(size)]),
  ...(time === undefined ? [] : timeLines(time, updates)),
  ...contradictions.map((line) => `warning: ${line}`),
];

/** What is trained, and the memory for it. */
function sizeLine({ parameters, trained, adapters, memory, here }: SizePlan): string {
  const millions = (count: number): string => number(count / 1e6, 1);
  const gigabytes = (bytes: number): string => number(bytes / 1e9, 1);
  const what = adapters ? `${millions(trained)} of ${millions(parameters)}` : millions(parameters);
  const memoryWords = `about ${gigabytes(memory)} of the ${gigabytes(here)} GB of memory here`;
  const tight =
    memory > here
      ? ": too little, unless episodes are short (pawl model info says what it counts)"
      : "";
  return `trains ${what} million parameters${adapters ? " (adapters)" : ""}, ${memoryWords}${tight}`;
}

/** Tokens and minutes. */
function timeLines(
  { episodes, steps, tokens, learnt, written, imitation, update, evaluation }: TimePlan,
  updates: number,
): readonly string[] {
  const minutes = (seconds: number): string => number(seconds / 60, seconds < 600 ? 1 : 0);
  const parts = [
    ...(imitation > 0 ? [`imitation ${minutes(imitation)}`] : []),
    ...(updates > 0 ? [`${updates} × ${minutes(update)} for updates`] : []),
    ...(evaluation > 0 ? [`evaluation ${minutes(evaluation)}`] : []),
  ];
  const all = imitation + updates * update + evaluation;
  return [
    `up to ${number(tokens)} tokens an update: ${episodes} episodes of up to ${steps} steps`,
    `up to about ${minutes(all)} minutes: ${parts.join(", ")} (measured now: ${number(learnt)} tokens learnt a second, ${number(written)} written)`,
  ];
}
