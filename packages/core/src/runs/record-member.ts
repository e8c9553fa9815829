/**
 * One append of a record file: a gzip member that carries its own length in gzip's "extra field"
 * (RFC 1952, 2.3.1.1) and, as every gzip member, the checksum and the length of its content.
 */

import { fstatSync, readSync } from "node:fs";
import { crc32, deflateRawSync, inflateRawSync } from "node:zlib";
import { INFLATED_TIMES, inflatedLimit } from "../files/inflate.js";
import { RunError } from "./run-error.js";

// A walk through a record file, from one whole member to the next.
//
// Bytes that are no whole member are a stretch of damage: it ends where the next whole member
// begins, so that damage never costs what follows it.

/** A stretch of a record file. */
export type Stretch = { readonly offset: number; readonly end: number } & (
  | { readonly state: "whole"; readonly text: string }
  /** Only its header was damaged; `member` is the whole of it with a right one. */
  | { readonly state: "mended"; readonly text: string; readonly member: Buffer }
  /** `torn`: an append that was cut off, or that a power cut left empty. */
  | { readonly state: "torn" | "damaged" }
);

/** At most this much is read to mend one member. */
const MENDED_BYTES = 2 ** 28;
const SCANNED_BYTES = 2 ** 20;
/** What all members together may inflate to beyond their limit: earlier versions had none. */
const SPARE_BYTES = 2 ** 28;
/** After this many beginnings that lead to nothing, no more are tried: each may inflate in vain. */
const MAX_FUTILE = 200;

/** The stretches of a file in order; a file without anything of ours is refused. */
export function* walkRecords(file: number, path: string): Generator<Stretch> {
  const size = fstatSync(file).size;
  let isOurs = false;
  let spare = SPARE_BYTES;
  const tries = { futile: 0 };
  for (let offset = 0; offset < size; ) {
    const found = memberAt(file, offset, size);
    if (found !== undefined) {
      isOurs = true;
      spare += INFLATED_TIMES * (found.end - offset) - found.text.length;
      if (spare < 0)
        throw new RunError(
          `${path}: its records inflate to more than ${INFLATED_TIMES} times their size, at byte ${offset}: pawl writes no such records, so nothing of it is trusted`,
        );
      yield { offset, ...found };
      offset = found.end;
      continue;
    }
    const end = nextMember(file, offset + 1, size, tries);
    const state = end === size ? tailState(file, offset, size) : "damaged";
    if (!isOurs && end === size && state === "damaged" && !startsLikeOurs(file))
      throw new RunError(
        `${path}: expected a record of this project at byte 0, found other bytes. The file was written by something else: move it away.`,
      );
    yield { offset, end, state };
    offset = end;
  }
}

function bytesAt(file: number, offset: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  let done = 0;
  for (let read = 1; done < length && read > 0; done += read)
    read = readSync(file, bytes, done, length - done, offset + done);
  return bytes.subarray(0, done);
}

function memberAt(file: number, offset: number, size: number) {
  if (size - offset <= HEADER_BYTES) return undefined;
  const length = statedLength(bytesAt(file, offset, HEADER_BYTES));
  if (length !== undefined && offset + length <= size) {
    const text = unpackMember(bytesAt(file, offset, length));
    if (text !== undefined) return { end: offset + length, state: "whole", text } as const;
  }
  const mended = mendMember(bytesAt(file, offset, Math.min(size - offset, MENDED_BYTES)));
  if (mended === undefined) return undefined;
  return { end: offset + mended.member.length, state: "mended", ...mended } as const;
}

/** Where the next whole member begins, or the end of the file. */
function nextMember(file: number, from: number, size: number, tries: { futile: number }): number {
  for (let start = from; start < size; start += SCANNED_BYTES) {
    // A mark may lie across the border of two pieces.
    const piece = bytesAt(
      file,
      start,
      Math.min(SCANNED_BYTES + MARK.length + MARK_AT, size - start),
    );
    for (let at = piece.indexOf(MARK); at >= 0; at = piece.indexOf(MARK, at + 1)) {
      const offset = start + at - MARK_AT;
      if (offset < from) continue;
      if (memberAt(file, offset, size) !== undefined) return offset;
      if (++tries.futile > MAX_FUTILE) return size;
    }
  }
  return size;
}

/** What the unreadable end of a file is. */
function tailState(file: number, offset: number, size: number): "torn" | "damaged" {
  if (size - offset <= HEADER_BYTES) return "torn";
  const length = statedLength(bytesAt(file, offset, HEADER_BYTES));
  if (length !== undefined && offset + length > size) return "torn";
  // A power cut can leave blocks of zeros where data was not yet written.
  return bytesAt(file, size - 1, 1)[0] === 0 && endsInZeros(file, offset, size)
    ? "torn"
    : "damaged";
}

/** The shortest run of zeros that data of ours does not have. */
const ZEROS = 64;

function endsInZeros(file: number, offset: number, size: number): boolean {
  const length = Math.min(ZEROS, size - offset);
  return bytesAt(file, size - length, length).every((byte) => byte === 0);
}

