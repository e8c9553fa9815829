import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { loadVectors, saveVectors } from "./cache.js";
import { normalise, pool, withPrefix } from "./encoder.js";
import { openEndpointEncoder } from "./endpoint-encoder.js";
import { openOnnxEncoder } from "./onnx-encoder.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-embeddings-"));
afterAll(() => rmSync(folder, { recursive: true }));

const product = (a: Float32Array, b: Float32Array): number =>
  a.reduce((sum, value, at) => sum + value * b[at]!, 0);

const encoderFolder = process.env.PAWL_ENCODER ?? "";

describe.skipIf(!existsSync(encoderFolder))(
  "a pretrained encoder (skipped where PAWL_ENCODER names no folder with tokenizer.json and model.onnx)",
  () => {
    it("gives vectors of length 1 that are close for similar meanings, alone or in a batch", async () => {
      const encoder = await openOnnxEncoder({ folder: encoderFolder });
      const texts = [
        "A man is eating food.",
        "Someone eats a meal.",
        "The stock market fell sharply today.",
        "",
        "word ".repeat(20_000),
      ];
      const vectors = await encoder.encode(texts);
      for (const vector of vectors) {
        expect(vector).toHaveLength(encoder.dimension);
        expect(product(vector, vector)).toBeCloseTo(1, 4);
      }
      const [eating, meal, market] = vectors;
      expect(product(eating!, meal!)).toBeGreaterThan(0.5);
      expect(product(eating!, market!)).toBeLessThan(0.3);
      const [alone] = await encoder.encode([texts[0]!]);
      expect(product(alone!, eating!)).toBeGreaterThan(0.99);
    });
  },
);

describe("an encoder's folder", () => {
  it("errors name what is missing or damaged", async () => {
    await expect(openOnnxEncoder({ folder })).rejects.toThrow(
      /is not a sentence encoder: expected/,
    );
    const damaged = join(folder, "damaged");
    mkdirSync(damaged);
    writeFileSync(join(damaged, "model.onnx"), "no model");
    writeFileSync(join(damaged, "tokenizer.json"), "{");
    await expect(openOnnxEncoder({ folder: damaged })).rejects.toThrow(/cannot read .*tokenizer/);
  });
});

describe("an embeddings endpoint", () => {
  const servers: Server[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections();
      server.close();
    }
  });
  const serve = async (listener: RequestListener): Promise<string> => {
    const server = createServer(listener);
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  };
  const patience = { timeoutMs: 60_000, retries: 0, backoffMs: 1 };

  it("is called in batches, and its vectors are sorted and scaled", async () => {
    const sizes: number[] = [];
    const url = await serve((asked, reply) => {
      let body = "";
      asked.setEncoding("utf8").on("data", (part) => {
        body += part;
      });
      asked.on("end", () => {
        const { input, model } = JSON.parse(body) as { input: string[]; model: string };
        sizes.push(input.length);
        const data = input.map((text, index) => ({ index, embedding: [text.length, 4] }));
        reply.end(JSON.stringify({ model, data: data.reverse() }));
      });
    });
    const encoder = await openEndpointEncoder({ url, model: "m", ...patience });
    expect([encoder.dimension, encoder.name]).toEqual([2, `m@${new URL(url).host}`]);
    const vectors = await encoder.encode(Array.from({ length: 100 }, (_, at) => "x".repeat(at)));
    expect(sizes).toEqual([1, 64, 36]);
    expect([...vectors[3]!]).toEqual([Math.fround(0.6), Math.fround(0.8)]);
    expect([...vectors[0]!]).toEqual([0, 1]);
  });

  it.each([
    ['{"data": []}', /expected 1 vectors, number 0 is missing/],
    ['{"vectors": []}', /expected \{"data"/],
    ['{"data": [{"index": 0, "embedding": []}]}', /expected \{"data"/],
  ])("that answers %s is an error", async (body, message) => {
    const url = await serve((_, reply) => reply.end(body));
    await expect(openEndpointEncoder({ url, model: "m", ...patience })).rejects.toThrow(message);
  });

  it("needs an address", async () => {
    await expect(openEndpointEncoder({ url: "file:///x", model: "m" })).rejects.toThrow(
      /looks like http:\/\/localhost:8000\/v1, not "file:\/\/\/x"/,
    );
  });
});

describe("vectors on disk", () => {
  it("survive a round trip, and are rejected if damaged or made from something else", async () => {
    const path = join(folder, "deep", "v.bin");
    const table = { dimension: 2, values: Float32Array.from([1, 2, 3, 4, 5, 6]) };
    expect(await loadVectors(path, "k")).toBeUndefined();
    await saveVectors(path, "k", table);
    expect(await loadVectors(path, "k")).toEqual(table);
    expect(await loadVectors(path, "other")).toBeUndefined();
    const bytes = readFileSync(path);
    for (let at = bytes.length - 24; at < bytes.length; at++) {
      const flipped = Buffer.from(bytes);
      flipped[at]! ^= 1;
      writeFileSync(path, flipped);
      expect([at, await loadVectors(path, "k")]).toEqual([at, undefined]);
    }
    writeFileSync(path, bytes.subarray(0, -4));
    expect(await loadVectors(path, "k")).toBeUndefined();
  });
});

it("leaves a zero vector unchanged", () => {
  expect([...normalise(new Float32Array(3))]).toEqual([0, 0, 0]);
  expect([...normalise(Float32Array.from([3, 4]))]).toEqual([Math.fround(0.6), Math.fround(0.8)]);
});

it("pools a text's tokens by their mean or by the first", () => {
  const tokens = { data: Float32Array.of(9, 9, 1, 2, 3, 6), dimension: 2, from: 1, count: 2 };
  expect([...pool(tokens, "mean")]).toEqual([2, 4]);
  expect([...pool(tokens, "cls")]).toEqual([1, 2]);
});

it("writes a prefix before every text, and its vectors are kept apart", async () => {
  const read: string[] = [];
  const encoder = {
    name: "e",
    dimension: 1,
    encode: async (texts: readonly string[]) => {
      read.push(...texts);
      return texts.map(() => Float32Array.of(1));
    },
  };
  expect(withPrefix(encoder, "")).toBe(encoder);
  const prefixed = withPrefix(encoder, "query: ");
  await prefixed.encode(["a", "b"]);
  expect([prefixed.name, ...read]).toEqual(['e, after "query: "', "query: a", "query: b"]);
});
