/**
 * Databases. Large ones share their records with every other copy until a record is changed: a copy
 * is made when a tool takes it to write. So a world is cloned in microseconds, and a state's hash
 * only renders what was changed.
 */
import { createHash, type Hash } from "node:crypto";
import { asciiText, type Dict, deepCopy, jsonText, pair, sortedKeys, tupleText } from "./value.js";

// The hash of a large database, SHA-256 of one canonical text of some megabytes. The text is cut
// into chunks of records: those without changes are rendered once, and hashing starts at the first
// chunk with a change, from the state that the hash had there.

/** How the text that is hashed looks: τ²'s sorted JSON, or τ's nested tuples. */
type HashForm = "json" | "tuple";

/** Records by id. */
export type Records = ReadonlyMap<string, Dict>;

type Tables = ReadonlyMap<string, Records>;

/** Records of a table that follow one another in its sorted order. */
interface Chunk {
  readonly table: string;
  readonly ids: readonly string[];
  /** What stands before and after the records. */
  readonly before: string;
  readonly after: string;
  /** Whether the table starts here: then no comma precedes the first record. */
  readonly first: boolean;
  readonly bytes: Buffer;
  /** The hash of everything before. */
  readonly state: Hash;
}

const CHUNK = 64;

/** The hash of the tables with their changed and added records. */
function hashTables(base: Tables, changed: Tables, form: HashForm): string {
  const chunks = chunksOf(base, form);
  const dirty = new Map<number, string[]>();
  for (const [table, records] of changed) {
    for (const id of records.keys()) {
      const at = chunkOf(chunks, table, id);
      dirty.set(at, [...(dirty.get(at) ?? []), id]);
    }
  }
  const start = dirty.size === 0 ? chunks.length - 1 : Math.min(...dirty.keys());
  const hash = chunks[start]!.state.copy();
  for (const [offset, chunk] of chunks.slice(start).entries()) {
    const ids = dirty.get(start + offset);
    if (ids === undefined) hash.update(chunk.bytes);
    else {
      const all = [...new Set([...chunk.ids, ...ids])].sort();
      const record = (id: string): Dict =>
        changed.get(chunk.table)!.get(id) ?? base.get(chunk.table)!.get(id)!;
      hash.update(render(chunk, all, record, form));
    }
  }
  return hash.digest("hex");
}

/** The last chunk of the table that starts at or before the id. */
function chunkOf(chunks: readonly Chunk[], table: string, id: string): number {
  let found = chunks.findIndex((chunk) => chunk.table === table);
  while (chunks[found + 1]?.table === table && chunks[found + 1]!.ids[0]! <= id) found++;
  return found;
}

const chunksByTables = new WeakMap<Tables, Partial<Record<HashForm, readonly Chunk[]>>>();

function chunksOf(base: Tables, form: HashForm): readonly Chunk[] {
  const forms = chunksByTables.get(base) ?? {};
  chunksByTables.set(base, forms);
  forms[form] ??= makeChunks(base, form);
  return forms[form];
}

function makeChunks(base: Tables, form: HashForm): readonly Chunk[] {
  const [open, close] = form === "json" ? ["{", "}"] : ["(", ")"];
  const hash = createHash("sha256");
  const names = sortedKeys(base);
  const chunks: Chunk[] = [];
  for (const [number, table] of names.entries()) {
    const records = base.get(table)!;
    const ids = sortedKeys(records);
    // A tuple of one has a comma of its own; no table is that small.
    if (ids.length < 2 || names.length < 2)
      throw new Error(`the table ${table} has fewer than two records: it cannot be hashed`);
    // What stands around the members of a table, and around the tables.
    const [start, end] = member(table, "\0", form).split("\0") as [string, string];
    for (let at = 0; at < ids.length; at += CHUNK) {
      const first = at === 0;
      const last = at + CHUNK >= ids.length;
      const text = {
        table,
        ids: ids.slice(at, at + CHUNK),
        before: first ? `${number === 0 ? open : ", "}${start}${open}` : "",
        after: last ? `${close}${end}${number === names.length - 1 ? close : ""}` : "",
        first,
      };
      const bytes = Buffer.from(render(text, text.ids, (id) => records.get(id)!, form));
      chunks.push({ ...text, bytes, state: hash.copy() });
      hash.update(bytes);
    }
  }
  return chunks;
}

function render(
  { before, after, first }: Pick<Chunk, "before" | "after" | "first">,
  ids: readonly string[],
  record: (id: string) => Dict,
  form: HashForm,
): string {
  const textOf = (id: string): string =>
    form === "json" ? jsonText(record(id), true) : tupleText(record(id));
  const members = ids.map((id) => member(id, textOf(id), form)).join(", ");
  return `${before}${first ? "" : ", "}${members}${after}`;
}

function member(key: string, text: string, form: HashForm): string {
  return form === "json" ? `${asciiText(key)}: ${text}` : pair(key, text);
}

/** A database as worlds need it. */
export interface Database {
  /** SHA-256 of its canonical text. */
  hash(): string;
  copy(): Database;
}

/** A small database: one record, copied whole. */
export interface RecordDatabase extends Database {
  readonly root: Dict;
  copy(): RecordDatabase;
}

/** A database of one record. */
export function recordDatabase(root: Dict): RecordDatabase {
  return {
    root,
    hash: () => createHash("sha256").update(jsonText(root, true)).digest("hex"),
    copy: () => recordDatabase(deepCopy(root)),
  };
}

/** A large database: tables of records by id. */
export interface TableDatabase extends Database {
  table(name: string): Table;
  copy(): TableDatabase;
}

/** One table; reading gives shared records, which must not be changed. */
export interface Table {
  get(id: string): Dict | undefined;
  /** The record to write to: its own copy from now on. */
  own(id: string): Dict;
  put(id: string, record: Dict): void;
  entries(): Iterable<readonly [string, Dict]>;
}

/** A database of tables. */
export function tableDatabase(
  base: ReadonlyMap<string, Records>,
  form: HashForm,
  changed: ReadonlyMap<string, Map<string, Dict>> = new Map(
    [...base.keys()].map((name) => [name, new Map()]),
  ),
): TableDatabase {
  const tables = new Map<string, Table>();
  for (const [name, records] of base) tables.set(name, createTable(records, changed.get(name)!));
  return {
    table: (name) => tables.get(name)!,
    hash: () => hashTables(base, changed, form),
    copy() {
      const own = [...changed].map(([name, records]) => {
        const copied = [...records].map(([id, record]) => [id, deepCopy(record)] as const);
        return [name, new Map(copied)] as const;
      });
      return tableDatabase(base, form, new Map(own));
    },
  };
}

function createTable(base: Records, changed: Map<string, Dict>): Table {
  return {
    get: (id) => changed.get(id) ?? base.get(id),
    own(id) {
      const owned = changed.get(id);
      if (owned !== undefined) return owned;
      const copy = deepCopy(base.get(id)!);
      changed.set(id, copy);
      return copy;
    },
    put(id, record) {
      changed.set(id, record);
    },
    *entries() {
      for (const [id, record] of base) yield [id, changed.get(id) ?? record] as const;
      for (const [id, record] of changed) if (!base.has(id)) yield [id, record] as const;
    },
  };
}
