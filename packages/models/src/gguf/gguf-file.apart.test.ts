import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dose } from "@pawl/core/dose-testing.js";
import { EngineError } from "@pawl/core/engine/engine.js";
import { UserError } from "@pawl/core/errors.js";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readGgufModel } from "./gguf-convert.js";
import { openGguf, readGgufTensor } from "./gguf-file.js";
import { floatTensor, ggufBytes, tinyModel } from "./gguf-testing.js";
import { u32, u64 } from "./gguf-write.js";

let folder: string;
let file: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "gguf-"));
  file = join(folder, "model.gguf");
});
afterAll(() => rmSync(folder, { recursive: true }));

function refusal(bytes: Uint8Array): string {
  writeFileSync(file, bytes);
  try {
    openGguf(file);
  } catch (error) {
    expect(error).toBeInstanceOf(EngineError);
    return (error as Error).message.replaceAll(file, "FILE");
  }
  throw new Error("expected a refusal");
}

/** The bytes with some of them replaced at the first place where a text occurs, or at a position. */
function patched(bytes: Buffer, at: number | string, shift: number, by: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  const place = typeof at === "string" ? copy.indexOf(at) + at.length : at;
  by.copy(copy, place + shift);
  return copy;
}

describe("a GGUF file", () => {
  const tensors = [floatTensor("a", [2, 3], (i) => i / 2), floatTensor("b.weight", [4], (i) => -i)];
  const good = ggufBytes(
    {
      "general.architecture": { string: "llama" },
      truth: { bool: true },
      list: { i32s: [1, -2] },
      words: { strings: ["ä", ""] },
      f: { f32: 0.5 },
    },
    tensors,
  );

  it("is read: metadata, shapes outermost first, numbers", async () => {
    writeFileSync(file, good);
    const gguf = openGguf(file);
    expect([...gguf.metadata]).toEqual([
      ["general.architecture", "llama"],
      ["truth", true],
      ["list", Int32Array.of(1, -2)],
      ["words", ["ä", ""]],
      ["f", 0.5],
    ]);
    const [a, b] = [...gguf.tensors.values()];
    expect([a!.shape, a!.format.name, b!.shape]).toEqual([[2, 3], "F32", [4]]);
    expect(await readGgufTensor(gguf, a!)).toEqual(Float32Array.of(0, 0.5, 1, 1.5, 2, 2.5));
    expect(await readGgufTensor(gguf, b!)).toEqual(Float32Array.of(-0, -1, -2, -3));
  });

  it("is refused if it is another kind of file", () => {
    expect(refusal(Buffer.from("PK"))).toMatch(/^FILE: not a GGUF file/);
    expect(refusal(Buffer.alloc(100))).toMatch(/does not begin with the letters GGUF/);
    expect(refusal(patched(good, 4, 0, u32(1)))).toMatch(/version 1 is not supported; expected 2/);
    expect(refusal(patched(good, 4, 0, Buffer.of(0, 0, 0, 3)))).toMatch(/big-endian/);
    expect(() => openGguf(join(folder, "none.gguf"))).toThrow(/cannot be opened: ENOENT/);
    expect(() => openGguf(folder)).toThrow(/not a file/);
  });

  it("is refused with impossible counts, before anything is allocated for them", () => {
    for (const count of [2n ** 63n, 2n ** 64n - 1n])
      for (const at of [8, 16])
        expect(refusal(patched(good, at, 0, u64(count)))).toMatch(/out of range/);
    for (const count of [2n ** 52n, 2n ** 31n]) {
      expect(refusal(patched(good, 8, 0, u64(count)))).toMatch(/announces \d+ tensors, but only/);
      expect(refusal(patched(good, 16, 0, u64(count)))).toMatch(/metadata values, but only/);
      // The length of a key, of a text, of a list, of a tensor's name.
      expect(refusal(patched(good, 24, 0, u64(count)))).toMatch(/a metadata key has \d+ bytes/);
      const text = patched(good, "general.architecture", 4, u64(count));
      expect(refusal(text)).toMatch(
        /metadata general.architecture has \d+ bytes; expected at most/,
      );
      const list = patched(good, "list", 8, u64(count));
      expect(refusal(list)).toMatch(/announces \d+ numbers in metadata list, but only/);
      const words = patched(good, "words", 8, u64(count));
      expect(refusal(words)).toMatch(/announces \d+ strings in metadata words/);
    }
  });

  it("is refused although a sparse file is as large as it announces", () => {
    writeFileSync(file, patched(good, "list", 8, u64(2 ** 31)));
    truncateSync(file, 16 * 2 ** 30);
    expect(() => openGguf(file)).toThrow(/announces 2147483648 numbers in metadata list/);
    writeFileSync(file, patched(good, "general.architecture", 4, u64(2 ** 33)));
    truncateSync(file, 16 * 2 ** 30);
    expect(() => openGguf(file)).toThrow(/metadata general.architecture has 8589934592 bytes/);
    writeFileSync(file, patched(good, 8, 0, u64(1_000_000)));
    truncateSync(file, 16 * 2 ** 30);
    expect(() => openGguf(file)).toThrow(/1000000 tensors and 5 metadata values; expected at most/);
    rmSync(file);
  });

  it("is refused with unknown types, by name", () => {
    expect(refusal(patched(good, "truth", 0, u32(77)))).toMatch(/truth has the unknown type 77/);
    expect(refusal(patched(good, "truth", 4, Buffer.of(2)))).toMatch(/a truth value is 2/);
    expect(refusal(patched(good, "list", 4, u32(9)))).toMatch(/list is a list of type 9/);
    expect(refusal(patched(good, "b.weight", 12, u32(10)))).toMatch(
      /tensor b.weight has the format Q2_K, which is not supported; supported: F32, F16, Q4_0/,
    );
    expect(refusal(patched(good, "b.weight", 12, u32(99)))).toMatch(/format number 99/);
    expect(refusal(patched(good, "b.weight", 12, u32(2)))).toMatch(
      /rows of 4 weights; Q4_0 needs a multiple of 32/,
    );
  });

  it("is refused with impossible tensors", () => {
    const at = (shift: number, by: Buffer) => refusal(patched(good, "b.weight", shift, by));
    expect(at(0, u32(5))).toMatch(/b.weight has 5 dimensions; expected 1 to 4/);
    expect(at(0, u32(0))).toMatch(/b.weight has 0 dimensions/);
    expect(at(4, u64(0))).toMatch(/impossible dimensions 0/);
    expect(at(4, u64(2 ** 40))).toMatch(/b.weight ends at byte \d+, but the file has \d+/);
    expect(at(16, u64(2 ** 40))).toMatch(/ends at byte \d+, but the file has/);
    expect(at(16, u64(33))).toMatch(/starts at 33, which is not a multiple of 32/);
    expect(at(16, u64(0))).toMatch(/tensors a and b.weight overlap|tensors b.weight and a overlap/);
    const huge = ggufBytes({}, [{ ...tensors[0]!, dimensions: [2 ** 31, 2 ** 31, 2 ** 31] }]);
    expect(refusal(huge)).toMatch(/impossible dimensions 2147483648 × 2147483648 × 2147483648/);
  });

  it("is refused with anything twice, and with a bad alignment", () => {
    expect(refusal(ggufBytes({}, [tensors[0]!, tensors[0]!]))).toMatch(/tensor a is there twice/);
    const twice = patched(
      ggufBytes({ one: { u32: 1 }, two: { u32: 1 } }, []),
      "one",
      -3,
      Buffer.from("two"),
    );
    expect(refusal(twice)).toMatch(/metadata two is there twice/);
    for (const alignment of [0, 3, 24, 2 ** 30])
      expect(refusal(ggufBytes({ "general.alignment": { u32: alignment } }, tensors))).toMatch(
        /general.alignment is \d+; expected a power of two/,
      );
    writeFileSync(file, ggufBytes({ "general.alignment": { u32: 64 } }, tensors, 64));
    expect(openGguf(file).tensors.size).toBe(2);
    expect(refusal(ggufBytes({ "split.count": { u32: 3 } }, []))).toMatch(/one of 3 parts/);
  });

  it("is refused wherever it is cut off", () => {
    for (let length = 0; length < good.length - 16; length++) {
      writeFileSync(file, good.subarray(0, length));
      expect(() => openGguf(file), `${length} bytes`).toThrow(EngineError);
    }
  });
});

