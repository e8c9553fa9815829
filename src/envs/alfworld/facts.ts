/**
 * Facts as sorted numbers. Objects are numbered in the order of their names, so a fact's arguments,
 * read as digits in base "number of objects", sort as the facts do. Stores are never changed in
 * place: a changed predicate gets a new row and everything else is shared, which makes copies free.
 */

/** The facts of one predicate, ascending. */
export type Row = readonly number[];

/** The facts of every predicate, by its index. */
export type Facts = readonly Row[];

/** The first position in a row whose fact is at least `key`. */
export function lowerBound(row: Row, key: number): number {
  let low = 0;
  let high = row.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (row[middle]! < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Whether a row holds a fact. */
export function includes(row: Row, key: number): boolean {
  return row[lowerBound(row, key)] === key;
}

/** The row with a fact added; the same row if it was already there. */
export function withFact(row: Row, key: number): Row {
  const at = lowerBound(row, key);
  if (row[at] === key) return row;
  const next = row.slice();
  next.splice(at, 0, key);
  return next;
}

/** The row without a fact; the same row if it was not there. */
export function withoutFact(row: Row, key: number): Row {
  const at = lowerBound(row, key);
  if (row[at] !== key) return row;
  const next = row.slice();
  next.splice(at, 1);
  return next;
}
