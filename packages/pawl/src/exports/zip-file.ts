/**
 * A zip archive written entry by entry: only the list of entries is held in memory. Archives with
 * more than 65,535 entries or 4 GB get the records of zip64.
 */
import { crc32, deflateRawSync } from "node:zlib";
import { writeFileAtomically, writeFully } from "@pawl/core/files/atomic-file.js";

/** One file of the archive. */
export interface ZipEntry {
  readonly name: string;
  readonly content: string;
}

/** Where an entry lies, for the directory at the end. */
interface Place {
  readonly name: Buffer;
  readonly crc: number;
  readonly packed: number;
  readonly size: number;
  readonly offset: number;
}

const WIDE = 0xffffffff;
const MANY = 0xffff;
/** Names are in UTF-8. */
const FLAGS = 0x0800;
const DEFLATE = 8;
/** 1 January 1980, the first day that the format knows: the same episodes give the same bytes. */
const DATE = 0x0021;

/** Writes the entries to a file that appears when it is complete. */
export async function writeZip(file: string, entries: Iterable<ZipEntry>): Promise<void> {
  await writeFileAtomically(file, async (handle) => {
    const places: Place[] = [];
    let offset = 0;
    const append = async (...parts: readonly Buffer[]): Promise<void> => {
      for (const part of parts) {
        await writeFully(handle, part);
        offset += part.length;
      }
    };
    for (const { name, content } of entries) {
      const bytes = Buffer.from(content);
      const packed = deflateRawSync(bytes);
      const place = {
        name: Buffer.from(name),
        crc: crc32(bytes),
        packed: packed.length,
        size: bytes.length,
        offset,
      };
      places.push(place);
      await append(localHeader(place), place.name, packed);
    }
    const start = offset;
    for (const place of places) await append(...directoryEntry(place));
    await append(...ending(places.length, start, offset - start));
  });
}

function localHeader({ name, crc, packed, size }: Place): Buffer {
  const header = Buffer.alloc(30);
  header.writeUInt32LE(0x04034b50, 0);
  header.writeUInt16LE(20, 4);
  writeFacts(header, 6, { name, crc, packed, size });
  return header;
}

/** The fields that an entry's own header and the directory share. */
function writeFacts(
  header: Buffer,
  at: number,
  { name, crc, packed, size }: Omit<Place, "offset">,
): void {
  header.writeUInt16LE(FLAGS, at);
  header.writeUInt16LE(DEFLATE, at + 2);
  header.writeUInt16LE(DATE, at + 6);
  header.writeUInt32LE(crc, at + 8);
  header.writeUInt32LE(packed, at + 12);
  header.writeUInt32LE(size, at + 16);
  header.writeUInt16LE(name.length, at + 20);
}

function directoryEntry(place: Place): readonly Buffer[] {
  const far = place.offset >= WIDE;
  const header = Buffer.alloc(46);
  header.writeUInt32LE(0x02014b50, 0);
  header.writeUInt16LE(45, 4);
  header.writeUInt16LE(far ? 45 : 20, 6);
  writeFacts(header, 8, place);
  header.writeUInt16LE(far ? 12 : 0, 30);
  header.writeUInt32LE(far ? WIDE : place.offset, 42);
  if (!far) return [header, place.name];
  const extra = Buffer.alloc(12);
  extra.writeUInt16LE(1, 0);
  extra.writeUInt16LE(8, 2);
  extra.writeBigUInt64LE(BigInt(place.offset), 4);
  return [header, place.name, extra];
}

function ending(count: number, start: number, size: number): readonly Buffer[] {
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(Math.min(count, MANY), 8);
  end.writeUInt16LE(Math.min(count, MANY), 10);
  end.writeUInt32LE(Math.min(size, WIDE), 12);
  end.writeUInt32LE(Math.min(start, WIDE), 16);
  if (count < MANY && start < WIDE && size < WIDE) return [end];
  const wide = Buffer.alloc(56);
  wide.writeUInt32LE(0x06064b50, 0);
  wide.writeBigUInt64LE(44n, 4);
  wide.writeUInt16LE(45, 12);
  wide.writeUInt16LE(45, 14);
  wide.writeBigUInt64LE(BigInt(count), 24);
  wide.writeBigUInt64LE(BigInt(count), 32);
  wide.writeBigUInt64LE(BigInt(size), 40);
  wide.writeBigUInt64LE(BigInt(start), 48);
  const locator = Buffer.alloc(20);
  locator.writeUInt32LE(0x07064b50, 0);
  locator.writeBigUInt64LE(BigInt(start + size), 8);
  locator.writeUInt32LE(1, 16);
  return [wide, locator, end];
}
