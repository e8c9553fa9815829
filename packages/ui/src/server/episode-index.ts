/**
 * The index of a run's episodes, beside its record: what one filters by, the words, and where each
 * record is. It is continued when the record has grown, and rebuilt when the record was rewritten,
 * as resuming a run does.
 */
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { writeFileAtomically } from "@pawl/core/files/atomic-file.js";
import { openRegularHandle } from "@pawl/core/files/regular-file.js";
import type { EpisodeRecord } from "@pawl/core/runs/episode-record.js";
import { episodesPath } from "@pawl/core/runs/small-file.js";
import { type EpisodeEntry, entryOf, ofRow, rowOf, textsOf } from "./episode-entry.js";
import { scanMembers, trailerBefore } from "./record-scan.js";

/**
 * Which episodes contain a word: for each word the numbers of its episodes, ascending, written as
 * differences in bytes of seven bits. Fifty thousand episodes then need some ten megabytes, and a
 * query reads only the lists of its words.
 */

/** More different words than this are not indexed: random text must not fill the memory. */
const MOST_WORDS = 200_000;
/** A longer word is indexed by its beginning. */
const LONGEST_WORD = 32;
/** Of an episode with more text than this, the beginning is indexed. */
const MOST_TEXT = 2 ** 20;

interface Postings {
  bytes: Uint8Array;
  length: number;
  /** The last episode in the list. */
  last: number;
}

/** Words of episodes, in the order in which episodes were added. */
interface WordIndex {
  /** Episodes must be added in ascending order. */
  add(episode: number, texts: readonly string[]): void;
  /** 1 for each of the first `count` episodes that has every word of the query, or part of one. */
  find(query: string, count: number): Uint8Array;
  /** Whether there were more words than can be kept. */
  readonly full: boolean;
  /** The words as they are written to a file, and their lists in the same order. */
  save(): { readonly words: SavedWords["words"]; readonly lists: readonly Uint8Array[] };
}

/** An index as it is read from a file: the lists of all words are in `bytes`, one after another. */
interface SavedWords {
  readonly words: readonly (readonly [word: string, bytes: number, last: number])[];
  readonly bytes: Buffer;
}

/** The words of a text, in lower case. */
function wordsOf(text: string): readonly string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
}

/** An empty index, or one that was saved. */
function createWordIndex(saved?: SavedWords): WordIndex {
  const lists = new Map<string, Postings>();
  let at = 0;
  for (const [word, length, last] of saved?.words ?? []) {
    lists.set(word, { bytes: saved!.bytes.subarray(at, at + length), length, last });
    at += length;
  }
  return {
    get full() {
      return lists.size >= MOST_WORDS;
    },
    add(episode, texts) {
      let room = MOST_TEXT;
      for (const text of texts) {
        for (const found of wordsOf(text.length > room ? text.slice(0, room) : text)) {
          const word = found.length > LONGEST_WORD ? found.slice(0, LONGEST_WORD) : found;
          let list = lists.get(word);
          if (list?.last === episode) continue;
          if (list === undefined) {
            if (lists.size >= MOST_WORDS) continue;
            list = { bytes: new Uint8Array(4), length: 0, last: -1 };
            lists.set(word, list);
          }
          append(list, episode - list.last);
          list.last = episode;
        }
        room -= text.length;
        if (room <= 0) break;
      }
    },
    find(query, count) {
      const found = new Uint8Array(count).fill(1);
      for (const part of new Set(wordsOf(query))) {
        const some = new Uint8Array(count);
        const having = [...lists].flatMap(([word, list]) => (word.includes(part) ? [list] : []));
        // Long lists first: once all episodes are marked, the many short ones need not be read.
        let left = count;
        for (const list of having.sort((a, b) => b.length - a.length)) {
          if (left === 0) break;
          left -= mark(list, some);
        }
        for (let i = 0; i < count; i++) found[i]! &= some[i]!;
      }
      return found;
    },
    save: () => ({
      words: [...lists].map(([word, { length, last }]) => [word, length, last]),
      lists: [...lists.values()].map(({ bytes, length }) => bytes.subarray(0, length)),
    }),
  };
}

function append(list: Postings, difference: number): void {
  if (list.length + 5 > list.bytes.length) {
    const longer = new Uint8Array(Math.ceil(1.25 * list.bytes.length) + 5);
    longer.set(list.bytes.subarray(0, list.length));
    list.bytes = longer;
  }
  let rest = difference;
  for (; rest >= 0x80; rest >>>= 7) list.bytes[list.length++] = (rest & 0x7f) | 0x80;
  list.bytes[list.length++] = rest;
}

/** Marks the episodes of a list; how many were not marked before. */
function mark({ bytes, length }: Postings, found: Uint8Array): number {
  let episode = -1;
  let added = 0;
  for (let at = 0; at < length; ) {
    let difference = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++]!;
      difference |= (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    episode += difference;
    if (episode >= found.length) break;
    added += 1 - found[episode]!;
    found[episode] = 1;
  }
  return added;
}

/** The file of an index, in the run's folder. */
export const INDEX_FILE = "episodes.index";
/** Files of another version are rebuilt. */
const VERSION = 1;
/** A file is written again once this much of the record is new. */
const SAVE_EVERY = 2 ** 26;

/** The index of one run. */
export interface EpisodeIndex {
  readonly entries: readonly EpisodeEntry[];
  readonly words: WordIndex;
  /** Bytes of the record that are indexed, and that there are; and whether it is being read. */
  readonly progress: { readonly done: number; readonly size: number; readonly reading: boolean };
  /** What could not be read. */
  readonly problems: readonly string[];
  /** Changes whenever the index was rebuilt from the start. */
  readonly generation: number;
  /**
   * Brings the index up to date. Resolves when it is, or after `patienceMs`; the work goes on.
   */
  refresh(patienceMs?: number): Promise<void>;
}

