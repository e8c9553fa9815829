/**
 * Append-only compressed records: gzip-compressed JSON lines that survive truncation and damage
 * anywhere.
 *
 * Each append writes one whole gzip member with one or more lines (record-member.ts), so a reader
 * can tell whole ones from others and find the next one after damage (record-member.ts). Only the end
 * of a file that was being written is ever cut off; what is damaged elsewhere is skipped, and kept
 * in a file beside it when the file is written to again. `zcat` reads the file as it is.
 */
import {
  closeSync,
  existsSync,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readSync,
  renameSync,
  writeSync,
} from "node:fs";
import { explainIo } from "../files/io-error.js";
import { openRegular } from "../files/regular-file.js";
import { packMember, type Stretch, walkRecords } from "./record-member.js";
import { RunError } from "./run-error.js";

/** A power cut may lose this much; a killed process loses nothing that was appended. */
const SYNC_EVERY_MS = 1_000;

/** Something unreadable in a record file; the records around it are still read. */
export interface RecordProblem {
  readonly path: string;
  /** `torn`: the last append was cut off. `damaged`: bytes were changed. `mended`: nothing is lost. */
  readonly kind: "torn" | "damaged" | "mended";
  readonly offset: number;
  readonly message: string;
}

/** A record file opened for appending. */
export interface RecordWriter {
  /** Writes the records as one unit: after a crash either all of them are there, or none. */
  append(records: readonly unknown[]): void;
  close(): void;
}

/**
 * Opens a record file for appending. An incomplete last append is cut off, and so is everything
 * from the first append whose records are not to be kept. Damaged stretches before that are moved
 * into files beside it. All of it is reported.
 */
export function openRecordWriter(
  path: string,
  onProblem: (problem: RecordProblem) => void,
  keep: (record: unknown) => boolean = () => true,
  /** Into a new file, so that a process that still has this one open writes to nobody's. */
  anew = false,
): RecordWriter {
  let file = openForAppend(path);
  const { end: kept, bad } = surveyed(file, path, onProblem, keep);
  let end = kept;
  if (bad.length > 0 || anew) {
    end = rewrite(file, path, bad, kept, onProblem);
    closeSync(file);
    file = openForAppend(path);
  } else if (fstatSync(file).size > end) ftruncateSync(file, end);
  let lastSync = Date.now();
  return {
    append(records) {
      if (records.length === 0) return;
      requirePresent(file, path);
      const member = packMember(records.map((record) => `${JSON.stringify(record)}\n`).join(""));
      try {
        writeAll(file, member, end);
      } catch (error) {
        ftruncateSync(file, end);
        throw new RunError(
          `could not record to ${explainIo(error, path)}. What was recorded before is safe.`,
          { cause: error },
        );
      }
      end += member.length;
      if (Date.now() - lastSync >= SYNC_EVERY_MS) {
        fdatasyncSync(file);
        lastSync = Date.now();
      }
    },
    close() {
      try {
        fdatasyncSync(file);
        requirePresent(file, path);
      } finally {
        closeSync(file);
      }
    },
  };
}

/** A deleted file can still be written to, but nobody will ever read it. */
function requirePresent(file: number, path: string): void {
  if (fstatSync(file).nlink === 0 || !existsSync(path))
    throw new RunError(
      `${path} was deleted while it was being written: nothing is recorded any more. Start again in another folder.`,
    );
}

function openForAppend(path: string): number {
  try {
    if (existsSync(path)) closeSync(openRegular(path));
    // "a+" creates the file without truncating it, but appends every write; so reopen as "r+".
    closeSync(openSync(path, "a+"));
    return openSync(path, "r+");
  } catch (error) {
    throw new RunError(`could not open ${explainIo(error, path)}`, { cause: error });
  }
}

function writeAll(file: number, bytes: Buffer, at: number): void {
  for (let done = 0; done < bytes.length; )
    done += writeSync(file, bytes, done, bytes.length - done, at + done);
}

