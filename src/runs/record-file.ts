/**
 * Append-only compressed records: gzip-compressed JSON lines that survive truncation anywhere.
 *
 * Each append writes one whole gzip member with one or more lines. A member's header carries its
 * own length in gzip's "extra field" (RFC 1952, 2.3.1.1), so a reader can walk from member to
 * member and tell an incomplete one from a complete one without unpacking what came before. `zcat`
 * reads the file as it is.
 */
import {
  closeSync,
  fdatasyncSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  writeSync,
} from "node:fs";
import { crc32, deflateRawSync, inflateRawSync } from "node:zlib";
import { explainIo, RunError } from "./run-error.js";

const HEADER_BYTES = 20;
const TRAILER_BYTES = 8;
/** Recording must not slow down training: level 3 is twice as fast as the default 6. */
const COMPRESSION_LEVEL = 3;
/** Longer than any member we write: a larger length is garbage, not an incomplete record. */
const MAX_MEMBER_BYTES = 2 ** 30;
/** A power cut may lose this much; a killed process loses nothing that was appended. */
const SYNC_EVERY_MS = 1_000;

/** Something unreadable in a record file; the records around it are still read. */
export interface RecordProblem {
  readonly path: string;
  /** `torn`: the last append was cut off. `damaged`: bytes were changed. */
  readonly kind: "torn" | "damaged";
  readonly offset: number;
  readonly message: string;
}

/** A record file opened for appending. */
export interface RecordWriter {
  /** Writes the records as one unit: after a crash either all of them are there, or none. */
  append(records: readonly unknown[]): void;
  close(): void;
}

/** Opens a record file for appending; an incomplete last append is cut off and reported. */
export function openRecordWriter(
  path: string,
  onProblem: (problem: RecordProblem) => void,
): RecordWriter {
  const file = openForAppend(path);
  let end = 0;
  for (const member of members(file, path, onProblem)) end = member.offset + member.bytes.length;
  // Whatever follows the last complete member is the incomplete append that was just reported.
  if (fstatSync(file).size > end) ftruncateSync(file, end);
  let lastSync = Date.now();
  return {
    append(records) {
      if (records.length === 0) return;
      const member = pack(records.map((record) => `${JSON.stringify(record)}\n`).join(""));
      try {
        for (let done = 0; done < member.length; ) {
          done += writeSync(file, member, done, member.length - done, end + done);
        }
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
      fdatasyncSync(file);
      closeSync(file);
    },
  };
}

function openForAppend(path: string): number {
  try {
    // "a+" creates the file without truncating it, but appends every write; so reopen as "r+".
    closeSync(openSync(path, "a+"));
    return openSync(path, "r+");
  } catch (error) {
    throw new RunError(`could not open ${explainIo(error, path)}`, { cause: error });
  }
}

/** Truncates a record file before the first append that holds a record that is not to be kept. */
export function cutRecords(path: string, keep: (record: unknown) => boolean): void {
  const file = openForAppend(path);
  try {
    let end = 0;
    for (const { offset, bytes } of members(file, path, () => undefined)) {
      const lines = unpack(bytes)?.split("\n").filter(Boolean) ?? [];
      if (!lines.every((line) => keep(JSON.parse(line)))) break;
      end = offset + bytes.length;
    }
    ftruncateSync(file, end);
  } finally {
    closeSync(file);
  }
}

/** Reads every complete record, oldest first, and reports what could not be read. */
export function* readRecords(
  path: string,
  onProblem: (problem: RecordProblem) => void,
): Generator<unknown> {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (error) {
    throw new RunError(`could not read ${explainIo(error, path)}`, { cause: error });
  }
  try {
    for (const { offset, bytes } of members(file, path, onProblem)) {
      const text = unpack(bytes);
      if (text === undefined) {
        onProblem({
          path,
          kind: "damaged",
          offset,
          message: `${path}: the record at byte ${offset} is damaged (checksum mismatch); left out`,
        });
        continue;
      }
      for (const line of text.split("\n")) if (line !== "") yield JSON.parse(line);
    }
  } finally {
    closeSync(file);
  }
}

/** The complete members of a file, in order; stops at the first incomplete one and reports it. */
function* members(
  file: number,
  path: string,
  onProblem: (problem: RecordProblem) => void,
): Generator<{ offset: number; bytes: Buffer }> {
  const size = fstatSync(file).size;
  const header = Buffer.alloc(HEADER_BYTES);
  for (let offset = 0; offset < size; ) {
    const length =
      readSync(file, header, 0, HEADER_BYTES, offset) === HEADER_BYTES ? memberLength(header) : 0;
    if (length === undefined) {
      throw new RunError(
        `${path}: expected a record of this project at byte ${offset}, found other bytes. ` +
          "The file was written by something else or damaged; everything before that byte is intact.",
      );
    }
    if (length === 0 || offset + length > size) {
      onProblem({
        path,
        kind: "torn",
        offset,
        message: `${path}: the last record was cut off at byte ${offset} (${size - offset} bytes); left out`,
      });
      return;
    }
    const bytes = Buffer.alloc(length);
    readSync(file, bytes, 0, length, offset);
    yield { offset, bytes };
    offset += length;
  }
}

/** The member's length from its header, or undefined if this is not one of our headers. */
function memberLength(header: Buffer): number | undefined {
  const ours = header.readUInt32BE(0) === 0x1f8b0804 && header.toString("latin1", 12, 14) === "PW";
  const length = header.readUInt32LE(16);
  return ours && length > HEADER_BYTES + TRAILER_BYTES && length < MAX_MEMBER_BYTES
    ? length
    : undefined;
}

function pack(text: string): Buffer {
  const content = Buffer.from(text);
  const body = deflateRawSync(content, { level: COMPRESSION_LEVEL });
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32BE(0x1f8b0804, 0); // gzip, deflate, with an extra field
  header.writeUInt8(255, 9); // made by no particular operating system
  header.writeUInt16LE(8, 10); // length of the extra field
  header.write("PW", 12, "latin1");
  header.writeUInt16LE(4, 14);
  header.writeUInt32LE(HEADER_BYTES + body.length + TRAILER_BYTES, 16);
  const trailer = Buffer.alloc(TRAILER_BYTES);
  trailer.writeUInt32LE(crc32(content), 0);
  trailer.writeUInt32LE(content.length % 2 ** 32, 4);
  return Buffer.concat([header, body, trailer]);
}

/** The member's text, or undefined if it does not match its checksum. */
function unpack(member: Buffer): string | undefined {
  const body = member.subarray(HEADER_BYTES, member.length - TRAILER_BYTES);
  let content: Buffer;
  try {
    content = inflateRawSync(body);
  } catch {
    return undefined;
  }
  return crc32(content) === member.readUInt32LE(member.length - TRAILER_BYTES)
    ? content.toString("utf8")
    : undefined;
}
