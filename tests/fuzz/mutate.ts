/** Damaged versions of good inputs: what disks, editors and attackers make of files and messages. */
import type { createRandom } from "@pawl/core/random.js";

type Random = ReturnType<typeof createRandom>;

/** Pieces that readers stumble over. */
const PIECES: readonly string[] = [
  ...[
    "null",
    "true",
    "-1",
    "0",
    "1e999",
    "-0",
    "NaN",
    "9".repeat(400),
    "1.5",
    "18446744073709551616",
  ],
  ...[
    '""',
    "[]",
    "{}",
    "[[[[",
    "}}}}",
    '"__proto__":',
    '"constructor":',
    "\\u0000",
    "\\ud800",
    '"',
  ],
  ...[
    "\0",
    "\n",
    "\r\n",
    "\u001b[2J",
    "\u202e",
    "\ufeff",
    "../../etc/passwd",
    "%s%n",
    "$" + "{x}",
    "{{x}}",
  ],
  ...[
    "<script>",
    "--",
    "=",
    ":",
    "- ",
    "&a *a",
    "!!js/function",
    "a".repeat(5000),
    "(",
    ")",
    "(".repeat(3000),
  ],
];

/** One input, damaged in one to eight ways. */
export function mutate(random: Random, inputs: readonly Buffer[]): Buffer {
  let bytes: Buffer = Buffer.from(random.pick(inputs));
  const times = 1 + Math.floor(random.next() * 8);
  for (let i = 0; i < times; i++) bytes = once(random, bytes, inputs);
  return bytes;
}

function once(random: Random, bytes: Buffer, inputs: readonly Buffer[]): Buffer {
  const at = Math.floor(random.next() * (bytes.length + 1));
  const length = Math.floor(random.next() ** 3 * (bytes.length - at));
  const splice = (middle: Buffer, cut = 0): Buffer =>
    Buffer.concat([bytes.subarray(0, at), middle, bytes.subarray(at + cut)]);
  switch (Math.floor(random.next() * 9)) {
    case 0: {
      if (at === bytes.length) return bytes;
      const flipped = Buffer.from(bytes);
      flipped[at]! ^= 1 << Math.floor(random.next() * 8);
      return flipped;
    }
    case 1:
      return splice(Buffer.alloc(0), length);
    case 2:
      return bytes.subarray(0, at);
    case 3:
      return splice(bytes.subarray(at, at + length));
    case 4:
      return splice(Buffer.from(random.pick(PIECES)), random.next() < 0.5 ? 0 : length);
    case 5:
      return splice(
        Buffer.alloc(1 + Math.floor(random.next() * 64), random.next() < 0.5 ? 0 : 255),
      );
    case 6: {
      const other = random.pick(inputs);
      const from = Math.floor(random.next() * other.length);
      return splice(other.subarray(from, from + Math.floor(random.next() * 200)), length);
    }
    case 7:
      // A number in its place becomes another.
      return replaceOne(random, bytes, /-?\d+(?:\.\d+)?/g);
    default:
      // So does a value or a name.
      return replaceOne(random, bytes, /"[^"\n]{0,60}"/g);
  }
}

function replaceOne(random: Random, bytes: Buffer, pattern: RegExp): Buffer {
  const text = bytes.toString("latin1");
  const found = [...text.slice(0, 100_000).matchAll(pattern)];
  if (found.length === 0) return bytes;
  const { index, 0: old } = random.pick(found);
  const piece = Buffer.from(random.pick(PIECES)).toString("latin1");
  return Buffer.from(text.slice(0, index) + piece + text.slice(index + old.length), "latin1");
}
