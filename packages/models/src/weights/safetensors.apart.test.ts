/*
 * It needs a process of its own: where ONNX Runtime makes the first session of a process in the thread
 * of the tests, that thread takes denormal numbers for zero from then on.
 */

import { execFileSync, spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dose } from "@pawl/core/dose-testing.js";
import { EngineError } from "@pawl/core/engine/engine.js";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openSafetensors, readTensor, type TensorData, writeSafetensors } from "./safetensors.js";

let folder: string;
let file: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "safetensors-"));
  file = join(folder, "model.safetensors");
});
afterAll(() => rm(folder, { recursive: true }));

async function readAll(path: string): Promise<Map<string, TensorData>> {
  const source = await openSafetensors(path);
  const tensors = new Map<string, TensorData>();
  for (const [name, { shape }] of source.tensors)
    tensors.set(name, { shape, data: await readTensor(source, name) });
  return tensors;
}

/** The bytes of a file with this header, as text or as an object, and this many bytes of data. */
function fileOf(header: string | object, dataBytes: number): Buffer {
  const json = Buffer.from(typeof header === "string" ? header : JSON.stringify(header));
  const prefix = Buffer.alloc(8);
  prefix.writeBigUInt64LE(BigInt(json.length));
  return Buffer.concat([prefix, json, Buffer.alloc(dataBytes)]);
}

async function refusalOf(bytes: Uint8Array): Promise<string> {
  await writeFile(file, bytes);
  const error = await openSafetensors(file).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(EngineError);
  const { message } = error as EngineError;
  expect(message).toContain(file);
  return message.replaceAll(file, "FILE");
}

const anyTensors = fc
  .uniqueArray(
    fc.tuple(
      fc.string({ minLength: 1, unit: "binary" }).filter((name) => name !== "__metadata__"),
      fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 3 }),
      fc.float({ noNaN: true }),
    ),
    { selector: ([name]) => name, maxLength: 6 },
  )
  .map((entries) => {
    const tensors = entries.map(([name, shape, seed]): [string, TensorData] => {
      const length = shape.reduce((product, size) => product * size, 1);
      return [name, { shape, data: Float32Array.from({ length }, (_, i) => seed / (i + 1)) }];
    });
    return new Map(tensors);
  });

describe("writeSafetensors and readTensor", () => {
  it("preserve every name, shape and bit", async () => {
    await fc.assert(
      fc.asyncProperty(anyTensors, async (tensors) => {
        await writeSafetensors(file, tensors);
        expect(await readAll(file)).toEqual(tensors);
      }),
      { numRuns: dose(40) },
    );
  });

  it.each(["F16", "BF16"] as const)("store what %s holds exactly", async (dtype) => {
    const data = Float32Array.of(0, -0, 1, -1.5, 0.15625, 2 ** -14, 192);
    const tensors = new Map([["x", { shape: [7], data }]]);
    await writeSafetensors(file, tensors, { dtype });
    const source = await openSafetensors(file);
    expect(source.tensors.get("x")).toMatchObject({ dtype, bytes: 14 });
    expect(await readTensor(source, "x")).toEqual(data);
  });

  it("convert tensors larger than one chunk", async () => {
    const data = Float32Array.from({ length: (1 << 23) + 5 }, (_, i) => i % 251);
    await writeSafetensors(file, new Map([["x", { shape: [data.length], data }]]), {
      dtype: "BF16",
    });
    const back = await readTensor(await openSafetensors(file), "x");
    expect(Buffer.from(back.buffer).equals(Buffer.from(data.buffer))).toBe(true);
  });

  it("align the data and name the format that transformers requires", async () => {
    await writeSafetensors(file, new Map([["x", { shape: [1], data: Float32Array.of(1) }]]));
    const source = await openSafetensors(file);
    expect(source.tensors.get("x")!.start % 8).toBe(0);
    expect(source.metadata).toEqual({ format: "pt" });
  });

  it("name a tensor whose shape and data disagree", async () => {
    const tensors = new Map([["x.weight", { shape: [2, 3], data: new Float32Array(5) }]]);
    await expect(writeSafetensors(file, tensors)).rejects.toThrow(
      /tensor x\.weight of shape \[2, 3\] needs 6 numbers, but has 5/,
    );
  });

  it("name what cannot be read", async () => {
    await writeFile(file, fileOf({ ids: { dtype: "I64", shape: [1], data_offsets: [0, 8] } }, 8));
    const source = await openSafetensors(file);
    await expect(readTensor(source, "ids")).rejects.toThrow(/tensor ids has dtype I64; expected F/);
    await expect(readTensor(source, "other")).rejects.toThrow(/tensor other is missing/);
    await expect(openSafetensors(join(folder, "nowhere"))).rejects.toThrow(EngineError);
    await expect(openSafetensors(folder)).rejects.toThrow(/not a file/);
  });

  it("detect a file that shrinks after its header was read", async () => {
    await writeSafetensors(file, new Map([["x", { shape: [4], data: new Float32Array(4) }]]));
    const source = await openSafetensors(file);
    await writeFile(file, (await readFile(file)).subarray(0, -4));
    await expect(readTensor(source, "x")).rejects.toThrow(
      /tensor x: truncated: 4 of 16 bytes are missing/,
    );
  });
});

