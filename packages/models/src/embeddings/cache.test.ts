import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { cacheVectors } from "./cache.js";
import type { Encoder } from "./encoder.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-vectors-"));
afterAll(() => rmSync(parent, { recursive: true }));

/** An encoder that records what it was asked. */
function spy(name = "spy", dimension = 3) {
  const asked: string[] = [];
  const encoder: Encoder = {
    name,
    dimension,
    async encode(texts) {
      asked.push(...texts);
      return texts.map((text) => new Float32Array(dimension).fill(1 / (text.length + 1)));
    },
  };
  return { encoder, asked };
}

const newFolder = (): string => mkdtempSync(join(parent, "cache-"));
const filesIn = (folder: string): readonly string[] => {
  const [place] = readdirSync(folder);
  return readdirSync(join(folder, place!)).map((file) => join(folder, place!, file));
};

describe("the cache of vectors", () => {
  it("encodes a text once, in this process and in the next", async () => {
    const folder = newFolder();
    const first = spy();
    const cached = await cacheVectors(first.encoder, folder);
    const vectors = await cached.encode(["a", "bb", "a"]);
    expect(await cached.encode(["bb", "ccc"])).toHaveLength(2);
    expect(first.asked).toEqual(["a", "bb", "ccc"]);
    expect(cached.statistics).toEqual({ hits: 2, misses: 3, damaged: 0 });

    const second = spy();
    const again = await cacheVectors(second.encoder, folder);
    expect(await again.encode(["a", "bb", "a"])).toEqual(vectors);
    expect(second.asked).toEqual([]);
  });

  it("separates encoders by name and dimension", async () => {
    const folder = newFolder();
    await (await cacheVectors(spy().encoder, folder)).encode(["a"]);
    for (const other of [spy("other"), spy("spy", 5)]) {
      const [vector] = await (await cacheVectors(other.encoder, folder)).encode(["a"]);
      expect(vector).toHaveLength(other.encoder.dimension);
      expect(other.asked).toEqual(["a"]);
    }
  });

  it("skips torn and changed records, and keeps the rest", async () => {
    const folder = newFolder();
    await (await cacheVectors(spy().encoder, folder)).encode(["a", "bb", "ccc"]);
    const [file] = filesIn(folder);
    const whole = readFileSync(file!);
    // Wherever the last record is cut, all records before it are still known.
    for (let cut = 1; cut < whole.length / 3; cut += 7) {
      writeFileSync(file!, whole.subarray(0, whole.length - cut));
      const { encoder, asked } = spy();
      const cached = await cacheVectors(encoder, folder);
      expect(cached.statistics.damaged).toBe(1);
      await cached.encode(["a", "bb"]);
      expect(asked).toEqual([]);
    }
    const flipped = Buffer.from(whole);
    flipped[40]! ^= 1;
    writeFileSync(file!, flipped);
    const { encoder, asked } = spy();
    const cached = await cacheVectors(encoder, folder);
    const [vector] = await cached.encode(["a"]);
    expect([asked, vector![0]]).toEqual([["a"], Math.fround(0.5)]);
  });

  it("merges the files of many processes without loss", async () => {
    const folder = newFolder();
    const texts = Array.from({ length: 20 }, (_, i) => "x".repeat(i));
    await (await cacheVectors(spy().encoder, folder)).encode(texts.slice(0, 1));
    const [file] = filesIn(folder);
    for (let i = 0; i < 17; i++) {
      appendFileSync(file!.replace(/[^/\\]+$/, `${i}-copy.vectors`), readFileSync(file!));
    }
    await (await cacheVectors(spy().encoder, folder)).encode(texts);
    expect(filesIn(folder)).toHaveLength(2);
    const { encoder, asked } = spy();
    await (await cacheVectors(encoder, folder)).encode(texts);
    expect(asked).toEqual([]);
  });
});
