/** Where a process's resident memory is, from /proc/PID/smaps (Linux with glibc). */
import { readFileSync } from "node:fs";

/** Resident memory in MiB. */
export interface MemoryMap {
  /** In glibc's arenas of all threads but the first. */
  readonly arenas: number;
  /** In the first thread's arena. */
  readonly heap: number;
  /** Other memory without a file: V8's heaps, large blocks, stacks. */
  readonly other: number;
  /** Mapped files: programs and libraries. */
  readonly files: number;
  /** How many heaps the arenas have. */
  readonly heaps: number;
}

interface Mapping {
  readonly start: number;
  readonly end: number;
  readonly rights: string;
  readonly isFile: boolean;
  readonly name: string;
  readonly megabytes: number;
}

/** A heap of an arena is aligned to this and reserves as much (glibc's HEAP_MAX_SIZE). */
const HEAP_BYTES = 64 * 2 ** 20;

/** Sums up the text of `/proc/PID/smaps`. */
function memoryMap(smaps: string): MemoryMap {
  const mappings = mappingsOf(smaps);
  const sums = { arenas: 0, heap: 0, other: 0, files: 0, heaps: 0 };
  for (const [index, mapping] of mappings.entries()) {
    const isHeap = isArenaHeap(mapping, mappings[index + 1]);
    if (isHeap) sums.heaps++;
    const kind = isHeap
      ? "arenas"
      : mapping.name === "[heap]"
        ? "heap"
        : mapping.isFile
          ? "files"
          : "other";
    sums[kind] += mapping.megabytes;
  }
  return sums;
}

/** What is used of a heap can be written; the rest of its room follows and cannot. */
function isArenaHeap({ start, end, rights, isFile, name }: Mapping, next?: Mapping): boolean {
  if (isFile || name !== "" || rights !== "rw-p" || start % HEAP_BYTES !== 0) return false;
  if (end - start === HEAP_BYTES) return true;
  return next?.start === end && next.rights === "---p" && next.end % HEAP_BYTES === 0;
}

function mappingsOf(smaps: string): readonly Mapping[] {
  return smaps.split(/\n(?=[0-9a-f]+-[0-9a-f]+ )/).flatMap((text) => {
    const line = /^([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ (\d+) *(.*)/.exec(text);
    if (line === null) return [];
    const [, start, end, rights, inode, name] = line as unknown as readonly string[];
    return {
      start: Number.parseInt(start!, 16),
      end: Number.parseInt(end!, 16),
      rights: rights!,
      isFile: inode !== "0",
      name: name!,
      megabytes: Number(/^Rss:\s+(\d+) kB/m.exec(text)?.[1] ?? 0) / 1024,
    };
  });
}

/** The memory map of a process; undefined if it has ended. */
export function memoryOf(pid: number): MemoryMap | undefined {
  try {
    return memoryMap(readFileSync(`/proc/${pid}/smaps`, "utf8"));
  } catch {
    return undefined;
  }
}
