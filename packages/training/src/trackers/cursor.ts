/** How far each tracker has got with a run: `trackers.json` in its folder. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import { writeSmallFile } from "@pawl/core/runs/small-file.js";
import { z } from "zod";

/** What a tracker has received. */
export interface Cursor {
  readonly lines: number;
  readonly alarms: number;
}

const count = z.int().min(0);
const fileSchema = z.object({
  /** The run that it is about; a copy of a run starts anew. */
  run: z.string(),
  trackers: z.record(z.string(), z.object({ lines: count, alarms: count })),
});

const NOTHING: Cursor = { lines: 0, alarms: 0 };

/** The cursors of a run. */
export interface Cursors {
  get(tracker: string): Cursor;
  set(tracker: string, cursor: Cursor): void;
  /** Nothing was sent, as far as we know. */
  forget(tracker: string): void;
}

/** Opens the cursors of a run; a file that cannot be read means that nothing was sent. */
export function openCursors(folder: string, run: string): Cursors {
  const path = join(folder, "trackers.json");
  const read = () => {
    try {
      const file = existsSync(path)
        ? fileSchema.parse(JSON.parse(readRegularText(path)))
        : undefined;
      return file?.run === run ? file.trackers : {};
    } catch {
      // Sending everything again does no harm.
      return {};
    }
  };
  const set = (tracker: string, cursor: Cursor): void => {
    const content = { run, trackers: { ...read(), [tracker]: cursor } };
    writeSmallFile(path, `${JSON.stringify(content)}\n`);
  };
  return {
    get: (tracker) => read()[tracker] ?? NOTHING,
    set,
    forget: (tracker) => set(tracker, NOTHING),
  };
}
