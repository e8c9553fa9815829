/** How the original names the objects of a game. */

/** Ends the readable part of an id; what follows are coordinates. */
const SEPARATOR = "_bar_";
/** The one word that the original adds to a name: an id that contains it is called so. */
const SUFFIX = "basin";

/**
 * The names of `ids`, which are sorted: the readable part of the id and a number that counts
 * downwards, so that the first of a kind has the highest. An id without coordinates is its own
 * name, followed by a space.
 */
export function nameObjects(ids: readonly string[]): ReadonlyMap<string, string> {
  const kindOf = (id: string) => {
    const kind = id.slice(0, id.indexOf(SEPARATOR));
    return id.includes(SUFFIX) ? kind + SUFFIX : kind;
  };
  const left = new Map<string, number>();
  const numbered = ids.filter((id) => id.includes(SEPARATOR));
  for (const id of numbered) {
    left.set(kindOf(id), (left.get(kindOf(id)) ?? 0) + 1);
  }
  const names = new Map(ids.map((id) => [id, `${id} `]));
  for (const id of numbered) {
    const kind = kindOf(id);
    const number = left.get(kind)!;
    left.set(kind, number - 1);
    names.set(id, `${kind} ${number}`);
  }
  return names;
}
