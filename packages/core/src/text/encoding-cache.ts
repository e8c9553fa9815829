/** The tokens of texts that were encoded lately. */

const cacheEntries = 20_000;
const cacheableLength = 4_000;

/**
 * Caches the ids of short texts: rollouts encode the same goals, lists and observations again and
 * again.
 */
export function cachedEncoding(encode: (text: string) => readonly number[]): typeof encode {
  const memory = new Map<string, readonly number[]>();
  return (text) => {
    const known = memory.get(text);
    if (known !== undefined) return known;
    const ids = Object.freeze(encode(text));
    if (text.length <= cacheableLength) {
      if (memory.size >= cacheEntries) memory.clear();
      memory.set(text, ids);
    }
    return ids;
  };
}