interface State {
  entries: EpisodeEntry[];
  words: WordIndex;
  end: number;
  trailer: string;
  problems: string[];
}

const empty = (): State => ({
  entries: [],
  words: createWordIndex(),
  end: 0,
  trailer: "",
  problems: [],
});

/** Opens the index of a run; nothing is read before `refresh`. */
export function openEpisodeIndex(folder: string): EpisodeIndex {
  const record = episodesPath(folder);
  const file = join(folder, INDEX_FILE);
  let state: State | undefined;
  let generation = 0;
  let saved = 0;
  let opened: Promise<void> | undefined;
  let working: Promise<void> | undefined;

  const isStale = async ({ end, trailer }: State): Promise<boolean> =>
    end > 0 && (await trailerBefore(record, end)) !== trailer;

  const restart = (): State => {
    generation += 1;
    saved = 0;
    return empty();
  };

  const load = async (): Promise<void> => {
    if (existsSync(record)) state = await readIndex(file);
    saved = state?.end ?? 0;
  };

  const update = async (): Promise<void> => {
    if (!existsSync(record)) {
      state = state !== undefined && state.end > 0 ? restart() : (state ?? empty());
      return;
    }
    state ??= empty();
    if (await isStale(state)) state = restart();
    const now = state;
    try {
      for await (const { offset, length, trailer, lines } of scanMembers(record, now.end)) {
        if (lines === undefined)
          report(now, `the record at byte ${offset} is damaged; its episodes are left out`);
        for (const [line, text] of (lines ?? []).entries())
          addLine(now, text, { offset, length, line });
        now.end = offset + length;
        now.trailer = trailer;
      }
    } catch (error) {
      report(now, (error as Error).message);
    }
    if (now.end - saved >= SAVE_EVERY || (saved === 0 && now.end > 0)) {
      saved = now.end;
      await writeIndex(file, now);
    }
  };

  return {
    get entries() {
      return state?.entries ?? [];
    },
    get words() {
      return state?.words ?? createWordIndex();
    },
    get progress() {
      const size = existsSync(record) ? statSync(record).size : 0;
      return { done: state?.end ?? 0, size, reading: working !== undefined };
    },
    get problems() {
      return state?.problems ?? [];
    },
    get generation() {
      return generation;
    },
    async refresh(patienceMs = Number.POSITIVE_INFINITY) {
      // Reading the index is quick, and without it there would be nothing to show.
      opened ??= load();
      await opened;
      working ??= update().finally(() => {
        working = undefined;
      });
      if (patienceMs === Number.POSITIVE_INFINITY) return working;
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, patienceMs);
      });
      await Promise.race([working, late]).finally(() => clearTimeout(timer));
    },
  };
}

/** Most problems that are listed. */
const MOST_PROBLEMS = 20;

function report({ problems }: State, message: string): void {
  if (problems.length < MOST_PROBLEMS && !problems.includes(message)) problems.push(message);
}

function addLine(
  state: State,
  text: string,
  place: Pick<EpisodeEntry, "offset" | "length" | "line">,
): void {
  const { entries, words } = state;
  try {
    const record = JSON.parse(text) as EpisodeRecord;
    const entry = entryOf(record, place);
    words.add(entries.length, textsOf(record));
    entries.push(entry);
  } catch (error) {
    report(state, `the record at byte ${place.offset} is no episode: ${(error as Error).message}`);
  }
}

/** The file: one line of JSON, then the lists of the words. */
async function writeIndex(
  path: string,
  { entries, words, end, trailer, problems }: State,
): Promise<void> {
  const { words: list, lists } = words.save();
  const head = { version: VERSION, end, trailer, problems, words: list, rows: entries.map(rowOf) };
  try {
    await writeFileAtomically(path, async (handle) => {
      await handle.write(`${JSON.stringify(head)}\n`);
      for (const part of batches(lists)) await handle.write(part);
    });
  } catch {
    // A folder that cannot be written is still shown; its index is then made each time.
  }
}

/** Many small lists as few buffers; a copy of all of them at once would double the memory. */
function* batches(lists: readonly Uint8Array[]): Generator<Buffer> {
  let part: Uint8Array[] = [];
  let size = 0;
  for (const list of lists) {
    part.push(list);
    size += list.length;
    if (size < 2 ** 20) continue;
    yield Buffer.concat(part);
    part = [];
    size = 0;
  }
  yield Buffer.concat(part);
}

/** In one piece: `readFile` reads a large file in many small ones. */
async function readWhole(path: string): Promise<Buffer> {
  const file = await openRegularHandle(path);
  try {
    const { size } = await file.stat();
    const content = Buffer.allocUnsafe(size);
    const { bytesRead } = await file.read(content, 0, size, 0);
    return content.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

async function readIndex(path: string): Promise<State | undefined> {
  if (!existsSync(path)) return undefined;
  try {
    const content = await readWhole(path);
    const cut = content.indexOf(0x0a);
    const { version, end, trailer, problems, words, rows } = JSON.parse(
      content.toString("utf8", 0, cut),
    );
    if (version !== VERSION) return undefined;
    return {
      entries: (rows as Parameters<typeof ofRow>[0][]).map(ofRow),
      words: createWordIndex({ words, bytes: content.subarray(cut + 1) }),
      end,
      trailer,
      problems,
    };
  } catch {
    // A damaged index is only a cache.
    return undefined;
  }
}