describe("openSafetensors rejects", () => {
  const f32 = (start: number, end: number) => ({
    dtype: "F32",
    shape: [(end - start) / 4],
    data_offsets: [start, end],
  });

  it("files that are too short, or announce an absurd header", async () => {
    expect(await refusalOf(Buffer.from("short"))).toMatch(/expected at least 8 bytes, found 5/);
    expect(await refusalOf(Buffer.alloc(64, 0xff))).toMatch(/announces a header of 18446744073/);
    expect(await refusalOf(fileOf("{}", 0).subarray(0, 9))).toMatch(/truncated one: .* 2 bytes/);
  });

  it("headers that are not JSON objects", async () => {
    expect(await refusalOf(fileOf("{", 0))).toMatch(/header is not JSON/);
    expect(await refusalOf(fileOf("[]", 0))).toMatch(/header must be a JSON object/);
    expect(await refusalOf(fileOf("[".repeat(1_000_000), 0))).toMatch(/header is not JSON/);
    const latin1 = fileOf('{"a": 1}', 0);
    latin1[10] = 0xe9;
    expect(await refusalOf(latin1)).toMatch(/header is not JSON/);
  });

  it("malformed entries, by name", async () => {
    expect(await refusalOf(fileOf({ w: 3 }, 0))).toMatch(/^FILE: tensor w: header: /);
    const negative = { dtype: "F32", shape: [-1], data_offsets: [0, 4] };
    expect(await refusalOf(fileOf({ w: negative }, 4))).toMatch(/tensor w: header\.shape\.0/);
    const dtype = { ...f32(0, 4), dtype: "F31" };
    expect(await refusalOf(fileOf({ w: dtype }, 4))).toMatch(/unknown dtype F31; known: F64, F32/);
    const shape = { ...f32(0, 8), shape: [3] };
    expect(await refusalOf(fileOf({ w: shape }, 8))).toMatch(/shape \[3\] needs 12 bytes, .* 8$/);
    expect(await refusalOf(fileOf({ __metadata__: { a: 1 } }, 0))).toMatch(/object of strings/);
  });

  it("tensors that overlap, leave holes or leave the file", async () => {
    const overlap = { a: f32(0, 8), b: f32(4, 12) };
    expect(await refusalOf(fileOf(overlap, 12))).toMatch(/tensor b: overlaps with tensor a/);
    const hole = { a: f32(0, 4), b: f32(8, 12) };
    expect(await refusalOf(fileOf(hole, 12))).toMatch(
      /tensor b: a hole of 4 bytes between tensor a/,
    );
    expect(await refusalOf(fileOf({ a: f32(0, 8) }, 4))).toMatch(/tensor a: out of range/);
    expect(await refusalOf(fileOf({ a: f32(0, 4) }, 8))).toMatch(/4 bytes follow tensor a/);
  });

  it("duplicate keys, even if spelled differently", async () => {
    const entry = JSON.stringify(f32(0, 4));
    const twice = `{"a":${entry},  "\\u0061" :${entry}}`;
    expect(await refusalOf(fileOf(twice, 4))).toMatch(/the key a twice/);
    const inner = '{"a":{"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]}}';
    expect(await refusalOf(fileOf(inner, 4))).toMatch(/the key shape twice/);
    await writeFile(
      file,
      fileOf(`{"a\\"{":${entry}, "b":{"dtype":"F32","shape":[0],"data_offsets":[4,4]}}`, 4),
    );
    expect((await openSafetensors(file)).tensors.size).toBe(2);
  });

  it("random bytes and damaged files, with no other error", async () => {
    const tensors = new Map([
      ["a", { shape: [2, 2], data: Float32Array.of(1, 2, 3, 4) }],
      ["b", { shape: [3], data: Float32Array.of(5, 6, 7) }],
    ]);
    await writeSafetensors(file, tensors);
    const whole = await readFile(file);
    const damaged = fc
      .tuple(
        fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { minLength: 1, maxLength: 3 }),
        fc.integer({ min: 0, max: whole.length }),
      )
      .map(([changes, length]) => {
        const bytes = Buffer.from(whole);
        for (const [position, byte] of changes) bytes[position] = byte;
        return bytes.subarray(0, length);
      });
    const framed = fc
      .uint8Array({ maxLength: 40 })
      .map((bytes) => fileOf(Buffer.from(bytes).toString("latin1"), 8));
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(damaged, framed, fc.uint8Array({ maxLength: 60 })),
        async (bytes) => {
          await writeFile(file, bytes);
          const outcome = await readAll(file).catch((error: unknown) => error);
          expect(outcome instanceof Map || outcome instanceof EngineError).toBe(true);
        },
      ),
      { numRuns: dose(300) },
    );
  });
});

