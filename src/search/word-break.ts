/**
 * Splits a text into words at Unicode's word boundaries (UAX #29), like Lucene's standard
 * tokenizer.
 *
 * Left out of the annex, because no text we index contains them: keycap sequences other than
 * digits, and the double quote inside Hebrew words.
 */

const OTHER = 0;
const LETTER = 1;
const NUMERIC = 2;
/** Underscore and similar characters: they join everything but are not a word by themselves. */
const CONNECTOR = 3;
const MID_LETTER = 4;
const MID_NUMBER = 5;
const MID_BOTH = 6;
const KATAKANA = 7;
const SINGLE = 8;
/** Marks and format characters: they belong to the character before them. */
const ATTACHED = 9;
const SYMBOL = 10;
const SOUTHEAST_ASIAN = 11;
const FLAG = 12;
const UNKNOWN = 255;

const ZERO_WIDTH_JOINER = 0x200d;
/** Longer words are split into parts of this many UTF-16 units. */
const LONGEST_WORD = 255;

const midLetter = /[:·\u0387\u05f4\u2027\ufe13\ufe55\uff1a]/u;
const midBoth = /['.\u2018\u2019\u2024\ufe52\uff07\uff0e]/u;
const midNumber =
  /[,;\u037e\u0589\u060c\u060d\u066c\u07f8\u2044\ufe10\ufe14\ufe50\ufe54\uff0c\uff1b]/u;
const katakana = /[\p{Script=Katakana}\u3031-\u3035\u309b\u309c\u30a0\u30fc\uff70]/u;
/**
 * Pictographs, as in Unicode 11 to 16. Unicode 17 removed many (★ among them), so the regular
 * expressions of a newer Node would find other words than the indexes we compare with.
 */
const symbol =
  /[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u2199\u21a9\u21aa\u231a\u231b\u2328\u2388\u23cf\u23e9-\u23f3\u23f8-\u23fa\u24c2\u25aa\u25ab\u25b6\u25c0\u25fb-\u25fe\u2600-\u2605\u2607-\u2612\u2614-\u2685\u2690-\u2705\u2708-\u2712\u2714\u2716\u271d\u2721\u2728\u2733\u2734\u2744\u2747\u274c\u274e\u2753-\u2755\u2757\u2763-\u2767\u2795-\u2797\u27a1\u27b0\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\u3030\u303d\u3297\u3299\u{1f000}-\u{1f0ff}\u{1f10d}-\u{1f10f}\u{1f12f}\u{1f16c}-\u{1f171}\u{1f17e}\u{1f17f}\u{1f18e}\u{1f191}-\u{1f19a}\u{1f1ad}-\u{1f1e5}\u{1f201}-\u{1f20f}\u{1f21a}\u{1f22f}\u{1f232}-\u{1f23a}\u{1f23c}-\u{1f23f}\u{1f249}-\u{1f3fa}\u{1f400}-\u{1f53d}\u{1f546}-\u{1f64f}\u{1f680}-\u{1f6ff}\u{1f774}-\u{1f77f}\u{1f7d5}-\u{1f7ff}\u{1f80c}-\u{1f80f}\u{1f848}-\u{1f84f}\u{1f85a}-\u{1f85f}\u{1f888}-\u{1f88f}\u{1f8ae}-\u{1f8ff}\u{1f90c}-\u{1f93a}\u{1f93c}-\u{1f945}\u{1f947}-\u{1faff}\u{1fc00}-\u{1fffd}]/u;
const southeastAsian =
  /[\p{Script=Thai}\p{Script=Lao}\p{Script=Myanmar}\p{Script=Khmer}\p{Script=Tai_Le}\p{Script=New_Tai_Lue}\p{Script=Tai_Tham}]/u;

/** Finding a class takes a dozen regular expressions, so the class of each code point is cached. */
const classes = new Uint8Array(0x110000).fill(UNKNOWN);

function classOf(codePoint: number): number {
  const known = classes[codePoint]!;
  return known === UNKNOWN ? classify(codePoint) : known;
}

function classify(codePoint: number): number {
  const character = String.fromCodePoint(codePoint);
  const found = findClass(codePoint, character);
  classes[codePoint] = found;
  return found;
}

function findClass(codePoint: number, character: string): number {
  if (midLetter.test(character)) return MID_LETTER;
  if (midBoth.test(character)) return MID_BOTH;
  if (midNumber.test(character)) return MID_NUMBER;
  if (codePoint === 0x200b) return OTHER;
  if (/[\u{1f1e6}-\u{1f1ff}]/u.test(character)) return FLAG;
  if (codePoint >= 0x1f3fb && codePoint <= 0x1f3ff) return ATTACHED; // skin tones
  if (/[\p{M}\p{Cf}\uff9e\uff9f]/u.test(character)) return ATTACHED;
  if (symbol.test(character)) return SYMBOL;
  if (/\p{Nd}/u.test(character)) return NUMERIC;
  if (/\p{Pc}|\u202f/u.test(character)) return CONNECTOR;
  if (katakana.test(character)) return KATAKANA;
  if (/\p{Ideographic}|\p{Script=Hiragana}/u.test(character)) return SINGLE;
  if (southeastAsian.test(character) && /\p{L}/u.test(character)) return SOUTHEAST_ASIAN;
  if (/\p{Alphabetic}/u.test(character)) return LETTER;
  return OTHER;
}

/** Calls `word` with the start and end of every word of the text, in order. */
export function eachWord(text: string, word: (start: number, end: number) => void): void {
  const emit = (start: number, end: number): void => {
    let from = start;
    for (; end - from > LONGEST_WORD; from += LONGEST_WORD) word(from, from + LONGEST_WORD);
    word(from, end);
  };
  for (let at = 0; at < text.length; ) {
    const codePoint = text.codePointAt(at)!;
    switch (classOf(codePoint)) {
      case LETTER:
      case NUMERIC:
      case CONNECTOR:
      case KATAKANA: {
        const end = wordEnd(text, at);
        // Connectors alone are not a word; a word's first other character is never far away.
        if (hasContent(text, at, end)) emit(at, end);
        at = end;
        break;
      }
      case SYMBOL: {
        const end = symbolEnd(text, at);
        emit(at, end);
        at = end;
        break;
      }
      case FLAG: {
        const second = attachedEnd(text, at + 2);
        const paired = second < text.length && classOf(text.codePointAt(second)!) === FLAG;
        const end = paired ? attachedEnd(text, second + 2) : second;
        emit(at, end);
        at = end;
        break;
      }
      case SOUTHEAST_ASIAN: {
        const end = runEnd(text, at, SOUTHEAST_ASIAN);
        emit(at, end);
        at = end;
        break;
      }
      case SINGLE: {
        const end = attachedEnd(text, at + units(codePoint));
        emit(at, end);
        at = end;
        break;
      }
      default:
        at += units(codePoint);
    }
  }
}

function units(codePoint: number): number {
  return codePoint > 0xffff ? 2 : 1;
}

function attachedEnd(text: string, from: number): number {
  let at = from;
  while (at < text.length) {
    const codePoint = text.codePointAt(at)!;
    if (codePoint < 128 || classOf(codePoint) !== ATTACHED) break;
    at += units(codePoint);
  }
  return at;
}

function runEnd(text: string, from: number, kind: number): number {
  let at = from;
  while (at < text.length && classOf(text.codePointAt(at)!) === kind)
    at = attachedEnd(text, at + units(text.codePointAt(at)!));
  return at;
}

function hasContent(text: string, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const kind = classOf(text.codePointAt(at)!);
    if (kind === LETTER || kind === NUMERIC || kind === KATAKANA) return true;
  }
  return false;
}