/** Where the part to keep ends, and what in it cannot stay as it is. */
function surveyed(
  file: number,
  path: string,
  onProblem: (problem: RecordProblem) => void,
  keep: (record: unknown) => boolean,
): { readonly end: number; readonly bad: readonly Stretch[] } {
  const bad: Stretch[] = [];
  let end = 0;
  for (const stretch of walkRecords(file, path)) {
    if (stretch.state === "torn") {
      onProblem(problemOf(path, stretch));
      break;
    }
    if ("text" in stretch) {
      const verdicts = linesOf(path, stretch).map(keep);
      if (verdicts.includes(false)) {
        // An append is an update's: a border inside it means that updates are counted wrongly.
        if (verdicts.includes(true))
          throw new RunError(
            `${path}: the settings in manifest.json do not fit these records: the ones to keep end in the middle of an update, at byte ${stretch.offset}. Nothing was changed. Restore the manifest as it was.`,
          );
        break;
      }
    }
    if (stretch.state !== "whole") bad.push(stretch);
    end = stretch.end;
  }
  return { end, bad };
}

/** Refuses records that a writer with these to keep would refuse; changes nothing. */
export function checkRecords(path: string, keep: (record: unknown) => boolean): void {
  const file = openRegular(path);
  try {
    surveyed(file, path, () => undefined, keep);
  } finally {
    closeSync(file);
  }
}

/** Writes the file anew without its bad stretches, which are kept in files beside it. */
function rewrite(
  file: number,
  path: string,
  bad: readonly Stretch[],
  end: number,
  onProblem: (problem: RecordProblem) => void,
): number {
  const draft = `${path}.mending`;
  const into = openSync(draft, "w");
  let written = 0;
  const add = (bytes: Buffer): void => {
    writeAll(into, bytes, written);
    written += bytes.length;
  };
  try {
    let from = 0;
    for (const stretch of bad) {
      copy(file, from, stretch.offset, add);
      from = stretch.end;
      if (stretch.state === "mended") {
        onProblem(problemOf(path, stretch));
        add(stretch.member);
        continue;
      }
      const aside = `${path}.damaged-${stretch.offset}`;
      const kept = openSync(aside, "w");
      let at = 0;
      copy(file, stretch.offset, stretch.end, (bytes) => {
        writeAll(kept, bytes, at);
        at += bytes.length;
      });
      fsyncSync(kept);
      closeSync(kept);
      onProblem(problemOf(path, stretch, `moved to ${aside}`));
    }
    copy(file, from, end, add);
    fsyncSync(into);
  } catch (error) {
    throw new RunError(`could not mend ${explainIo(error, path)}. It was left as it was.`, {
      cause: error,
    });
  } finally {
    closeSync(into);
  }
  renameSync(draft, path);
  return written;
}

function copy(file: number, from: number, to: number, into: (bytes: Buffer) => void): void {
  const buffer = Buffer.alloc(2 ** 20);
  for (let at = from; at < to; ) {
    const read = readSync(file, buffer, 0, Math.min(buffer.length, to - at), at);
    if (read === 0) return;
    into(buffer.subarray(0, read));
    at += read;
  }
}

/** Reads every whole record, oldest first, and reports what could not be read. */
export function* readRecords(
  path: string,
  onProblem: (problem: RecordProblem) => void,
): Generator<unknown> {
  let file: number;
  try {
    file = openRegular(path);
  } catch (error) {
    throw new RunError(`could not read ${explainIo(error, path)}`, { cause: error });
  }
  try {
    for (const stretch of walkRecords(file, path)) {
      if (stretch.state !== "whole") onProblem(problemOf(path, stretch));
      if ("text" in stretch) yield* linesOf(path, stretch);
    }
  } finally {
    closeSync(file);
  }
}

function linesOf(path: string, { offset, text }: Extract<Stretch, { text: string }>): unknown[] {
  try {
    return text.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)]));
  } catch (error) {
    throw new RunError(
      `${path}: the record at byte ${offset} is not JSON, though its checksum is right: another program wrote it`,
      { cause: error },
    );
  }
}

function problemOf(
  path: string,
  { state, offset, end }: Stretch,
  done = "left out",
): RecordProblem {
  const size = `${(end - offset).toLocaleString("en-GB")} bytes`;
  if (state === "mended") {
    const message = `${path}: the header of the record at byte ${offset} is damaged; its content is whole and was read`;
    return { path, kind: "mended", offset, message };
  }
  if (state === "torn") {
    const message = `${path}: the last record was cut off at byte ${offset} (${size}); left out`;
    return { path, kind: "torn", offset, message };
  }
  const message = `${path}: the records from byte ${offset} on (${size}) are damaged (checksum mismatch); ${done}`;
  return { path, kind: "damaged", offset, message };
}
