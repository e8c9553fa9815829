/**
 * One append of a record file: a gzip member that carries its own length in gzip's "extra field"
 * (RFC 1952, 2.3.1.1) and, as every gzip member, the checksum and the length of its content.
 */
import { crc32, deflateRawSync, inflateRawSync } from "node:zlib";
import { INFLATED_TIMES, inflatedLimit } from "../files/inflate-limit.js";

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
