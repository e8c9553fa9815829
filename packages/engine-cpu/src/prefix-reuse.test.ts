import type { Engine, SampleRequest } from "@pawl/core/engine/engine.js";
import { createRandom } from "@pawl/core/random.js";
import type { ModelConfig } from "@pawl/models/weights/model-config.js";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type RowGroup, reuseCaches } from "./batching.js";
import { createEmbeddedEngine } from "./embedded-engine.js";
import { copyRows, type KvCache } from "./kv-cache.js";
import { createPrefixCache, createPrefixIndex } from "./prefix-index.js";

const config: ModelConfig = {
  vocabularySize: 40,
  hiddenSize: 32,
  layers: 3,
  heads: 4,
  kvHeads: 2,
  headSize: 8,
  mlpSize: 48,
  maxContext: 1024,
  ropeTheta: 10_000,
  normEps: 1e-6,
  tiedEmbeddings: true,
  qkvBias: true,
};

let engine: Engine;
beforeAll(async () => {
  engine = await createEmbeddedEngine({ model: { config }, seed: 3, threads: 1 });
});
afterAll(() => engine.dispose());

const random = createRandom(1);
const draw = (count: number) => Array.from({ length: count }, () => random.int(40));

it("reuses a cached prefix, with the same results as a full prefill", async () => {
  let prompts = Array.from({ length: 7 }, (_, row) => draw(15 + row));
  for (let turn = 0; turn < 4; turn++) {
    const requests = (continued: boolean): SampleRequest[] =>
      prompts.map((prompt, row) => ({
        prompt,
        continued,
        maxTokens: 5,
        temperature: 0.9,
        stop: [[7], [8]],
        seed: 100 * turn + row,
      }));
    // Sampled without the hint first, so that nothing is cached for it.
    const plain = (await engine.sample(requests(false))).map(([sample]) => sample!);
    const continued = (await engine.sample(requests(true))).map(([sample]) => sample!);
    continued.forEach((sample, row) => {
      expect(sample.tokens).toEqual(plain[row]!.tokens);
      sample.logprobs.forEach((value, i) => {
        expect(value).toBeCloseTo(plain[row]!.logprobs[i]!, 5);
      });
    });
    prompts = prompts.map((prompt, row) => [
      ...prompt,
      ...plain[row]!.tokens,
      ...draw(1 + random.int(6)),
    ]);
  }
});

it("keeps the prompt of several samples, for branches and for what continues it", async () => {
  const prompts = Array.from({ length: 3 }, (_, row) => draw(20 + 3 * row));
  const ask = async (some: readonly number[][], more: Partial<SampleRequest>) =>
    (
      await engine.sample(
        some.map((prompt, seed) => ({ prompt, seed, maxTokens: 4, temperature: 0.8, ...more })),
      )
    ).flat();
  const close = (found: Awaited<ReturnType<typeof ask>>, expected: typeof found) => {
    expect(found.map(({ tokens }) => tokens)).toEqual(expected.map(({ tokens }) => tokens));
    found.forEach(({ logprobs }, i) => {
      logprobs.forEach((value, at) => {
        expect(value).toBeCloseTo(expected[i]!.logprobs[at]!, 5);
      });
    });
  };
  for (let turn = 0; turn < 3; turn++) {
    const several = await ask(prompts, { count: 5 });
    close(await ask(prompts, { count: 5, continued: true }), several);
    // Three branches of the first prompt, of which one continues another; one of the second; none of
    // the third.
    const branches = [0, 0, 1].map((row) => [...prompts[row]!, ...draw(3 + turn)]);
    branches.push([...branches[0]!, ...draw(2)]);
    const plain = await ask(branches, {});
    close(await ask(branches, { continued: "branch" }), plain);
    // Short ends are read beside one another, long ones at once.
    const long = branches.map((ids, row) => [...ids, ...draw(row === 1 ? 2 : 19)]);
    close(await ask(long, { continued: "branch" }), await ask(long, {}));
    close(
      await ask(branches, { continued: "branch", count: 2 }),
      await ask(branches, { count: 2 }),
    );
    for (const prompt of prompts) prompt.push(...draw(5));
  }
  // What was kept for several samples is continued by one.
  close(await ask(prompts, { continued: true }), await ask(prompts, {}));
});

