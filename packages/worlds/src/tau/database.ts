/**
 * Databases. Large ones share their records with every other copy until a record is changed: a copy
 * is made when a tool takes it to write. So a world is cloned in microseconds, and a state's hash
 * only renders what was changed.
 */
import { createHash } from "node:crypto";
import { jsonText } from "./json.js";
import { type HashForm, hashTables, type Records } from "./table-hash.js";
import { type Dict, deepCopy } from "./value.js";

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
