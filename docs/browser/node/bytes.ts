/** `node:crypto`, `node:zlib` and `node:util` as far as runs and their pages need them. */
import {
  deflateSync as deflateRaw,
  gunzipSync as gunzip,
  inflateSync as inflateRaw,
  zlibSync,
} from "fflate";

type Bytes = Uint8Array | string;

const bytesOf = (data: Bytes): Uint8Array => (typeof data === "string" ? Buffer.from(data) : data);

export const randomBytes = (length: number): Buffer =>
  Buffer.from(crypto.getRandomValues(new Uint8Array(length)));
export const randomUUID = (): string => crypto.randomUUID();

export function timingSafeEqual(a: Uint8Array, b: Uint8Array): boolean {
  let difference = a.length ^ b.length;
  for (const [i, byte] of a.entries()) difference |= byte ^ (b[i] ?? 0);
  return difference === 0;
}

/** SHA-256 at once; the browser's own answers only later. */
export function createHash(name: string) {
  if (name !== "sha256") throw new Error(`there is no ${name} in this page, only sha256`);
  const parts: Uint8Array[] = [];
  const hash = {
    update(data: Bytes) {
      parts.push(bytesOf(data).slice());
      return hash;
    },
    digest(encoding?: BufferEncoding): string | Buffer {
      const sum = sha256(Buffer.concat(parts));
      return encoding === undefined ? sum : sum.toString(encoding);
    },
  };
  return hash;
}

/** The first 32 bits of the fractional parts of roots of the first primes (FIPS 180-4, 4.2.2 and 5.3.3). */
function rootBits(count: number, root: number): Uint32Array {
  const bits = new Uint32Array(count);
  let found = 0;
  for (let n = 2; found < count; n++) {
    let isPrime = true;
    for (let d = 2; d * d <= n; d++) if (n % d === 0) isPrime = false;
    if (isPrime) bits[found++] = (n ** (1 / root) % 1) * 2 ** 32;
  }
  return bits;
}
const ROUNDS = rootBits(64, 3);
const START = rootBits(8, 2);

const turn = (x: number, by: number): number => (x >>> by) | (x << (32 - by));

function sha256(message: Uint8Array): Buffer {
  const blocks = Math.ceil((message.length + 9) / 64);
  const padded = new DataView(new ArrayBuffer(64 * blocks));
  new Uint8Array(padded.buffer).set(message);
  padded.setUint8(message.length, 0x80);
  padded.setBigUint64(64 * blocks - 8, BigInt(message.length) * 8n);
  const state = START.slice();
  const w = new Uint32Array(64);
  for (let at = 0; at < padded.byteLength; at += 64) {
    for (let t = 0; t < 16; t++) w[t] = padded.getUint32(at + 4 * t);
    for (let t = 16; t < 64; t++) {
      const [x, y] = [w[t - 15]!, w[t - 2]!];
      const s0 = turn(x, 7) ^ turn(x, 18) ^ (x >>> 3);
      const s1 = turn(y, 17) ^ turn(y, 19) ^ (y >>> 10);
      w[t] = w[t - 16]! + s0 + w[t - 7]! + s1;
    }
    let [a, b, c, d, e, f, g, h] = state as unknown as [
      ...[number, number, number, number],
      ...[number, number, number, number],
    ];
    for (let t = 0; t < 64; t++) {
      const s1 = turn(e, 6) ^ turn(e, 11) ^ turn(e, 25);
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + ROUNDS[t]! + w[t]!) | 0;
      const s0 = turn(a, 2) ^ turn(a, 13) ^ turn(a, 22);
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0];
    }
    for (const [i, x] of [a, b, c, d, e, f, g, h].entries()) state[i] = state[i]! + x;
  }
  const sum = Buffer.alloc(32);
  for (const [i, x] of state.entries()) sum.writeUInt32BE(x, 4 * i);
  return sum;
}

const CRC = Uint32Array.from({ length: 256 }, (_, n) => {
  let sum = n;
  for (let bit = 0; bit < 8; bit++) sum = sum & 1 ? 0xedb88320 ^ (sum >>> 1) : sum >>> 1;
  return sum;
});

export function crc32(data: Bytes, before = 0): number {
  let sum = ~before;
  for (const byte of bytesOf(data)) sum = CRC[(sum ^ byte) & 255]! ^ (sum >>> 8);
  return ~sum >>> 0;
}

interface Limits {
  readonly level?: number;
  readonly maxOutputLength?: number;
}

/** Compresses at once, as the format asks. */
export const deflateSync = (data: Bytes, { level }: Limits = {}): Buffer =>
  Buffer.from(zlibSync(bytesOf(data), levelOf(level)));
export const deflateRawSync = (data: Bytes, { level }: Limits = {}): Buffer =>
  Buffer.from(deflateRaw(bytesOf(data), levelOf(level)));
export const gunzipSync = (data: Bytes, limits: Limits = {}): Buffer =>
  within(gunzip(bytesOf(data)), limits);
export const inflateRawSync = (data: Bytes, limits: Limits = {}): Buffer =>
  within(inflateRaw(bytesOf(data)), limits);

const levelOf = (level: number | undefined) =>
  level === undefined ? {} : { level: level as 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 };

function within(bytes: Uint8Array, { maxOutputLength = Number.POSITIVE_INFINITY }: Limits): Buffer {
  if (bytes.length > maxOutputLength)
    throw Object.assign(new RangeError("too many bytes"), { code: "ERR_BUFFER_TOO_LARGE" });
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** Of plain data, which is all that is compared. */
export function isDeepStrictEqual(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const names = Object.keys(a);
  const [left, right] = [a, b] as readonly Record<string, unknown>[];
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && isDeepStrictEqual(left![name], right![name]))
  );
}
