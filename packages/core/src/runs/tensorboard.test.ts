import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createRun, resumeRun } from "./run-folder.js";
import { checkEvents, crc32c, openEventWriter } from "./tensorboard.js";

interface ReadEvent {
  readonly step: number;
  readonly version?: string;
  readonly restart: boolean;
  readonly values: Readonly<Record<string, number>>;
}

/** A reader that shares nothing with the writer: generic protobuf fields from checked TFRecords. */
function readEvents(folder: string): ReadEvent[] {
  return readdirSync(folder)
    .sort()
    .flatMap((name) => {
      const bytes = readFileSync(join(folder, name));
      const events: ReadEvent[] = [];
      for (let at = 0; at < bytes.length; ) {
        const length = Number(bytes.readBigUInt64LE(at));
        expect(bytes.readUInt32LE(at + 8)).toBe(masked(bytes.subarray(at, at + 8)));
        const data = bytes.subarray(at + 12, at + 12 + length);
        expect(bytes.readUInt32LE(at + 12 + length)).toBe(masked(data));
        events.push(toEvent(data));
        at += 16 + length;
      }
      return events;
    });
}

function masked(bytes: Uint8Array): number {
  // Bit by bit and with big integers, unlike the writer's table.
  let crc = 0xffffffffn;
  for (const byte of bytes) {
    crc ^= BigInt(byte);
    for (let bit = 0; bit < 8; bit++) crc = crc % 2n ? (crc >> 1n) ^ 0x82f63b78n : crc >> 1n;
  }
  crc ^= 0xffffffffn;
  const rotated = ((crc >> 15n) | (crc << 17n)) % 2n ** 32n;
  return Number((rotated + 0xa282ead8n) % 2n ** 32n);
}

type Field = readonly [number: number, value: number | Buffer];

function fields(bytes: Buffer): Field[] {
  const found: Field[] = [];
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = bytes[at++]!;
      value += (byte % 128) * factor;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const key = varint();
    const number = Math.floor(key / 8);
    const wireType = key % 8;
    const length = { 1: 8, 5: 4 }[wireType] ?? (wireType === 2 ? varint() : 0);
    const content = bytes.subarray(at, at + length);
    at += length;
    if (wireType === 0) found.push([number, varint()]);
    else if (wireType === 1) found.push([number, content.readDoubleLE()]);
    else if (wireType === 5) found.push([number, content.readFloatLE()]);
    else found.push([number, content]);
  }
  return found;
}

function toEvent(data: Buffer): ReadEvent {
  const all = fields(data);
  const get = (number: number) => all.find(([n]) => n === number)?.[1];
  const values = fields((get(5) as Buffer | undefined) ?? Buffer.alloc(0)).map(([, value]) => {
    const [tag, number] = fields(value as Buffer);
    return [String(tag![1]), number![1] as number] as const;
  });
  expect(get(1)).toBeGreaterThan(1.7e9);
  return {
    step: get(2) as number,
    ...(get(3) !== undefined && { version: String(get(3)) }),
    restart: get(7) !== undefined && fields(get(7) as Buffer)[0]![1] === 1,
    values: Object.fromEntries(values),
  };
}

const fail = (message: string): never => {
  throw new Error(message);
};

describe("event files", () => {
  it("hold what was written, record by record", () => {
    const folder = join(mkdtempSync(join(tmpdir(), "pawl-tb-")), "tensorboard");
    const writer = openEventWriter(folder);
    writer.append({ update: -1, "eval.valid_seen.success": 0.25 });
    writer.append({ update: 299, "train.success": 0.5, "train.größe": -1.5e9 });
    writer.close();
    expect(readEvents(folder)).toEqual([
      { step: 0, version: "brain.Event:2", restart: false, values: {} },
      { step: 0, restart: false, values: { "eval/valid_seen.success": 0.25 } },
      { step: 300, restart: false, values: { "train/success": 0.5, "train/größe": -1.5e9 } },
    ]);
  });

  it("are not created if there are no metrics", () => {
    const folder = join(mkdtempSync(join(tmpdir(), "pawl-tb-")), "tensorboard");
    openEventWriter(folder).close();
    expect(() => readdirSync(folder)).toThrow(/ENOENT/);
  });

  it("are written next to a run's metrics, and a resumed run says where it starts", () => {
    const folder = join(mkdtempSync(join(tmpdir(), "pawl-tb-")), "run");
    const run = createRun({ folder, kind: "train", seed: 0, config: {} }, fail);
    for (const update of [-1, 0, 1, 2]) run.recordMetrics({ update, loss: update });
    run.finish("interrupted");
    const keep = { episode: () => true, metrics: (line: { update?: number }) => line.update! < 1 };
    const again = resumeRun(folder, { keep, updates: 1 }, fail);
    again.recordMetrics({ update: 1, loss: 10 });
    again.finish("done");
    expect(readdirSync(join(folder, "tensorboard"))).toHaveLength(2);
    const events = readEvents(join(folder, "tensorboard"));
    expect(events.map(({ step }) => step)).toEqual([0, 0, 1, 2, 3, 2, 2, 2]);
    expect(events.map(({ restart }) => restart)).toEqual([
      ...new Array<boolean>(6).fill(false),
      true,
      false,
    ]);
    expect(events.at(-1)!.values).toEqual({ loss: 10 });
  });
});

it("computes CRC-32C like the standard's check value", () => {
  expect(crc32c(Buffer.from("123456789"))).toBe(0xe3069283);
});

it("finds every flipped bit and every cut in an event file", () => {
  const folder = mkdtempSync(join(tmpdir(), "pawl-events-"));
  const writer = openEventWriter(folder);
  for (const update of [0, 1]) writer.append({ update, "train.return": 0.5 });
  writer.close();
  expect(checkEvents(folder)).toEqual({ records: 3, problems: [] });
  const path = join(folder, readdirSync(folder)[0]!);
  const whole = readFileSync(path);
  const missed: string[] = [];
  for (let at = 0; at < whole.length; at++) {
    for (let bit = 0; bit < 8; bit++) {
      const bytes = Buffer.from(whole);
      bytes[at]! ^= 1 << bit;
      writeFileSync(path, bytes);
      if (checkEvents(folder).problems.length !== 1) missed.push(`${at}:${bit}`);
    }
  }
  expect(missed).toEqual([]);
  writeFileSync(path, whole.subarray(0, -3));
  expect(checkEvents(folder)).toMatchObject({
    records: 2,
    problems: [expect.stringMatching(/is damaged at byte \d+: TensorBoard shows nothing after/)],
  });
});