it("continues in the same memory when rows end and others outgrow their capacity", async () => {
  let prompts = Array.from({ length: 9 }, (_, row) => draw(17 + row));
  for (let turn = 0; prompts.length > 0; turn++) {
    const ask = async (continued: boolean) => {
      const settings = { continued, maxTokens: 4, temperature: 0 };
      const asked = prompts.map((prompt, seed) => ({ ...settings, prompt, seed }));
      return (await engine.sample(asked)).map(([sample]) => sample!);
    };
    const [plain, continued] = [await ask(false), await ask(true)];
    continued.forEach(({ tokens, logprobs }, row) => {
      expect(tokens).toEqual(plain[row]!.tokens);
      logprobs.forEach((value, i) => {
        expect(value).toBeCloseTo(plain[row]!.logprobs[i]!, 5);
      });
    });
    // Rows end in the middle and at the end; in later turns most end at once, and then the last
    // one.
    const ended = turn < 4 ? [(3 * turn) % prompts.length] : [0, 1, 2];
    prompts = prompts.flatMap((prompt, row) =>
      ended.includes(row) ? [] : [[...prompt, ...plain[row]!.tokens, ...draw(20 + 12 * row)]],
    );
  }
});

it("keeps the rows that continue apart from those they were requested with", async () => {
  let prompts = Array.from({ length: 8 }, (_, row) => draw(40 + row));
  for (let turn = 0; turn < 5; turn++) {
    const asked = async (rows: readonly number[], continued: boolean | "apart") => {
      const settings = { continued, maxTokens: 4, temperature: 0 } as const;
      const requests = rows.map((row) => ({ ...settings, prompt: prompts[row]!, seed: row }));
      return (await engine.sample(requests)).map(([sample]) => sample!);
    };
    const all = prompts.map((_, row) => row);
    const plain = await asked(all, false);
    // Most go on first and the others later; who they are changes.
    const late = turn === 0 ? [] : all.filter((row) => (row + turn) % 3 === 0);
    const first = all.filter((row) => !late.includes(row));
    for (const rows of [first, late].filter(({ length }) => length > 0))
      for (const [i, { tokens, logprobs }] of (await asked(rows, "apart")).entries()) {
        expect(tokens).toEqual(plain[rows[i]!]!.tokens);
        logprobs.forEach((value, at) => {
          expect(value).toBeCloseTo(plain[rows[i]!]!.logprobs[at]!, 5);
        });
      }
    prompts = prompts.map((prompt, row) => [...prompt, ...plain[row]!.tokens, ...draw(3 + row)]);
  }
});

it("moves the other rows of a KV cache, or evicts them if all go on together", () => {
  for (const continued of [true, "apart"] as const) {
    const prefixes = createPrefixCache(2 ** 20);
    const kv = copyRows(
      config,
      Array.from({ length: 4 }, () => ({ kv: emptyKv(), row: 0, tokens: 5 })),
      8,
    );
    // The numbers of the third row, which stays behind.
    kv.keys[0]!.fill(7, 2 * 2 * 8 * 8, 3 * 2 * 8 * 8);
    const rows = [0, 1, 2, 3].map((row) => ({ kv, row, tokens: 5 }));
    for (const row of rows) prefixes.put(row.row, row);
    const groups = [0, 1, 3].map((row): RowGroup => {
      const request = { prompt: draw(7), maxTokens: 1, continued, seed: row };
      return {
        task: { request, first: 0, count: 1, cacheAs: 10 + row },
        rows: [],
        prefix: prefixes.take(row)!,
      };
    });
    const { batches, rest } = reuseCaches(config, groups, prefixes);
    expect([batches.length, rest.length]).toEqual([1, 0]);
    const behind = prefixes.take(2);
    if (continued === true) expect(behind).toBeUndefined();
    else {
      expect([behind!.tokens, behind!.row, behind!.kv === kv]).toEqual([5, 0, false]);
      expect(behind!.kv.keys[0]!.subarray(0, 5)).toEqual(new Float32Array(5).fill(7));
    }
  }
});

