import { deflateRawSync } from "node:zlib";

/** A zip archive of these members, the first of them packed. */
export function zipOf(members: Readonly<Record<string, string | Buffer>>): Buffer {
  const bodies: Buffer[] = [];
  const entries: Buffer[] = [];
  for (const [name, content] of Object.entries(members)) {
    const packed = entries.length === 0;
    const title = Buffer.from(name);
    const data = packed ? deflateRawSync(content) : Buffer.from(content);
    const local = Buffer.alloc(30);
    local.writeUInt32LE(0x04034b50, 0);
    local.writeUInt16LE(title.length, 26);
    const entry = Buffer.alloc(46);
    entry.writeUInt32LE(0x02014b50, 0);
    entry.writeUInt16LE(packed ? 8 : 0, 10);
    entry.writeUInt32LE(data.length, 20);
    entry.writeUInt16LE(title.length, 28);
    entry.writeUInt32LE(Buffer.concat(bodies).length, 42);
    bodies.push(local, title, data);
    entries.push(entry, title);
  }
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(Object.keys(members).length, 10);
  end.writeUInt32LE(Buffer.concat(bodies).length, 16);
  return Buffer.concat([...bodies, ...entries, end]);
}
