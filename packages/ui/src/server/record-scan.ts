/**
 * Walks a record from a given byte on, without holding up the server: what is read at a time is
 * bounded, and other requests are answered in between.
 */
import type { FileHandle } from "node:fs/promises";
import { setImmediate as otherRequests } from "node:timers/promises";
import { openRegularHandle } from "@pawl/core/files/regular-file.js";
import { HEADER_BYTES, statedLength, unpackMember } from "@pawl/core/runs/record-member.js";

/** A complete gzip member of a record. */
export interface ScannedMember {
  readonly offset: number;
  readonly length: number;
  /** Its checksum and length, by which a rewritten one is recognised. */
  readonly trailer: string;
  /** Its lines; undefined if it is damaged. */
  readonly lines: readonly string[] | undefined;
}

/** Bytes that are read at once. */
const BLOCK = 2 ** 22;

/** The complete members from a byte on; ends at the first incomplete one. */
export async function* scanMembers(path: string, from: number): AsyncGenerator<ScannedMember> {
  const file = await openRegularHandle(path);
  try {
    const { size } = await file.stat();
    let offset = from;
    // One buffer for all blocks: new ones would pile up until they are collected.
    let buffer = Buffer.allocUnsafe(Math.min(BLOCK, Math.max(HEADER_BYTES, size - from)));
    let block: Buffer = buffer.subarray(0, 0);
    let blockAt = from;
    const bytes = async (length: number): Promise<Buffer | undefined> => {
      if (offset + length > size) return undefined;
      if (offset < blockAt || offset + length > blockAt + block.length) {
        blockAt = offset;
        if (length > buffer.length) buffer = Buffer.allocUnsafe(length);
        block = await readInto(buffer, file, offset);
      }
      const start = offset - blockAt;
      const part = block.subarray(start, start + length);
      return part.length === length ? part : undefined;
    };
    while (offset < size) {
      const header = await bytes(HEADER_BYTES);
      if (header === undefined) return;
      const length = statedLength(header);
      if (length === undefined)
        throw new Error(
          `expected a record of this project at byte ${offset}, found other bytes; the episodes before it are shown`,
        );
      const member = await bytes(length);
      if (member === undefined) return;
      const lines = unpackMember(member)?.split("\n").filter(Boolean);
      yield { offset, length, trailer: member.subarray(-8).toString("hex"), lines };
      offset += length;
      await otherRequests();
    }
  } finally {
    await file.close();
  }
}

/** The lines of the member at a place, as the index has it; undefined if it is not there any more. */
export async function readMember(
  path: string,
  offset: number,
  length: number,
): Promise<readonly string[] | undefined> {
  const file = await openRegularHandle(path);
  try {
    const member = await readAt(file, offset, length);
    if (member.length < length || statedLength(member) !== length) return undefined;
    return unpackMember(member)?.split("\n").filter(Boolean);
  } finally {
    await file.close();
  }
}

/** The checksum of the member that ends at a byte; undefined if the file is shorter. */
export async function trailerBefore(path: string, end: number): Promise<string | undefined> {
  const file = await openRegularHandle(path);
  try {
    const bytes = await readAt(file, end - 8, 8);
    return bytes.length === 8 ? bytes.toString("hex") : undefined;
  } finally {
    await file.close();
  }
}

const readAt = (file: FileHandle, offset: number, length: number): Promise<Buffer> =>
  readInto(Buffer.allocUnsafe(length), file, offset);

/** Fills the buffer as far as the file goes; what was read. */
async function readInto(buffer: Buffer, file: FileHandle, offset: number): Promise<Buffer> {
  let done = 0;
  while (done < buffer.length) {
    const { bytesRead } = await file.read(buffer, done, buffer.length - done, offset + done);
    if (bytesRead === 0) break;
    done += bytesRead;
  }
  return buffer.subarray(0, done);
}
