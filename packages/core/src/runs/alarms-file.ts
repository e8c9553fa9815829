/** The alarms of a run: one JSON object per line, appended when one is raised. */
import { appendFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { explainIo } from "../files/io-error.js";
import { readRegularText } from "../files/regular-file.js";
import { RunError } from "./run-error.js";
import { writeSmallFile } from "./small-file.js";

/** An alarm that was raised at an update. */
export interface AlarmRecord {
  readonly update: number;
  readonly alarm: string;
  readonly text: string;
}

const pathOf = (folder: string): string => join(folder, "alarms.jsonl");

/** Appends an alarm. */
export function recordAlarm(folder: string, record: AlarmRecord): void {
  const path = pathOf(folder);
  try {
    appendFileSync(path, `${JSON.stringify(record)}\n`);
  } catch (error) {
    throw new RunError(`could not record to ${explainIo(error, path)}`, { cause: error });
  }
}

/** The alarms of a run, oldest first; damaged lines are left out with a word. */
export function readAlarms(folder: string, onProblem: (message: string) => void): AlarmRecord[] {
  const path = pathOf(folder);
  if (!existsSync(path)) return [];
  return readRegularText(path)
    .split("\n")
    .flatMap((line, index): readonly AlarmRecord[] => {
      if (line === "") return [];
      try {
        return [JSON.parse(line) as AlarmRecord];
      } catch {
        onProblem(`${path}:${index + 1}: not a JSON object; left out`);
        return [];
      }
    });
}

/** Removes the alarms of this update and later ones, which a resumed run repeats. */
export function cutAlarms(folder: string, update: number): void {
  const path = pathOf(folder);
  if (!existsSync(path)) return;
  const kept = readAlarms(folder, () => undefined).filter((record) => record.update < update);
  writeSmallFile(path, kept.map((record) => `${JSON.stringify(record)}\n`).join(""));
}
