/** Facts about a world: immutable, kept by predicate and sorted, as rules look them up. */

/** A fact: a predicate of entities, by their ids. */
export interface Fact {
  readonly predicate: string;
  readonly arguments: readonly string[];
  /** Its text, by which facts are compared. */
  readonly key: string;
}

/** The facts of one moment. */
export type Facts = ReadonlyMap<string, readonly Fact[]>;

/** A fact. */
export function fact(predicate: string, ids: readonly string[]): Fact {
  return { predicate, arguments: ids, key: `${predicate}(${ids.join()})` };
}

function before(left: Fact, right: Fact): boolean {
  for (const [index, id] of left.arguments.entries()) {
    const other = right.arguments[index];
    if (other === undefined || id > other) return false;
    if (id < other) return true;
  }
  return left.arguments.length < right.arguments.length;
}

/** Collects facts. */
export function collectFacts(facts: readonly Fact[]): Facts {
  return changeFacts(new Map(), [], facts);
}

/** Other facts: without some, with others. What does not change is shared. */
export function changeFacts(facts: Facts, removed: readonly Fact[], added: readonly Fact[]): Facts {
  if (removed.length === 0 && added.length === 0) return facts;
  const changed = new Map(facts);
  for (const { predicate, key } of removed) {
    const list = changed.get(predicate);
    if (list !== undefined)
      changed.set(
        predicate,
        list.filter((one) => one.key !== key),
      );
  }
  for (const one of added) {
    const list = changed.get(one.predicate) ?? [];
    if (list.some(({ key }) => key === one.key)) continue;
    const at = list.findIndex((other) => before(one, other));
    changed.set(one.predicate, list.toSpliced(at < 0 ? list.length : at, 0, one));
  }
  return changed;
}
