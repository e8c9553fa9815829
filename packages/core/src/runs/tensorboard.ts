/**
 * TensorBoard event files with the metrics of a run.
 *
 * A file is a sequence of TFRecords, each `length · crc(length) · bytes · crc(bytes)` with CRC-32C
 * masked as TensorFlow does it; the bytes are a protobuf `Event`, of which only the few fields used
 * here are written:
 *
 *   Event    1 wall_time: double   2 step: int64   3 file_version: string   5 summary   7
 * session_log
 *   Summary  1 value, repeated     Value  1 tag: string   2 simple_value: float
 *
 * A resumed run gets its own file, which starts by telling TensorBoard from which step on the
 * earlier files no longer hold.
 */
import { closeSync, mkdirSync, openSync, readdirSync, writeSync } from "node:fs";
import { join } from "node:path";
import { explainIo } from "../files/io-error.js";
import { readRegular } from "../files/regular-file.js";
import type { MetricsLine } from "./metrics-file.js";
import { RunError } from "./run-error.js";

/** An event file opened for appending; it is created with the first line. */
export interface EventWriter {
  append(line: MetricsLine): void;
  close(): void;
}

/**
 * Writes event files to a folder; `firstStep` is the first step of this writer, if not the start.
 */
export function openEventWriter(folder: string, firstStep?: number): EventWriter {
  let file: number | undefined;
  const open = (): number => {
    mkdirSync(folder, { recursive: true });
    const seconds = Math.floor(Date.now() / 1000);
    // TensorBoard reads the files of a folder in the order of their names.
    const name = `events.out.tfevents.${seconds}.pawl.${readdirSync(folder).length}`;
    const opened = openSync(join(folder, name), "wx");
    writeSync(opened, record(event(firstStep ?? 0, text(3, "brain.Event:2"))));
    if (firstStep !== undefined) {
      const start = message(7, field(1, 0), varint(1));
      writeSync(opened, record(event(firstStep, start)));
    }
    return opened;
  };
  return {
    append(line) {
      try {
        file ??= open();
        writeSync(file, record(event(stepOf(line), summary(line))));
      } catch (error) {
        throw new RunError(`could not record to ${explainIo(error, folder)}`, { cause: error });
      }
    },
    close() {
      if (file !== undefined) closeSync(file);
    },
  };
}

/** How many records the event files of a folder hold, and where they are damaged. */
export function checkEvents(folder: string): { records: number; problems: readonly string[] } {
  let records = 0;
  const problems = readdirSync(folder).flatMap((name) => {
    const bytes = readRegular(join(folder, name));
    for (let at = 0; at < bytes.length; records++) {
      const head = bytes.subarray(at, at + 8);
      const end = at + 12 + (head.length < 8 ? bytes.length : head.readUInt32LE());
      const isWhole =
        end + 4 <= bytes.length &&
        maskedCrc(head).equals(bytes.subarray(at + 8, at + 12)) &&
        maskedCrc(bytes.subarray(at + 12, end)).equals(bytes.subarray(end, end + 4));
      if (!isWhole)
        return `${join(folder, name)} is damaged at byte ${at}: TensorBoard shows nothing after that; metrics.jsonl has the same numbers`;
      at = end + 4;
    }
    return [];
  });
  return { records, problems };
}

/**
 * The step of a line: the number of updates done, because the line before the first update has
 * number −1.
 */
export function stepOf({ update = 0 }: MetricsLine): number {
  return update + 1;
}

function summary(line: MetricsLine): Buffer {
  const values = Object.entries(line)
    .filter(([name]) => name !== "update")
    // TensorBoard groups charts by what precedes a slash.
    .map(([name, value]) => message(1, text(1, name.replace(".", "/")), float(2, value)));
  return message(5, ...values);
}

function event(step: number, content: Buffer): Buffer {
  const wallTime = Buffer.alloc(8);
  wallTime.writeDoubleLE(Date.now() / 1000);
  return Buffer.concat([field(1, 1), wallTime, field(2, 0), varint(step), content]);
}

// Protobuf: a field starts with its number and wire type: 0 varint, 1 eight bytes, 2 length and
// bytes, 5 four bytes.
const field = (number: number, wireType: number): Buffer => varint(number * 8 + wireType);

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) + 0x80);
  return Buffer.from([...bytes, rest]);
}

function message(number: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([field(number, 2), varint(content.length), content]);
}

const text = (number: number, value: string): Buffer => message(number, Buffer.from(value));

function float(number: number, value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return Buffer.concat([field(number, 5), bytes]);
}

function record(bytes: Buffer): Buffer {
  const length = Buffer.alloc(8);
  length.writeUInt32LE(bytes.length);
  return Buffer.concat([length, maskedCrc(length), bytes, maskedCrc(bytes)]);
}

/** TensorFlow's mask: the CRC of data that itself contains CRCs would be weak. */
function maskedCrc(bytes: Buffer): Buffer {
  const crc = crc32c(bytes);
  const result = Buffer.alloc(4);
  result.writeUInt32LE((((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0);
  return result;
}

/** CRC-32C (Castagnoli), which Node's zlib does not have. */
export function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = TABLE[(crc ^ byte) & 0xff]! ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? 0x82f63b78 ^ (crc >>> 1) : crc >>> 1;
  return crc;
});
