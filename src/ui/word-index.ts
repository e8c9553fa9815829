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
export function wordsOf(text: string): readonly string[] {
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
      const seen = new Set<string>();
      let room = MOST_TEXT;
      for (const text of texts) {
        for (const word of wordsOf(text.length > room ? text.slice(0, room) : text))
          seen.add(word.length > LONGEST_WORD ? word.slice(0, LONGEST_WORD) : word);
        room -= text.length;
        if (room <= 0) break;
      }
      for (const word of seen) {
        let list = lists.get(word);
        if (list === undefined) {
          if (lists.size >= MOST_WORDS) continue;
          list = { bytes: new Uint8Array(4), length: 0, last: -1 };
          lists.set(word, list);
        }
        append(list, episode - list.last);
        list.last = episode;
      }
    },
    find(query, count) {
      const found = new Uint8Array(count).fill(1);
      for (const part of new Set(wordsOf(query))) {
        const some = new Uint8Array(count);
        for (const [word, list] of lists) if (word.includes(part)) mark(list, some);
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
    const longer = new Uint8Array(Math.ceil(1.5 * list.bytes.length) + 5);
    longer.set(list.bytes.subarray(0, list.length));
    list.bytes = longer;
  }
  let rest = difference;
  for (; rest >= 0x80; rest >>>= 7) list.bytes[list.length++] = (rest & 0x7f) | 0x80;
  list.bytes[list.length++] = rest;
}

function mark({ bytes, length }: Postings, found: Uint8Array): void {
  let episode = -1;
  for (let at = 0; at < length; ) {
    let difference = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++]!;
      difference |= (byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    episode += difference;
    if (episode >= found.length) return;
    found[episode] = 1;
  }
}
