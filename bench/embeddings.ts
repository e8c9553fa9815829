/**
 * The speed of a sentence encoder in this process: sentences per second, with a workload like that
 * of rewards.
 *
 *   npm run bench -- embeddings [--encoder FOLDER] [--count 1024] [--threads 2]
 *
 * The sentences are observations and goals of the household world, all different, so that no cache
 * helps; a second pass through the cache on disk is timed too. Without --encoder, MiniLM is found
 * as `pawl` finds it.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Env } from "@pawl/core/envs/env.js";
import { household } from "@pawl/core/envs/household/household.js";
import { createRandom } from "@pawl/core/random.js";
import { cacheVectors } from "@pawl/models/embeddings/cache.js";
import { encoderOptions, openEncoder } from "@pawl/models/embeddings/open-encoder.js";

/** Different observations of random play. */
function sentences(count: number): readonly string[] {
  const environment = household.open(household.options.parse({}));
  const env = environment.create() as Env;
  const tasks = environment.tasks("train");
  const random = createRandom(5);
  const texts = new Set<string>();
  for (let task = 0; texts.size < count; task++) {
    texts.add(`${env.reset(tasks[task % tasks.length]!, task)} ${env.goal}`);
    for (let step = 0; step < 20; step++) {
      texts.add(env.step(random.pick(env.admissibleActions!())).observation);
    }
  }
  return [...texts].slice(0, count);
}

const perSecond = async (count: number, work: () => Promise<unknown>): Promise<number> => {
  const start = performance.now();
  await work();
  return Math.round(count / ((performance.now() - start) / 1000));
};

/** Runs everything. */
export async function main(args: string[]) {
  const { values } = parseArgs({
    args,
    options: {
      encoder: { type: "string", default: "minilm" },
      count: { type: "string", default: "1024" },
      threads: { type: "string", default: "2" },
    },
  });
  const texts = sentences(Number(values.count));
  const cache = mkdtempSync(join(tmpdir(), "pawl-bench-"));
  const settings = encoderOptions.parse({ from: values.encoder, threads: Number(values.threads) });
  const words = texts.reduce((sum, text) => sum + text.split(/\s+/).length, 0) / texts.length;
  console.log(`${cpus().length} × ${cpus()[0]?.model}, Node ${process.version}`);
  console.log(`${texts.length} sentences of ${words.toFixed(1)} words on average`);
  try {
    const found = await openEncoder({ ...settings, cache: settings.cache ?? cache });
    await found.encode(["warm up"]);
    const sentences_per_s = await perSecond(texts.length, () => found.encode(texts));
    const again = await cacheVectors(found, join(cache, "vectors"));
    const cached_per_s = await perSecond(texts.length, () => again.encode(texts));
    return {
      encoder: found.name,
      dimension: found.dimension,
      threads: Number(values.threads),
      sentences_per_s,
      cached_per_s,
    };
  } finally {
    rmSync(cache, { recursive: true });
  }
}