/** A KV cache of one row of zeros. */
function emptyKv(): KvCache {
  const size = config.kvHeads * config.headSize * 8;
  const arrays = Array.from({ length: config.layers }, () => new Float32Array(size));
  return { keys: arrays, values: arrays, capacity: 8, tokens: Int32Array.of(5) };
}

it("evicts everything when the weights change", async () => {
  const prompt = draw(20);
  const ask = async (ids: number[], continued: boolean) => {
    const request = { prompt: ids, continued, maxTokens: 3, temperature: 0, seed: 0 };
    return (await engine.sample([request]))[0]![0]!;
  };
  const first = await ask(prompt, true);
  const ids = [...prompt, ...first.tokens, 5, 6];
  const weight = new Float32Array(ids.length).fill(1);
  const loss = { op: "mul", x: { op: "input", name: "weight" }, y: { op: "logprob" } } as const;
  await engine.forwardBackward([{ ids, inputs: { weight } }], { loss, metrics: {} });
  await engine.optimStep({ learningRate: 0.05 });
  expect((await ask(ids, true)).logprobs).toEqual((await ask(ids, false)).logprobs);
});

it("reuses the common prefix if a prompt's end was tokenized differently", async () => {
  const prompts = Array.from({ length: 5 }, (_, row) => draw(20 + row));
  const ask = (ids: readonly (readonly number[])[], continued: boolean) =>
    engine.sample(ids.map((prompt, seed) => ({ prompt, continued, maxTokens: 6, seed })));
  const first = await ask(prompts, true);
  const retokenized = prompts.map((prompt, row) => [
    ...prompt,
    ...first[row]![0]!.tokens.slice(0, row),
    ...draw(9),
  ]);
  const [plain, continued] = [await ask(retokenized, false), await ask(retokenized, true)];
  continued.forEach(([sample], row) => {
    expect(sample!.tokens).toEqual(plain[row]![0]!.tokens);
    sample!.logprobs.forEach((value, i) => {
      expect(value).toBeCloseTo(plain[row]![0]!.logprobs[i]!, 5);
    });
  });
});

it("finds the longest cached prefix, returns it once, and stays within its size", () => {
  const prefixes = createPrefixIndex();
  const row = (ids: number[], handle = 0) => ({ ids, replica: 0, handle });
  const matched = (...prompts: number[][]) => prefixes.match(prompts).map((found) => found?.tokens);
  prefixes.insert(row([1, 2]));
  expect(matched([1, 2, 3])).toEqual([undefined]);
  const long = Array.from({ length: 30 }, (_, i) => i);
  prefixes.insert(row(long));
  prefixes.insert(row([...long, 1]));
  expect(matched([...long, 1, 2])).toEqual([31]);
  expect(matched([...long, 1, 2])).toEqual([30]);
  expect(matched([...long, 1, 2])).toEqual([undefined]);
  prefixes.insert(row([...long, 1]));
  prefixes.insert(row([...long, 2]));
  // The prompt that continues a whole row gets it, although another came first.
  expect(matched([...long, 3, 3], [...long, 1, 3])).toEqual([30, 31]);
  prefixes.insert(row(long));
  expect(matched([...long.slice(0, 16), ...long])).toEqual([undefined]);
  prefixes.clear();
  for (let i = 0; i < 4097; i++) prefixes.insert(row([...long, i], i));
  expect(matched([...long, 0, 1], [...long, 4096, 1], [...long, 1, 1])).toEqual([30, 31, 31]);
});