const python = process.env.PAWL_PYTHON ?? "python3";
const hasPython = spawnSync(python, ["-c", "import safetensors, numpy"]).status === 0;

describe.skipIf(!hasPython)(
  "parity with Python's safetensors, where PAWL_PYTHON or python3 has it",
  () => {
    const tensors = new Map<string, TensorData>([
      ["matrix", { shape: [4, 6], data: Float32Array.from({ length: 24 }, (_, i) => Math.sin(i)) }],
      ["vector", { shape: [3], data: Float32Array.of(1, -2, 0.5) }],
      ["empty", { shape: [0, 2], data: new Float32Array(0) }],
      ["scalar", { shape: [], data: Float32Array.of(7) }],
    ]);
    const run = (script: string, ...args: readonly string[]): unknown =>
      JSON.parse(execFileSync(python, ["-c", script, ...args], { encoding: "utf8" }));

    it.each(["F32", "F16", "BF16"] as const)("it finds in our %s what we wrote", async (dtype) => {
      await writeSafetensors(file, tensors, { dtype });
      const found = run(
        `import json, sys, safetensors
items = safetensors.deserialize(open(sys.argv[1], "rb").read())
print(json.dumps({name: [t["dtype"], t["shape"], bytes(t["data"]).hex()] for name, t in items}))`,
        file,
      );
      const bytes = await readFile(file);
      const { tensors: ours } = await openSafetensors(file);
      const expected = [...ours].map(([name, { shape, start, bytes: length }]) => [
        name,
        [dtype, shape, bytes.subarray(start, start + length).toString("hex")],
      ]);
      expect(found).toEqual(Object.fromEntries(expected));
      expect(ours.size).toBe(4);
    });

    it.each(["F32", "F16"] as const)("we find in its %s what it wrote", async (dtype) => {
      await writeSafetensors(file, tensors, { dtype });
      const copy = join(folder, "copy.safetensors");
      const values = run(
        `import json, sys
from safetensors.numpy import load_file, save_file
arrays = load_file(sys.argv[1])
save_file(arrays, sys.argv[2])
print(json.dumps({name: a.astype("float64").ravel().tolist() for name, a in arrays.items()}))`,
        file,
        copy,
      );
      const back = await readAll(copy);
      const numbers = [...back].map(([name, { data }]) => [name, [...data]]);
      expect(Object.fromEntries(numbers)).toEqual(values);
      expect(back.get("matrix")!.shape).toEqual([4, 6]);
    });
  },
);
