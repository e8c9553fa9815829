/**
 * What plugins have added to this process, in one place: parts, by the names that settings know them by. It is filled
 * when the program starts; schemas are made of what is in it when they are asked for.
 */

/** The kinds of parts that settings name. */
export type PartKind =
  | "estimators"
  | "policies"
  | "policyLosses"
  | "promptStyles"
  | "rewards"
  | "worldLosses";

const added = new Map<PartKind, Map<string, unknown>>();

/** The parts of a kind by name, in the order in which they were added. */
export function addedParts<Part>(kind: PartKind): ReadonlyMap<string, Part> {
  return partsOf(kind) as ReadonlyMap<string, Part>;
}

/** Adds a part, which has been checked. */
export function addPart(kind: PartKind, name: string, part: unknown): void {
  partsOf(kind).set(name, part);
}

/** A schema that names every part of a kind: made when it is first asked for, and after one was added. */
export function schemaOfParts<Schema>(kind: PartKind, make: () => Schema): () => Schema {
  let made: { readonly parts: number; readonly schema: Schema } | undefined;
  return () => {
    const parts = partsOf(kind).size;
    if (made?.parts !== parts) made = { parts, schema: make() };
    return made.schema;
  };
}

function partsOf(kind: PartKind): Map<string, unknown> {
  const parts = added.get(kind) ?? new Map<string, unknown>();
  added.set(kind, parts);
  return parts;
}
