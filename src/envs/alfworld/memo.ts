/** An LRU cache by text, so that what games share is created once. */
export type Memo<Value> = (key: string, make: () => Value) => Value;

/** A cache of `limit` entries; the least recently used one is evicted first. */
export function createMemo<Value>(limit: number): Memo<Value> {
  const kept = new Map<string, Value>();
  return (key, make) => {
    const value = kept.get(key) ?? make();
    kept.delete(key);
    kept.set(key, value);
    if (kept.size > limit) kept.delete(kept.keys().next().value!);
    return value;
  };
}
