/**
 * What changes, as server-sent events: one direction is all that is needed, a browser connects again
 * by itself, and no further dependency is. Files are looked at once a second; training notices
 * nothing of it.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { readAlarms } from "../runs/alarms-file.js";
import { readMetricsFrom } from "./metrics-table.js";
import type { RunReader } from "./run-rows.js";
import { pathInside } from "./safe-path.js";

const EVERY_MS = 1_000;
/** Pages that listen at once. */
export const MOST_LISTENERS = 64;
/** Bytes of metrics in one event. */
const MOST_BYTES = 2 ** 22;

/** Alarms that are shown: the latest. */
const MOST_ALARMS = 100;

/** Starts a stream; `look` is called at once and then regularly, until the page goes away. */
function stream(
  asked: IncomingMessage,
  reply: ServerResponse,
  everyMs: number,
  look: (send: (event: string, data: unknown) => void, stop: () => void) => void,
): void {
  reply.writeHead(200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
  });
  const send = (event: string, data: unknown): void => {
    // A page that does not read is not written to.
    if (reply.writableLength < MOST_BYTES)
      reply.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  };
  const stop = (): void => {
    clearInterval(timer);
    reply.end();
  };
  let beats = 0;
  const timer = setInterval(() => {
    look(send, stop);
    if (++beats % 15 === 0) reply.write(": still here\n\n");
  }, everyMs);
  asked.on("close", () => clearInterval(timer));
  reply.on("error", () => clearInterval(timer));
  look(send, stop);
}

/** The list of runs, whenever it has changed. */
export function streamRuns(asked: IncomingMessage, reply: ServerResponse, reader: RunReader): void {
  let before = "";
  stream(asked, reply, 2 * EVERY_MS, (send) => {
    const list = reader.list();
    const now = JSON.stringify(list);
    if (now !== before) send("runs", list);
    before = now;
  });
}

/** New metrics of a run, its state, and whether it is still there. */
export function streamRun(
  asked: IncomingMessage,
  reply: ServerResponse,
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
  let end = watched.from;
  let before = "";
  let alarmsBefore = "[]";
  stream(asked, reply, EVERY_MS, (send, stop) => {
    try {
      watched.check();
      const folder = pathInside(root, id);
      const row = reader.row(id);
      const part = readMetricsFrom(folder, end, MOST_BYTES);
      // A resumed run has lost its last lines: the page reads it again from the start.
      if (part.end < end) send("again", {});
      else if (part.lines.length > 0) send("metrics", { lines: part.lines, end: part.end });
      end = part.end;
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
