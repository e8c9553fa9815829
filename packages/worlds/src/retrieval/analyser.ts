/**
 * From text to the terms that are indexed and searched: words, without English possessives and stop
 * words, in lower case, stemmed. The terms are those of Lucene 9's English analyser with the
 * classic Porter stemmer, which the WebShop and Search-R1 indexes were built with.
 */
import { porterStem } from "./porter.js";
import { eachWord } from "./word-break.js";

/**
 * Must change whenever the same text may give different terms, so that stored indexes are rebuilt.
 */
export const ANALYSER_VERSION = 1;

const stopWords: ReadonlySet<string> = new Set(
  "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to was will with".split(
    " ",
  ),
);

/** A cache of words and their terms; words repeat, and stemming is the expensive part. */
const KNOWN_WORDS = 200_000;

/** Turns a text into its terms, in order and with repetitions. */
export type Analyser = (text: string) => readonly string[];

/** A function from text to terms that caches the words it has seen. */
export function createAnalyser(): Analyser {
  const known = new Map<string, string>();
  return (text) => {
    const terms: string[] = [];
    eachWord(text, (start, end) => {
      const word = text.slice(start, end);
      let term = known.get(word);
      if (term === undefined) {
        // Substrings keep the whole string in memory, so the cache must hold copies.
        const copy = ownCopy(word);
        term = termOf(copy);
        if (known.size >= KNOWN_WORDS) known.clear();
        known.set(copy, term);
      }
      if (term !== "") terms.push(term);
    });
    return terms;
  };
}

/** The term of one word; empty for a stop word. */
function termOf(word: string): string {
  const lower = lowerCase(withoutPossessive(word));
  if (stopWords.has(lower)) return "";
  return ownCopy(porterStem(lower));
}

function ownCopy(text: string): string {
  return Buffer.from(text, "utf16le").toString("utf16le");
}

function withoutPossessive(word: string): string {
  return /['\u2019\uff07][sS]$/.test(word) ? word.slice(0, -2) : word;
}

/**
 * Lower-cases code point by code point, like Java's `Character.toLowerCase`, without context rules.
 */
function lowerCase(word: string): string {
  if (!/[\u0130\u03a3]/.test(word)) return word.toLowerCase();
  return Array.from(word, (character) => {
    if (character === "\u0130") return "i";
    return character === "\u03a3" ? "\u03c3" : character.toLowerCase();
  }).join("");
}
