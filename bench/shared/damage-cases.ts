/** Ways in which disks, power cuts and people damage a run folder. */
import {
  cpSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { createRandom, mixSeed, type Random } from "../../src/random.js";
import { lockDamages } from "./damage-locks.js";
import type { Damage } from "./one-damage.js";

/** All files of a folder, relative to it, sorted. */
export function filesOf(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => statSync(join(folder, name)).isFile())
    .sort();
}

/** Changes the bytes of a file. */
function edit(run: string, file: string, change: (bytes: Buffer) => Buffer): void {
  const path = join(run, file);
  writeFileSync(path, change(readFileSync(path)));
}

function flip(file: string, byte: number, bit: number, where = ""): Damage {
  return {
    kind: "flipped bit",
    file,
    what: `bit ${bit} of byte ${byte}${where}`,
    apply: (run) =>
      edit(run, file, (bytes) => {
        bytes[byte]! ^= 1 << bit;
        return bytes;
      }),
  };
}

/** Where the fields of a record file's members are: header, the ends of the content, trailer. */
function placesInRecords(bytes: Buffer): readonly (readonly [number, string])[] {
  const places: (readonly [number, string])[] = [];
  for (let start = 0, member = 0; start < bytes.length; member++) {
    const end = start + bytes.readUInt32LE(start + 16);
    for (let at = 0; at < 20; at++) places.push([start + at, `, header of member ${member}`]);
    for (const at of [start + 20, end - 9]) places.push([at, `, content of member ${member}`]);
    for (let at = end - 8; at < end; at++) places.push([at, `, trailer of member ${member}`]);
    start = end;
  }
  return places;
}

/** Places of a file where more depends on a byte than elsewhere. */
function placesIn(file: string, bytes: Buffer): readonly (readonly [number, string])[] {
  if (file.endsWith(".jsonl.gz")) return placesInRecords(bytes);
  if (file.endsWith(".safetensors"))
    return [0, 1, 3, 7, 8, 20].map((at) => [at, ", header"] as const);
  if (file.includes("tfevents")) return [0, 8, 12].map((at) => [at, ", header"] as const);
  // Line breaks, braces and quotes hold texts together.
  const places: (readonly [number, string])[] = [
    [0, ", first"],
    [bytes.length - 1, ", last"],
  ];
  for (let at = bytes.indexOf("\n"); at >= 0 && places.length < 8; at = bytes.indexOf("\n", at + 1))
    places.push([at, ", line break"]);
  return places;
}

function flips(folder: string, file: string, count: number, random: Random): readonly Damage[] {
  const bytes = readFileSync(join(folder, file));
  if (bytes.length === 0) return [];
  return [
    ...placesIn(file, bytes).map(([at, where]) => flip(file, at, random.int(8), where)),
    ...Array.from({ length: count }, () => flip(file, random.int(bytes.length), random.int(8))),
  ];
}

/** Ends that were never written, or are gone. */
function tails(folder: string, file: string): readonly Damage[] {
  const { size } = statSync(join(folder, file));
  const zeros = [1, 100, 4096].filter((count) => count < size);
  const cuts = [1, 10, Math.floor(size / 2), size].filter((count) => count > 0 && count <= size);
  return [
    ...zeros.map((count) => ({
      kind: "zeros at the end",
      file,
      what: `instead of the last ${count} bytes`,
      apply: (run: string) => edit(run, file, (bytes) => bytes.fill(0, bytes.length - count)),
    })),
    {
      kind: "zeros at the end",
      file,
      what: "4096 after the last byte",
      apply: (run) => edit(run, file, (bytes) => Buffer.concat([bytes, Buffer.alloc(4096)])),
    },
    ...[...new Set(cuts)].map((count) => ({
      kind: "cut off",
      file,
      what: `the last ${count} of ${size} bytes`,
      apply: (run: string) => edit(run, file, (bytes) => bytes.subarray(0, bytes.length - count)),
    })),
  ];
}

function deleted(file: string): Damage {
  return {
    kind: "deleted",
    file,
    what: "deleted",
    apply: (run) => rmSync(join(run, file), { recursive: true }),
  };
}

function swapped(file: string, other: string): Damage {
  return {
    kind: "of another run",
    file,
    what: "replaced by that of another run",
    apply(run) {
      rmSync(join(run, file), { recursive: true });
      cpSync(join(other, file), join(run, file), { recursive: true });
    },
  };
}

/** Numbers by which records are counted, or that people may want to change. */
const ON_PURPOSE = [
  ...["seed", "updates", "groups", "groupSize", "keep", "checkpointEvery", "cores"],
  ...["triplets", "overlap", "epochs", "batch"],
];

/** Every number of the manifest, one more; also as people are told to do it on purpose. */
function edits(folder: string): readonly Damage[] {
  const file = "manifest.json";
  const text = readFileSync(join(folder, file), "utf8");
  return [...text.matchAll(/"([\w.]+)": (-?\d+(?:\.\d+)?)/g)].flatMap(
    ({ index, 0: old, 1: key, 2: number }) => {
      const changed = `"${key}": ${Number(number) + 1}`;
      const apply = (purpose: boolean) => (run: string) =>
        edit(run, file, (bytes) => {
          const found = bytes.toString();
          const next = found.slice(0, index) + changed + found.slice(index + old.length);
          return Buffer.from(purpose ? next.replace(/,\s*"checksum": "\w+"/, "") : next);
        });
      const onPurpose = {
        kind: "edited on purpose",
        file,
        what: changed,
        isMeant: true,
        apply: apply(true),
      } as const;
      return [
        { kind: "edited", file, what: changed, apply: apply(false) },
        ...(ON_PURPOSE.includes(key!) ? [onPurpose] : []),
      ];
    },
  );
}

/** All damage to try on a run; the other run has the same settings and another seed. */
export function damages(
  { run, other }: { readonly run: string; readonly other: string },
  { flips: count, seed }: { readonly flips: number; readonly seed: number },
): readonly Damage[] {
  const files = filesOf(run);
  const folders = ["checkpoints", "reference", "tokenizer", "tensorboard", "model"].filter((name) =>
    existsSync(join(run, name)),
  );
  const newest = join("checkpoints", readdirSync(join(run, "checkpoints")).sort().at(-1)!);
  // An older checkpoint is not needed: it must only do no harm.
  const isOlder = (file: string): boolean =>
    file.startsWith("checkpoints") && !file.startsWith(newest);
  return [
    ...files.flatMap((file) => {
      const all = flips(run, file, count, createRandom(mixSeed(seed, file)));
      return isOlder(file) ? all.slice(-2) : all;
    }),
    ...files.flatMap((file) => (isOlder(file) ? tails(run, file).slice(-1) : tails(run, file))),
    ...[...files, newest, ...folders].map(deleted),
    ...[...files, newest, ...folders]
      .filter((file) => existsSync(join(other, file)))
      .map((file) => swapped(file, other)),
    ...edits(run),
    ...lockDamages(count, createRandom(mixSeed(seed, "lock"))),
  ];
}
