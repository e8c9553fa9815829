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
export interface WordIndex {
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
export interface SavedWords {
  readonly words: readonly (readonly [word: string, bytes: number, last: number])[];
  readonly bytes: Buffer;
}

/** The words of a text, in lower case. */
function wordsOf(text: string): readonly string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
}

/** An empty index, or one that was saved. */
export function createWordIndex(saved?: SavedWords): WordIndex {
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
