/**
 * The speed of WebShop: steps and searches with 1,000 products (the official ones if available),
 * and building and searching an index of a million made-up ones.
 *
 *   npm run bench -- webshop [--products 1000000]
 */
import { existsSync } from "node:fs";
import { cpus } from "node:os";
import { parseArgs } from "node:util";
import type { Env, Environment } from "@pawl/core/envs/env.js";
import { createRandom } from "@pawl/core/random.js";
import { openMadeCatalogue } from "@pawl/worlds/webshop/made-catalogue.js";
import { webshop } from "@pawl/worlds/webshop/webshop.js";

const SHARED = "../shared/data/webshop";

function dataFolder(): string {
  if (process.env.WEBSHOP_DATA) return process.env.WEBSHOP_DATA;
  return existsSync(SHARED) ? SHARED : "made-up";
}

/** Plays at random, asking for the admissible actions at every step, until the time is up. */
function playRandom(environment: Environment, seconds: number, seed: number): number {
  const env = environment.create() as Env;
  const tasks = environment.tasks("train");
  const random = createRandom(seed);
  const start = performance.now();
  let steps = 0;
  while (performance.now() - start < 1000 * seconds) {
    env.reset(random.pick(tasks));
    for (let step = 0; step < environment.stepLimit; step++) {
      steps++;
      if (env.step(random.pick(env.admissibleActions!())).done) break;
    }
  }
  return steps / ((performance.now() - start) / 1000);
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1]!;
}

/** The median time of a search in milliseconds. */
function medianSearch(queries: readonly string[], search: (query: string) => unknown): number {
  const timed = (query: string): number => {
    const start = performance.now();
    search(query);
    return performance.now() - start;
  };
  // Extra blanks do not change a query, but they bypass the cached ranking.
  for (const query of queries.slice(0, 50)) timed(`${query} `);
  return median(queries.map(timed));
}

/** The instructions of the first test goals, without their price limits: distinct, long queries. */
function goalTexts(environment: Environment, count: number): readonly string[] {
  const env = environment.create() as Env;
  const texts = environment.tasks("test").map((task) => {
    env.reset(task);
    return env.goal.replace(/, and price lower than.*/, "");
  });
  return [...new Set(texts)].slice(0, count);
}

/** The results; steps and milliseconds are medians. */
interface WebshopSpeed {
  readonly steps_per_s: number;
  readonly search_ms: number;
  readonly index_1m_s: number;
  readonly search_1m_ms: number;
  readonly rss_1m_mib: number;
  readonly products: number;
}

/** Runs everything. */
export async function main(args: string[]): Promise<WebshopSpeed> {
  const { values } = parseArgs({
    args,
    options: { products: { type: "string", default: "1000000" } },
  });
  const count = Number(values.products);
  const data = dataFolder();
  console.log(
    `${cpus().length} × ${cpus()[0]?.model}, Node ${process.version}, 1,000 products: ${data}`,
  );
  const environment = webshop.open(
    webshop.options.parse({ data, suggestions: 4, ...(data === "made-up" && { products: 1000 }) }),
  );
  const queries = goalTexts(environment, 500);
  playRandom(environment, 2, 0);
  // The median of slices: a slice that another process delayed does not count.
  const slices = Array.from({ length: 80 }, (_, slice) => playRandom(environment, 0.1, slice));
  const env = environment.create() as Env;
  env.reset(environment.tasks("test")[0]!);
  const small = medianSearch(queries, (query) => env.clone().step(`search[${query}]`));

  const start = performance.now();
  const large = openMadeCatalogue(count, 1);
  const seconds = (performance.now() - start) / 1000;
  const wishes = Array.from({ length: 300 }, (_, at) => {
    const number = (at * 7919) % count;
    const { query, options } = large.product(number);
    const chosen = options.map((group) => group.values[0]!);
    return [...large.wishes(number)[0]!.attributes, query, ...chosen].join(" ");
  });
  const searched = medianSearch([...new Set(wishes)], (query) => large.search(query));
  return {
    steps_per_s: Math.round(median(slices)),
    search_ms: Number(small.toFixed(3)),
    index_1m_s: Number(seconds.toFixed(1)),
    search_1m_ms: Number(searched.toFixed(2)),
    rss_1m_mib: Math.round(process.resourceUsage().maxRSS / 1024),
    products: count,
  };
}
