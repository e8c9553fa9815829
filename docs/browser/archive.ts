/** A folder's files as a tar archive (POSIX ustar), for downloads. */

const BLOCK = 512;

/** One archive of files whose names are shorter than a hundred bytes. */
export function tarOf(files: readonly (readonly [name: string, bytes: Uint8Array])[]) {
  const padded = (size: number): number => Math.ceil(size / BLOCK) * BLOCK;
  const total = files.reduce((sum, [, { length }]) => sum + BLOCK + padded(length), 2 * BLOCK);
  const archive = new Uint8Array(total);
  const text = new TextEncoder();
  let at = 0;
  for (const [name, bytes] of files) {
    const put = (value: string, offset: number): void =>
      archive.set(text.encode(value), at + offset);
    const octal = (value: number, digits: number): string =>
      value.toString(8).padStart(digits, "0");
    put(name, 0);
    put(octal(0o644, 7), 100);
    for (const offset of [108, 116]) put(octal(0, 7), offset);
    put(octal(bytes.length, 11), 124);
    put(octal(Math.floor(Date.now() / 1000), 11), 136);
    // The checksum counts itself as blanks.
    put(" ".repeat(8), 148);
    put("0", 156);
    put("ustar\u000000", 257);
    const sum = archive.subarray(at, at + BLOCK).reduce((a, b) => a + b, 0);
    put(`${octal(sum, 6)}\0 `, 148);
    archive.set(bytes, at + BLOCK);
    at += BLOCK + padded(bytes.length);
  }
  return archive;
}
