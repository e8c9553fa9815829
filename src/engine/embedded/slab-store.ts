/** Rows a lane has read and may be asked to go on from, by the numbers they were given. */
import type { Slab, SlabRow } from "./slab.js";

/** Keeps slabs as long as one of their rows is wanted and there is room. */
export interface SlabStore {
  put(handle: number, row: SlabRow): void;
  /** The row, which is no longer kept; undefined if it had to go. */
  take(handle: number): SlabRow | undefined;
  /** Lets all rows of a slab go. */
  drop(slab: Slab): void;
  clear(): void;
}

/** An empty store of so many bytes at most; what was kept longest goes first. */
export function createSlabStore(maxBytes: number): SlabStore {
  const slabs = new Map<Slab, Map<number, SlabRow>>();
  const slabOf = new Map<number, Slab>();
  let bytes = 0;
  const drop = (slab: Slab) => {
    const rows = slabs.get(slab);
    if (rows === undefined) return;
    for (const handle of rows.keys()) slabOf.delete(handle);
    slabs.delete(slab);
    bytes -= sizeOf(slab);
  };
  return {
    put(handle, row) {
      const known = slabs.get(row.slab);
      if (known === undefined) {
        slabs.set(row.slab, new Map([[handle, row]]));
        bytes += sizeOf(row.slab);
      } else known.set(handle, row);
      slabOf.set(handle, row.slab);
      while (bytes > maxBytes) drop(slabs.keys().next().value!);
    },
    take(handle) {
      const slab = slabOf.get(handle);
      if (slab === undefined) return undefined;
      const rows = slabs.get(slab)!;
      const row = rows.get(handle);
      rows.delete(handle);
      slabOf.delete(handle);
      if (rows.size === 0) drop(slab);
      return row;
    },
    drop,
    clear() {
      slabs.clear();
      slabOf.clear();
      bytes = 0;
    },
  };
}

/** What its rows take; memory to grow into costs nothing until it is used. */
function sizeOf({ keys, values }: Slab): number {
  return [...keys, ...values].reduce((sum, array) => sum + array.byteLength, 0);
}