function startsLikeOurs(file: number): boolean {
  const first = bytesAt(file, 0, HEADER_BYTES);
  return first.length === HEADER_BYTES && resemblesHeader(first);
}

export const HEADER_BYTES = 20;
const TRAILER_BYTES = 8;
/** Recording must not slow down training: level 3 is twice as fast as the default 6. */
const COMPRESSION_LEVEL = 3;
/** Longer than any member we write: a larger length is damaged. */
const MAX_MEMBER_BYTES = 2 ** 30;
/** A string of JavaScript cannot be longer. */
const MAX_CONTENT_BYTES = 2 ** 29 - 24;

/** How much to inflate: what is damaged, or crafted, may be endless. */
const within = (body: Buffer) => ({
  maxOutputLength: Math.min(MAX_CONTENT_BYTES, inflatedLimit(body.length)),
});

/** What all our headers have in common, with the positions of what varies. */
const HEADER = Buffer.alloc(HEADER_BYTES);
HEADER.writeUInt32BE(0x1f8b0804, 0); // gzip, deflate, with an extra field
HEADER.writeUInt8(255, 9); // made by no particular operating system
HEADER.writeUInt16LE(8, 10); // length of the extra field
HEADER.write("PW", 12, "latin1");
HEADER.writeUInt16LE(4, 14);
const LENGTH_AT = 16;

/** The bytes by which a member is found again after damage. */
export const MARK = HEADER.subarray(10, LENGTH_AT);
/** Where they are in a member. */
export const MARK_AT = 10;

/** Packs a text. */
export function packMember(text: string): Buffer {
  const content = Buffer.from(text);
  const deflated = deflateRawSync(content, { level: COMPRESSION_LEVEL });
  // What readers take for a bomb is stored as it is.
  const isBomb = content.length > INFLATED_TIMES * deflated.length;
  const body = isBomb ? deflateRawSync(content, { level: 0 }) : deflated;
  return wrap(body, crc32(content), content.length);
}

function wrap(body: Buffer, checksum: number, length: number): Buffer {
  const member = Buffer.alloc(HEADER_BYTES + body.length + TRAILER_BYTES);
  HEADER.copy(member);
  member.writeUInt32LE(member.length, LENGTH_AT);
  body.copy(member, HEADER_BYTES);
  member.writeUInt32LE(checksum, member.length - 8);
  member.writeUInt32LE(length % 2 ** 32, member.length - 4);
  return member;
}

/** The length that a header states; undefined if no member of ours can have it. */
export function statedLength(header: Buffer): number | undefined {
  if (!header.subarray(MARK_AT, LENGTH_AT).equals(MARK)) return undefined;
  const length = header.readUInt32LE(LENGTH_AT);
  return length > HEADER_BYTES + TRAILER_BYTES && length < MAX_MEMBER_BYTES ? length : undefined;
}

/** Whether the first bytes of a file can be a header of ours, even if a few of them were damaged. */
export function resemblesHeader(bytes: Buffer): boolean {
  return bytes.readUInt16BE(0) === 0x1f8b || bytes.toString("latin1", 12, 14) === "PW";
}

/** The member's text, or undefined if it does not match its checksum. */
export function unpackMember(member: Buffer): string | undefined {
  const body = member.subarray(HEADER_BYTES, member.length - TRAILER_BYTES);
  try {
    return checked(inflateRawSync(body, within(body)), member);
  } catch {
    return undefined;
  }
}

/**
 * The member at the beginning of these bytes if only its header is damaged: compressed data says
 * itself where it ends. Returned with a whole header, and with the number of bytes it takes up.
 */
export function mendMember(
  bytes: Buffer,
): { readonly member: Buffer; readonly text: string } | undefined {
  if (bytes.length <= HEADER_BYTES + TRAILER_BYTES) return undefined;
  try {
    // With `info` Node also returns the engine, which knows how many bytes it used.
    const body = bytes.subarray(HEADER_BYTES);
    const { buffer, engine } = inflateRawSync(body, {
      ...within(body),
      info: true,
    }) as unknown as {
      readonly buffer: Buffer;
      readonly engine: { readonly bytesWritten: number };
    };
    const end = HEADER_BYTES + engine.bytesWritten + TRAILER_BYTES;
    const text = end > bytes.length ? undefined : checked(buffer, bytes.subarray(0, end));
    if (text === undefined) return undefined;
    const packed = bytes.subarray(HEADER_BYTES, end - TRAILER_BYTES);
    // The limit was that of all the bytes that might belong to it.
    if (buffer.length > inflatedLimit(packed.length)) return undefined;
    return { member: wrap(packed, bytes.readUInt32LE(end - 8), buffer.length), text };
  } catch {
    return undefined;
  }
}

function checked(content: Buffer, member: Buffer): string | undefined {
  const isWhole =
    crc32(content) === member.readUInt32LE(member.length - 8) &&
    content.length % 2 ** 32 === member.readUInt32LE(member.length - 4);
  return isWhole ? content.toString("utf8") : undefined;
}
