/** Settings as nested objects: merged, read and set by path, and compared. */
import { isDeepStrictEqual } from "node:util";

/** Plain settings, as in a file or a manifest. */
export type SettingsTree = Readonly<Record<string, unknown>>;

/** Merges settings recursively; lists are replaced, not merged. */
export function mergeTrees(below: SettingsTree, above: SettingsTree): SettingsTree {
  const merged: Record<string, unknown> = { ...below };
  for (const [key, value] of Object.entries(above)) {
    const before = merged[key];
    merged[key] = isTree(before) && isTree(value) ? mergeTrees(before, value) : value;
  }
  return merged;
}

/** The value at a path, or undefined if there is none. */
export function valueAt(tree: SettingsTree, path: readonly string[]): unknown {
  let place: unknown = tree;
  for (const key of path) {
    if (!isTree(place)) return undefined;
    place = place[key];
  }
  return place;
}

/** The tree with this value at the path; `undefined` removes the setting. */
export function withValueAt(
  tree: SettingsTree,
  path: readonly string[],
  value: unknown,
): SettingsTree {
  const [key, ...rest] = path as [string, ...string[]];
  const { [key]: before, ...others } = tree;
  if (rest.length === 0) return value === undefined ? others : { ...tree, [key]: value };
  return { ...tree, [key]: withValueAt(isTree(before) ? before : {}, rest, value) };
}

/** Two values of one setting. */
export interface Difference {
  readonly path: readonly string[];
  readonly from: unknown;
  readonly to: unknown;
}

/** The settings in which two trees differ; a list counts as one setting. */
export function differences(
  from: SettingsTree,
  to: SettingsTree,
  path: readonly string[] = [],
): readonly Difference[] {
  const keys = [...new Set([...Object.keys(from), ...Object.keys(to)])];
  return keys.flatMap((key): readonly Difference[] => {
    const [a, b] = [from[key], to[key]];
    const here = [...path, key];
    if (isTree(a) && isTree(b)) return differences(a, b, here);
    return isDeepStrictEqual(a, b) ? [] : [{ path: here, from: a, to: b }];
  });
}

function isTree(value: unknown): value is SettingsTree {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
