/**
 * A walk through a record file, from one whole member to the next.
 *
 * Bytes that are no whole member are a stretch of damage: it ends where the next whole member
 * begins, so that damage never costs what follows it.
 */
import { fstatSync, readSync } from "node:fs";
import { INFLATED_TIMES } from "../files/inflate-limit.js";
import {
  HEADER_BYTES,
  MARK,
  MARK_AT,
  mendMember,
  resemblesHeader,
  statedLength,
  unpackMember,
} from "./record-member.js";
import { RunError } from "./run-error.js";

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
