/** Remembers what was made last, by a text, so that what games share is made once. */
export type Memo<Value> = (key: string, make: () => Value) => Value;

/** A memory for the last `limit` things; what was not asked for the longest is forgotten first. */
export function createMemo<Value>(limit: number): Memo<Value> {
  const kept = new Map<string, Value>();
  return (key, make) => {
    const value = kept.get(key) ?? make();
    kept.delete(key);
    kept.set(key, value);
    if (kept.size > limit) {
      kept.delete(kept.keys().next().value!);
    }
    return value;
  };
}
