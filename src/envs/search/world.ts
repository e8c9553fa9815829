/**
 * A made-up world of people, places and works, generated from a seed: entities with unique names,
 * facts that relate them, a passage that states the facts of each entity, and further passages that
 * only mention entities.
 *
 * Given and family names, and the words of titles, are shared among many entities, so a query has
 * to name an entity fully to find it.
 */
import { createRandom, mixSeed, type Random } from "../../random.js";
import type { Passage } from "../../search/corpus.js";
import {
  asides,
  type Relation,
  relations,
  type ThingKind,
  titleWords,
  townWords,
  values,
} from "./world-relations.js";

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
type NameKind = keyof typeof endings;

/** Generates names. */
type NameSource = (kind: NameKind) => string;

/** A generator of unique names. */
function createNames(random: Random): NameSource {
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

/** An entity with a name and a passage. */
export interface Thing {
  readonly kind: ThingKind;
  readonly name: string;
  /** Id of the passage that states its facts. */
  readonly passage: string;
  /** The values of its relations: an entity, or a word. */
  readonly facts: ReadonlyMap<string, Thing | string>;
}

/**
 * Whether every town, river and language has a word of its own, or they share words as people do, so
 * that even a large world has few words.
 */
type Naming = "own" | "shared";

/** The whole world. */
export interface KnowledgeWorld {
  readonly things: readonly Thing[];
  readonly passages: readonly Passage[];
}

interface UnfinishedThing extends Thing {
  readonly facts: Map<string, Thing | string>;
}

type Population = Readonly<Record<ThingKind, readonly UnfinishedThing[]>>;

/** The share of each kind, with a minimum; people are the rest. */
const shares = {
  realm: [0.03, 2],
  town: [0.17, 4],
  work: [0.25, 4],
  school: [0.1, 3],
} as const;

/** One passage in this many only mentions entities. */
const ASIDE_EVERY = 4;
const FIRST_YEAR = 300;
/** People are numbered by age: teachers and mothers are among this many before them. */
const ELDERS = 40;

/** What a world is made from. */
export interface WorldOptions {
  /** Number of entities. */
  readonly size: number;
  readonly seed: number;
  readonly names?: Naming | undefined;
  /** The names of the relations that exist in it (default: all). */
  readonly relations?: readonly string[] | undefined;
}

/** The world of these options, always the same. */
export function makeWorld({ size, seed, names: naming, relations }: WorldOptions): KnowledgeWorld {
  const random = createRandom(mixSeed("knowledge world", seed));
  const own = createNames(random);
  const names = naming === "shared" ? sharedNames(size, own, random) : own;
  const population = populate(size, names, random);
  relate(population, names, random);
  const things = Object.values(population).flat();
  if (relations !== undefined) for (const { facts } of things) keepOnly(facts, relations);
  const passages = [
    ...things.map((thing) => tellFacts(thing, random)),
    ...mentionThings(things, random),
  ];
  return { things, passages: random.shuffle(passages) };
}

function populate(size: number, names: NameSource, random: Random): Population {
  const count = (kind: keyof typeof shares): number =>
    Math.max(shares[kind][1], Math.round(size * shares[kind][0]));
  const make = (kind: ThingKind, many: number, name: () => string): UnfinishedThing[] =>
    Array.from({ length: many }, (_, at) => ({
      kind,
      name: name(),
      passage: `${kind}-${at}`,
      facts: new Map(),
    }));
  const others = count("realm") + count("town") + count("work") + count("school");
  const people = Math.max(8, size - others);
  const school = (): string => `${names("family")} ${random.pick(["Academy", "College", "Guild"])}`;
  return {
    realm: make("realm", count("realm"), () => names("realm")),
    town: make(
      "town",
      count("town"),
      once(() => names("town")),
    ),
    person: make("person", people, personNames(people, names, random)),
    work: make("work", count("work"), workTitles(names, random)),
    school: make("school", count("school"), once(school)),
  };
}

/** Names of two words for towns; names of rivers and languages that several towns and realms have. */
function sharedNames(size: number, own: NameSource, random: Random): NameSource {
  const pool = (kind: NameKind): readonly string[] =>
    Array.from({ length: 4 + Math.ceil(size / 50) }, () => own(kind));
  const towns = pool("town");
  const rivers = pool("river");
  const languages = pool("language");
  return (kind) => {
    switch (kind) {
      case "town":
        return `${random.pick(townWords)} ${random.pick(towns)}`;
      case "river":
        return random.pick(rivers);
      case "language":
        return random.pick(languages);
      default:
        return own(kind);
    }
  };
}

/** Unique full names from far fewer given and family names. */
function personNames(count: number, names: NameSource, random: Random): () => string {
  const pool = (kind: "given" | "family"): readonly string[] =>
    Array.from({ length: 4 + Math.ceil(1.6 * Math.sqrt(count)) }, () => names(kind));
  const given = pool("given");
  const family = pool("family");
  return once(() => `${random.pick(given)} ${random.pick(family)}`);
}

/** Unique titles; when the words run out, further ones add a place. */
function workTitles(names: NameSource, random: Random): () => string {
  const most = (titleWords.first.length * titleWords.second.length) / 2;
  let made = 0;
  return once(() => {
    const title = `The ${random.pick(titleWords.first)} ${random.pick(titleWords.second)}`;
    return made++ < most ? title : `${title} of ${names("town")}`;
  });
}

function once(make: () => string): () => string {
  const made = new Set<string>();
  return () => {
    for (;;) {
      const one = make();
      if (made.has(one)) continue;
      made.add(one);
      return one;
    }
  };
}

function relate(population: Population, names: NameSource, random: Random): void {
  const { realm, town, person, work, school } = population;
  for (const [at, one] of realm.entries()) {
    one.facts.set("capital", town[at % town.length]!);
    one.facts.set("language", names("language"));
    one.facts.set("uniter", random.pick(person));
  }
  for (const [at, one] of town.entries()) {
    // The first towns are the capitals, in the order of the realms.
    one.facts.set("realm", realm[at] ?? random.pick(realm));
    one.facts.set("river", names("river"));
    one.facts.set("craft", random.pick(values.craft));
  }
  for (const [at, one] of person.entries()) {
    one.facts.set("birthplace", random.pick(town));
    one.facts.set("birthYear", String(FIRST_YEAR + at + random.int(3)));
    one.facts.set("profession", random.pick(values.profession));
    // Elders are born at least four years earlier; the first people have none.
    const elders = person.slice(Math.max(0, at - ELDERS), Math.max(0, at - 3));
    if (elders.length > 0) one.facts.set("teacher", random.pick(elders));
    if (elders.length > 0) one.facts.set("mother", random.pick(elders));
  }
  for (const one of work) {
    const at = random.int(person.length);
    one.facts.set("author", person[at]!);
    one.facts.set("workYear", String(FIRST_YEAR + at + 20 + random.int(40)));
    one.facts.set("setting", random.pick(town));
  }
  for (const one of school) {
    one.facts.set("founder", random.pick(person));
    one.facts.set("schoolTown", random.pick(town));
    one.facts.set("emblem", random.pick(values.emblem));
  }
}

function keepOnly(facts: Map<string, unknown>, names: readonly string[]): void {
  for (const name of facts.keys()) if (!names.includes(name)) facts.delete(name);
}

/** The relations of a kind of entity. */
export function relationsOf(kind: ThingKind): readonly Relation[] {
  return relations.filter((relation) => relation.of === kind);
}

/** The words for a relation's value. */
export function wordsFor(value: Thing | string): string {
  return typeof value === "string" ? value : value.name;
}

/** A text with its placeholders filled. */
export function fill(template: string, x: string, y = ""): string {
  return template.replace(/\{([xy])\}/g, (_, place) => (place === "x" ? x : y));
}

function tellFacts(thing: Thing, random: Random): Passage {
  const sentences = relationsOf(thing.kind).flatMap(({ name, tells }) => {
    const value = thing.facts.get(name);
    return value === undefined ? [] : [fill(random.pick(tells), thing.name, wordsFor(value))];
  });
  const kinds = {
    realm: "a realm",
    town: "a town",
    person: "a person",
    work: "a book",
    school: "a school",
  };
  const opening = `${thing.name} is ${kinds[thing.kind]}.`;
  const text = [opening, ...random.shuffle(sentences)].join(" ");
  return { id: thing.passage, contents: `${thing.name}\n${text}` };
}

function mentionThings(things: readonly Thing[], random: Random): readonly Passage[] {
  const mentioned = random.shuffle([...things]).slice(0, Math.ceil(things.length / ASIDE_EVERY));
  return mentioned.map(({ name }, at) => {
    const [title, text] = random.pick(asides);
    return { id: `aside-${at}`, contents: `${fill(title, name)}\n${fill(text, name)}` };
  });
}
