/**
 * What changes, as server-sent events: one direction is all that is needed, a browser connects again
 * by itself, and no further dependency is. Files are looked at every two seconds, or less often if
 * that would take more than a small share of a processor, so that training notices nothing of it.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { readAlarms } from "@pawl/core/runs/alarms-file.js";
import type { RunRow } from "./api.js";
import { type MetricsPlace, placeAt, readMetricsFrom } from "./metrics-table.js";
import type { RunReader } from "./run-rows.js";
import { pathInside } from "./safe-path.js";

/**
 * When the files of watched runs are looked at: for all pages at the same moments, every two
 * seconds, or so seldom that it takes half a percent of one processor.
 */

const LEAST_MS = 2_000;
/** A page that is this late is not live any more: in very large folders, looking costs more. */
const MOST_MS = 15_000;
/** The share of a processor that looking may take. */
const SHARE = 0.005;

/** Calls everybody who has joined, again and again. */
interface Pulse {
  /** Joins; the function that is returned leaves. */
  join(look: () => void): () => void;
}

/** A pulse that beats as long as somebody listens. */
export function createPulse(): Pulse {
  const looks = new Set<() => void>();
  let timer: NodeJS.Timeout | undefined;
  const beat = (): void => {
    const before = process.cpuUsage();
    for (const look of [...looks]) look();
    const { user, system } = process.cpuUsage(before);
    timer = looks.size === 0 ? undefined : setTimeout(beat, pauseAfter((user + system) / 1000));
  };
  return {
    join(look) {
      looks.add(look);
      timer ??= setTimeout(beat, LEAST_MS);
      return () => {
        looks.delete(look);
        if (looks.size > 0) return;
        clearTimeout(timer);
        timer = undefined;
      };
    },
  };
}

/** How long to wait after a look that took so many milliseconds of a processor. */
export const pauseAfter = (took: number): number =>
  Math.min(MOST_MS, Math.max(LEAST_MS, took / SHARE));

/** Pages that listen at once. */
export const MOST_LISTENERS = 64;
/** Bytes of metrics in one event. */
const MOST_BYTES = 2 ** 22;
/** Alarms that are shown: the latest. */
const MOST_ALARMS = 100;
/** A connection on which nothing is said for so long may be taken for a dead one. */
const SILENT_MS = 15_000;

type Send = (event: string, data: unknown) => void;

/** Starts a stream; `look` is called at once and then regularly, until the page goes away. */
function stream(
  asked: IncomingMessage,
  reply: ServerResponse,
  pulse: Pulse,
  look: (send: Send, stop: () => void) => void,
): void {
  reply.writeHead(200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
  });
  let sentAt = Date.now();
  let events = "";
  let isOver = false;
  const send: Send = (event, data) => {
    events += `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
  };
  const stop = (): void => {
    isOver = true;
  };
  const lookOnce = (): void => {
    look(send, stop);
    if (events === "" && Date.now() - sentAt > SILENT_MS) events = ": still here\n\n";
    // All in one piece, because writing takes longer than looking. A page that does not read is not
    // written to.
    if (events !== "" && reply.writableLength < MOST_BYTES) reply.write(events);
    if (events !== "") sentAt = Date.now();
    events = "";
    if (!isOver) return;
    leave();
    reply.end();
  };
  const leave = pulse.join(lookOnce);
  asked.on("close", leave);
  reply.on("error", leave);
  lookOnce();
}

/** The list of runs, then the rows that have changed. */
export function streamRuns(
  asked: IncomingMessage,
  reply: ServerResponse,
  pulse: Pulse,
  reader: RunReader,
): void {
  let before: readonly RunRow[] = [];
  let said = "";
  stream(asked, reply, pulse, (send) => {
    const list = reader.list();
    const { runs, problems } = list;
    const which = JSON.stringify([runs.map(({ id }) => id), problems]);
    const changed = runs.filter((row, i) => row !== before[i]);
    if (which !== said) send("runs", list);
    else if (changed.length > 0) send("rows", changed);
    before = runs;
    said = which;
  });
}

/** New metrics of a run, its state, and whether it is still there. */
export function streamRun(
  asked: IncomingMessage,
  reply: ServerResponse,
  pulse: Pulse,
  watched: {
    readonly root: string;
    readonly reader: RunReader;
    readonly id: string;
    readonly from: number;
    /** Throws if the run may not be read. */
    check(): void;
  },
): void {
  const { root, reader, id } = watched;
  let place: MetricsPlace | undefined;
  let before = "";
  let alarmsBefore = "[]";
  stream(asked, reply, pulse, (send, stop) => {
    try {
      watched.check();
      const folder = pathInside(root, id);
      place ??= placeAt(folder, watched.from);
      const { lines, damaged, place: next } = readMetricsFrom(folder, place, MOST_BYTES);
      const isOther = next.end < place.end || next.file !== place.file;
      // A resumed run has lost its last lines: the page reads it again from the start. Whoever does
      // that is also told of damaged ones.
      if (isOther || damaged.length > 0) send("again", {});
      else if (lines.length > 0) send("metrics", { lines, end: next.end });
      place = next;
      const row = reader.row(id);
      const now = JSON.stringify(row);
      if (now !== before) send("run", row);
      before = now;
      const alarms = readAlarms(folder, () => undefined).slice(-MOST_ALARMS);
      const alarmsNow = JSON.stringify(alarms);
      if (alarmsNow !== alarmsBefore) send("alarms", alarms);
      alarmsBefore = alarmsNow;
    } catch (error) {
      send("gone", { message: (error as Error).message });
      stop();
    }
  });
}