it("whatever its bytes, a file is read or refused with a clear error, in little memory", async () => {
  const { metadata, tensors } = tinyModel();
  const good = ggufBytes(metadata, tensors);
  const header = good.indexOf("output_norm.weight") + 60;
  const position = fc.integer({ min: 0, max: header });
  const change = fc.oneof(
    fc.record({ at: position, bytes: fc.uint8Array({ minLength: 1, maxLength: 8 }) }),
    fc.record({
      at: position,
      bytes: fc
        .constantFrom(0n, 1n, 2n ** 31n, 2n ** 32n - 1n, 2n ** 40n, 2n ** 53n, 2n ** 63n)
        .map((value) => new Uint8Array(u64(value))),
    }),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(change, { minLength: 1, maxLength: 4 }),
      fc.option(fc.integer({ min: 0, max: good.length })),
      async (changes, length) => {
        const bytes = Buffer.from(good);
        for (const { at, bytes: by } of changes) bytes.set(by.subarray(0, bytes.length - at), at);
        writeFileSync(file, length === null ? bytes : bytes.subarray(0, length));
        try {
          const gguf = openGguf(file);
          const model = await readGgufModel(gguf);
          for (const tensor of model.tensors) await tensor.read();
        } catch (error) {
          // Anything else would be a bug, or memory asked for in vain.
          if (!(error instanceof UserError)) throw error;
        }
      },
    ),
    { numRuns: dose(300) },
  );
  expect(process.memoryUsage().arrayBuffers).toBeLessThan(256 * 2 ** 20);
});
