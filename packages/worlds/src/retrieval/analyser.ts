/**
 * From text to the terms that are indexed and searched: words, without English possessives and stop
 * words, in lower case, stemmed. The terms are those of Lucene 9's English analyser with the
 * classic Porter stemmer, which the WebShop and Search-R1 indexes were built with.
 */
import { eachWord } from "./word-break.js";

/**
 * The Porter stemmer (M. F. Porter, "An algorithm for suffix stripping", 1980), with the two later
 * changes in its author's own code that Lucene keeps: `bli` → `ble` and `logi` → `log`.
 */

type Rule = readonly [suffix: string, replacement: string];

/** Rules written as `suffix:replacement`. */
const rules = (text: string): readonly Rule[] =>
  text.split(/\s+/).map((rule) => rule.split(":") as [string, string]);

const step2 = rules(
  `ational:ate tional:tion enci:ence anci:ance izer:ize bli:ble alli:al entli:ent eli:e ousli:ous
  ization:ize ation:ate ator:ate alism:al iveness:ive fulness:ful ousness:ous aliti:al iviti:ive
  biliti:ble logi:log`,
);

const step3 = rules("icate:ic ative: alize:al iciti:ic ical:ic ful: ness:");

const step4: readonly string[] =
  "al ance ence er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize".split(" ");

/** The stem of a lower-case word; words of one or two characters are unchanged. */
export function porterStem(word: string): string {
  if (word.length <= 2) return word;
  let stem = plural(word);
  stem = pastAndGerund(stem);
  if (stem.endsWith("y") && hasVowel(stem, stem.length - 1)) stem = `${stem.slice(0, -1)}i`;
  stem = replaceFirst(stem, step2);
  stem = replaceFirst(stem, step3);
  stem = dropLast(stem);
  return finalLetters(stem);
}

function isConsonant(word: string, at: number): boolean {
  switch (word.charCodeAt(at)) {
    case 97: // a
    case 101: // e
    case 105: // i
    case 111: // o
    case 117: // u
      return false;
    case 121: // y: a consonant at the start and after a vowel
      return at === 0 || !isConsonant(word, at - 1);
    default:
      return true;
  }
}

function hasVowel(word: string, end: number): boolean {
  for (let at = 0; at < end; at++) if (!isConsonant(word, at)) return true;
  return false;
}

/** The paper's m: how many times a vowel sequence is followed by consonants before `end`. */
function measure(word: string, end: number): number {
  let count = 0;
  let vowelBefore = false;
  for (let at = 0; at < end; at++) {
    const consonant = isConsonant(word, at);
    if (consonant && vowelBefore) count++;
    vowelBefore = !consonant;
  }
  return count;
}

function endsInDoubleConsonant(word: string): boolean {
  const last = word.length - 1;
  return last >= 1 && word[last] === word[last - 1] && isConsonant(word, last);
}

/** Consonant, vowel, consonant before `end`, the last not w, x or y: a short syllable such as `hop`. */
function endsShort(word: string, end: number): boolean {
  if (end < 3 || !isConsonant(word, end - 1) || isConsonant(word, end - 2)) return false;
  return isConsonant(word, end - 3) && !"wxy".includes(word[end - 1]!);
}

function plural(word: string): string {
  if (!word.endsWith("s")) return word;
  if (word.endsWith("sses") || word.endsWith("ies")) return word.slice(0, -2);
  return word.endsWith("ss") ? word : word.slice(0, -1);
}

function pastAndGerund(word: string): string {
  if (word.endsWith("eed")) return measure(word, word.length - 3) > 0 ? word.slice(0, -1) : word;
  const cut = word.endsWith("ed") ? 2 : word.endsWith("ing") ? 3 : 0;
  if (cut === 0 || !hasVowel(word, word.length - cut)) return word;
  const stem = word.slice(0, -cut);
  if (stem.endsWith("at") || stem.endsWith("bl") || stem.endsWith("iz")) return `${stem}e`;
  if (endsInDoubleConsonant(stem)) return /[lsz]$/.test(stem) ? stem : stem.slice(0, -1);
  return measure(stem, stem.length) === 1 && endsShort(stem, stem.length) ? `${stem}e` : stem;
}

/** Applies the rule whose suffix the word has, if the part before it is long enough. */
function replaceFirst(word: string, step: readonly Rule[]): string {
  for (const [suffix, replacement] of step) {
    if (!word.endsWith(suffix)) continue;
    const end = word.length - suffix.length;
    return measure(word, end) > 0 ? word.slice(0, end) + replacement : word;
  }
  return word;
}

function dropLast(word: string): string {
  for (const suffix of step4) {
    if (!word.endsWith(suffix)) continue;
    const end = word.length - suffix.length;
    if (suffix === "ion" && !/[st]/.test(word[end - 1] ?? "")) continue;
    return measure(word, end) > 1 ? word.slice(0, end) : word;
  }
  return word;
}

function finalLetters(word: string): string {
  let stem = word;
  if (stem.endsWith("e")) {
    const end = stem.length - 1;
    const size = measure(stem, end);
    if (size > 1 || (size === 1 && !endsShort(stem, end))) stem = stem.slice(0, -1);
  }
  return stem.endsWith("ll") && measure(stem, stem.length) > 1 ? stem.slice(0, -1) : stem;
}

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