/** The end of a symbol with its variation marks, and of what zero-width joiners attach to it. */
function symbolEnd(text: string, start: number): number {
  let at = attachedEnd(text, start + units(text.codePointAt(start)!));
  while (
    at < text.length &&
    text.charCodeAt(at - 1) === ZERO_WIDTH_JOINER &&
    classOf(text.codePointAt(at)!) === SYMBOL
  )
    at = attachedEnd(text, at + units(text.codePointAt(at)!));
  return at;
}

function wordEnd(text: string, start: number): number {
  let codePoint = text.codePointAt(start)!;
  let before = classOf(codePoint);
  let at = attachedEnd(text, start + units(codePoint));
  while (at < text.length) {
    codePoint = text.codePointAt(at)!;
    const here = classOf(codePoint);
    const next = attachedEnd(text, at + units(codePoint));
    if (joins(before, here)) {
      before = here;
      at = next;
      continue;
    }
    if (next >= text.length || !joinsAcross(before, here)) break;
    const beyond = text.codePointAt(next)!;
    if (classOf(beyond) !== before) break;
    at = attachedEnd(text, next + units(beyond));
  }
  return at;
}

function joins(before: number, here: number): boolean {
  if (here === LETTER || here === NUMERIC) return before !== KATAKANA;
  if (here === CONNECTOR) return true;
  return here === KATAKANA && (before === KATAKANA || before === CONNECTOR);
}

/** Whether `here` may stand between two characters of class `before`. */
function joinsAcross(before: number, here: number): boolean {
  if (before === LETTER) return here === MID_LETTER || here === MID_BOTH;
  return before === NUMERIC && (here === MID_NUMBER || here === MID_BOTH);
}
