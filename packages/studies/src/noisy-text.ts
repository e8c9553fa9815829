/**
 * Which characters of an observation are noise. By replay: those that change when the same actions
 * are repeated under another episode seed. No history can predict what a world draws anew for every
 * episode; everything else stays the same. By the paper's rules for WebShop, which draws nothing
 * anew: product ids and brands on pages of search results (PaW appendix A.4).
 */
import type { Environment } from "@pawl/core/envs/env.js";
import type { Episode } from "@pawl/core/rollout/episode.js";

/** Two ids may share a prefix by chance, but hardly ever in all of several replays. */
const OTHER_SEEDS = 4;

/**
 * For each step, whether each character of its observation is noise; undefined if it cannot be
 * determined.
 */
export async function noisyCharacters(
  environment: Environment,
  episode: Episode,
): Promise<readonly (readonly boolean[] | undefined)[]> {
  const others: (readonly string[])[] = [];
  for (let n = 1; n <= OTHER_SEEDS; n++)
    others.push(await replay(environment, episode, (episode.seed ?? 0) + n));
  return episode.steps.map(({ observation }, step) =>
    changing(
      observation,
      others.map((texts) => texts[step]),
    ),
  );
}

/** A page of search results, whole or after the instruction. */
const RESULTS = /Page \d+ \(Total results: \d+\)/;
/** Product ids, and brands: at least four capital letters, and digits if any. */
const IDS_AND_BRANDS = /B[0-9A-Z]{9}|\b[A-Z]{4,}\d*\b/g;

/** The same by the paper's rules for WebShop; undefined for pages other than search results. */
export function noisyByRules({ steps }: Episode): readonly (readonly boolean[] | undefined)[] {
  return steps.map(({ observation }) => {
    if (!RESULTS.test(observation)) return undefined;
    const noisy = new Array<boolean>(observation.length).fill(false);
    for (const { 0: found, index } of observation.matchAll(IDS_AND_BRANDS))
      noisy.fill(true, index, index + found.length);
    return noisy;
  });
}

async function replay(
  environment: Environment,
  episode: Episode,
  seed: number,
): Promise<readonly string[]> {
  const env = environment.create();
  await env.reset(episode.task, seed);
  const texts: string[] = [];
  for (const { action } of episode.steps) {
    const { observation, done } = await env.step(action);
    texts.push(observation);
    if (done) break;
  }
  return texts;
}

/** Whether each character is in a part of a word that differs between versions of the text. */
export function changing(
  text: string,
  versions: readonly (string | undefined)[],
): readonly boolean[] | undefined {
  const words = text.split(/(\s+)/);
  const noisy: boolean[] = [];
  const split = versions.map((version) => version?.split(/(\s+)/));
  // Different numbers of words: the texts say different things, and words cannot be matched.
  if (split.some((other) => other?.length !== words.length)) return undefined;
  words.forEach((word, w) => {
    const all = [word, ...split.map((other) => other![w]!)];
    const shortest = Math.min(...all.map((other) => other.length));
    let begin = 0;
    while (begin < shortest && all.every((other) => other[begin] === word[begin])) begin++;
    let end = 0;
    while (end < shortest - begin && all.every((other) => other.at(-1 - end) === word.at(-1 - end)))
      end++;
    for (let i = 0; i < word.length; i++) noisy.push(i >= begin && i < word.length - end);
  });
  return noisy;
}
