/**
 * The nouns of a product title, for the part of the score that compares kinds of products.
 *
 * The original asks spaCy's en_core_web_sm for tokens tagged NOUN or PROPN. That tagger reads the
 * capitalised words of a title mostly as proper nouns, so this one counts every word as a noun
 * unless it is a number, a function word, a common adjective, adverb or participle of product
 * titles, or has an adjective's ending. It can differ for adjectives that spaCy takes for names,
 * for hyphenated words (both split them) and for units; it only matters if title, query and
 * category leave the kind open.
 */

const notNouns: ReadonlySet<string> = new Set(
  // Function words.
  (
    "a about above across after all also an and any are as at be been before below between both but by can do does down each either every for from had has have he her here his how i if in inside into is it its just less like many may me more most much must my near no nor not of off on only onto or other our out outside over own per same she should so some such than that the their them then there these they this those through to too under until up upon us very was we were what when where which while who whose will with within without you your " +
    // Adjectives, adverbs, participles.
    "adjustable advanced amazing antique assorted automatic available beautiful best better big bold bright casual cheap classic clean clear colorful comfortable comfy compact compatible cool cozy curved cute daily dark decorative deep delicious digital disposable distressed double dual durable easy elastic elegant electric extra fast fine first flat flexible floral formal free fresh full fun funny general gentle good great handmade happy heavy high hidden hooded hot huge large last late light lightweight little long loose lovely low main mini modern multi natural new nice non nordic old open organic original outdoor perfect personalized plain plus portable premium printed professional pure quick quiet random real reclaimed removable rich round royal rustic safe scented sexy sharp short silent similar simple single sleeveless slim small smart smooth soft solid special square stainless standard stretchy strong stylish super sweet tall thick thin tight tiny top traditional true ultra unique universal unscented upholstered useful vintage vivid warm washable wide wild wireless wooden young " +
    // Verbs.
    "add bring buy come enjoy fit fits get give go help helps include includes including keep keeps let look love made make makes making need see show showed take use used using want wear"
  ).split(" "),
);

const adjectiveEnding = /(?:able|ible|ful|less|ous|ive|ish|ly|proof|resistant)$/;

/** The nouns of a title, lower-case, in order and with repetitions. */
export function nounsOf(title: string): readonly string[] {
  const words = title.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];
  return words.filter(
    (word) =>
      /^\p{L}/u.test(word) && word.length > 1 && !notNouns.has(word) && !adjectiveEnding.test(word),
  );
}
