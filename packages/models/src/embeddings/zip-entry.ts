/**
 * Single files out of a ZIP archive (a jar, a wheel) in memory. The archive's own words on sizes are not
 * trusted: the caller says how long a file is, and no more than that is unpacked.
 */
import { promisify } from "node:util";
import { inflateRaw } from "node:zlib";

const END = 0x06054b50;
const LISTED = 0x02014b50;
const LOCAL = 0x04034b50;
const END_BYTES = 22;
const LISTED_BYTES = 46;
const LOCAL_BYTES = 30;
const MOST_COMMENT = 0xffff;

const inflate = promisify(inflateRaw);

/** The file of that name, which must be `size` bytes long; throws what is wrong otherwise. */
export async function readZipEntry(archive: Buffer, name: string, size: number): Promise<Buffer> {
  const entry = findEntry(archive, name);
  if (entry === undefined) throw new Error(`the archive has no ${name}`);
  const { method, packedBytes, local } = entry;
  if (read32(archive, local, LOCAL_BYTES) !== LOCAL)
    throw new Error(`the archive has no ${name} where its list says`);
  const from =
    local + LOCAL_BYTES + archive.readUInt16LE(local + 26) + archive.readUInt16LE(local + 28);
  const packed = archive.subarray(from, from + packedBytes);
  if (packed.length !== packedBytes) throw new Error(`the archive ends inside ${name}`);
  if (method !== 0 && method !== 8)
    throw new Error(`${name} is packed by method ${method}; expected 0 (stored) or 8 (deflate)`);
  const bytes = method === 0 ? packed : await inflate(packed, { maxOutputLength: size });
  if (bytes.length !== size)
    throw new Error(`${name}: expected ${size} bytes, found ${bytes.length}`);
  return bytes;
}

interface Entry {
  readonly method: number;
  readonly packedBytes: number;
  readonly local: number;
}

function findEntry(archive: Buffer, name: string): Entry | undefined {
  const end = findEnd(archive);
  let at = archive.readUInt32LE(end + 16);
  for (let left = archive.readUInt16LE(end + 10); left > 0; left--) {
    if (read32(archive, at, LISTED_BYTES) !== LISTED)
      throw new Error("the archive's list is damaged");
    const nameBytes = archive.readUInt16LE(at + 28);
    const nameAt = at + LISTED_BYTES;
    if (archive.toString("utf8", nameAt, nameAt + nameBytes) === name) {
      return {
        method: archive.readUInt16LE(at + 10),
        packedBytes: archive.readUInt32LE(at + 20),
        local: archive.readUInt32LE(at + 42),
      };
    }
    at = nameAt + nameBytes + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32);
  }
  return undefined;
}

/** Where the record at the end stands; only a comment may follow it. */
function findEnd(archive: Buffer): number {
  const last = archive.length - END_BYTES;
  for (let at = last; at >= Math.max(0, last - MOST_COMMENT); at--) {
    if (archive.readUInt32LE(at) === END) return at;
  }
  throw new Error("not a ZIP archive");
}

/** The four bytes there; 0, which no record begins with, if a record of that length does not fit. */
const read32 = (archive: Buffer, at: number, length: number): number =>
  at + length <= archive.length ? archive.readUInt32LE(at) : 0;
