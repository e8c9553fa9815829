/** Invented names: pronounceable, of nobody and nowhere, each used once. */
import type { Random } from "../../random.js";

const starts = "b br d dr f fl g gr h j k kl l m n p pr qu r s sk st t th tr v w y z".split(" ");
const vowels = "a e i o u ae ei ia ou".split(" ");
const middles = "b d g k l ld lm ln m n nd r rd rk rm rn s sk st t v z".split(" ");

/** Name endings for each kind. */
const endings = {
  given: "a e i o an el in or is u".split(" "),
  family: "ack ald ber end ig olk ost ul und yr".split(" "),
  town: "bury dale fell gate ham holt mere mouth stow wick".split(" "),
  realm: "ania aria ethia onia undia uria".split(" "),
  river: "ble dle rra sse ven wen".split(" "),
  language: "ese esh ic ish".split(" "),
} as const;

/** What a name is for. */
export type NameKind = keyof typeof endings;

/** Generates names. */
export type NameSource = (kind: NameKind) => string;

/** A generator of unique names. */
export function createNames(random: Random): NameSource {
  const given = new Set<string>();
  return (kind) => {
    // Names get longer as they run out, so that there is always another one.
    for (let syllables = 1; ; syllables = 1 + Math.floor(given.size / 2000) + random.int(2)) {
      let name = random.pick(starts);
      for (let at = 0; at < syllables; at++) name += random.pick(vowels) + random.pick(middles);
      name += random.pick(endings[kind]);
      const proper = name[0]!.toUpperCase() + name.slice(1);
      if (given.has(proper)) continue;
      given.add(proper);
      return proper;
    }
  };
}
