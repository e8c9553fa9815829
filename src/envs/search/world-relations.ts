/**
 * The facts of the made-up world: five kinds of entities, each with a few relations, the sentences
 * that state them and the questions that ask for them. `{x}` is the entity, `{y}` the value.
 */

/** The kinds of entities that have their own passage. */
export type ThingKind = "realm" | "town" | "person" | "work" | "school";

/** A relation of an entity to another entity or to a word. */
export interface Relation {
  readonly name: string;
  readonly of: ThingKind;
  /** The kind of entity it leads to; absent if it leads to a word or a year. */
  readonly to?: ThingKind;
  readonly tells: readonly string[];
  readonly asks: readonly string[];
  /** How another question refers to the value, if it is an entity. */
  readonly phrase?: string;
}

function readRelation(row: string): Relation {
  const cells = row.split("|").map((cell) => cell.trim());
  const [name = "", of, to, tells = "", asks = "", phrase] = cells;
  return {
    name,
    of: of as ThingKind,
    to: to === "-" ? undefined : (to as ThingKind),
    tells: tells.split(" / "),
    asks: asks.split(" / "),
    phrase,
  };
}

/** All relations: name, of what, to what, how they are told and asked for, and how others refer to them. */
export const relations: readonly Relation[] = `
  capital | realm | town | Its capital is {y}. / It is governed from the capital, {y}.
    | What is the capital of {x}? / Which town is the capital of {x}? | the capital of {x}
  language | realm | - | People there speak {y}. / Its language is {y}.
    | Which language do people speak in {x}? / What is the language of {x}?
  uniter | realm | person | It was united by {y}. / {y} united it after long quarrels.
    | Who united {x}? / By whom was {x} united? | the person who united {x}
  realm | town | realm | {x} lies in {y}. / {x} is a town in {y}.
    | In which realm does {x} lie? / Which realm does {x} belong to? | the realm in which {x} lies
  river | town | - | The river {y} runs through it. / It stands on the river {y}.
    | Which river runs through {x}? / On which river does {x} stand?
  craft | town | - | It is known for its {y}. / Merchants come there for {y}.
    | What is {x} known for? / For which wares is {x} known?
  birthplace | person | town | {x} was born in {y}. / The birthplace of {x} is {y}.
    | In which town was {x} born? / Where was {x} born? | the town in which {x} was born
  birthYear | person | - | The year of birth is {y}. / The birth is recorded for the year {y}.
    | In which year was {x} born? / When was {x} born?
  profession | person | - | By profession {x} was a {y}. / {x} worked as a {y}.
    | What was the profession of {x}? / What did {x} work as?
  teacher | person | person | The teacher of those years was {y}. / Lessons were given by {y}.
    | Who taught {x}? / Who was the teacher of {x}? | the teacher of {x}
  mother | person | person | The mother was {y}. / As a child of {y}, nothing came easily.
    | Who was the mother of {x}? / Who is the mother of {x}? | the mother of {x}
  author | work | person | {x} was written by {y}. / The author of {x} is {y}.
    | Who wrote {x}? / Who is the author of {x}? | the author of {x}
  workYear | work | - | It came out in {y}. / The first edition is from {y}.
    | In which year did {x} come out? / When did {x} come out?
  setting | work | town | The story takes place in {y}. / It is set in {y}.
    | In which town is {x} set? / Where is {x} set? | the town in which {x} is set
  founder | school | person | {x} was founded by {y}. / The founder of {x} is {y}.
    | Who founded {x}? / Who was the founder of {x}? | the founder of {x}
  schoolTown | school | town | Its halls are in {y}. / It is found in {y}.
    | In which town is {x}? / Where is {x}? | the town that is home to {x}
  emblem | school | - | Its emblem is a {y}. / Over the gate a {y} is carved as its emblem.
    | What is the emblem of {x}? / Which emblem does {x} have?
`
  .trim()
  .split(/\n {2}(?=\w)/)
  .map(readRelation);

/** The names of all relations. */
export const relationNames: readonly string[] = relations.map(({ name }) => name);

/** The words that relations without an entity lead to. */
export const values = {
  craft:
    "bells bricks candles carpets cheese clocks combs drums glass gloves honey kites knives lace ladders lanterns masks mirrors nets oars paper pears pipes pots ropes saddles soap spoons tiles wool".split(
      " ",
    ),
  profession:
    "baker beekeeper boatbuilder cartographer cooper dyer falconer gardener glassblower goldsmith healer judge locksmith mason miller notary painter potter printer sailor sculptor shepherd surveyor tailor weaver".split(
      " ",
    ),
  emblem:
    "badger bear beetle boar carp crane crow deer dolphin eel finch fox hare heron horse lark lynx moth newt otter owl ram raven seal snail stoat stork swan toad wolf".split(
      " ",
    ),
} as const;

/** The words that titles of works are made of. */
export const titleWords = {
  first:
    "Amber Ashen Bitter Borrowed Bronze Copper Crooked Distant Empty Faded Folded Frozen Gentle Gilded Hidden Hollow Iron Lonely Lost Midnight Narrow Painted Pale Patient Quiet Restless Scarlet Second Secret Silver Sleeping Stolen Sunken Tangled Twisted Unlit Velvet Wandering Winter Wooden".split(
      " ",
    ),
  second:
    "Anchor Archive Balcony Bargain Bridge Cellar Chapel Compass Corridor Cradle Doorway Errand Feast Ferry Fiddle Garden Harbour Harvest Hedge Inkwell Island Journey Kettle Ledger Letter Marble Meadow Mill Needle Orchard Parcel Pilgrim Promise Quarrel Ribbon Season Shadow Signal Staircase Stove Summit Thimble Tower Tunnel Umbrella Vineyard Voyage Wager Wedding Weir".split(
      " ",
    ),
} as const;

/** The first words of towns whose names share words. */
export const townWords =
  "Broad Dark East Far Fair Great High Little Low New North Old South Upper West White".split(" ");

/** Passages that mention an entity and state no fact that is asked for. */
export const asides: readonly (readonly [title: string, text: string])[] = [
  [
    "Letters about {x}",
    "A bundle of letters about {x} was found in an attic. Nobody agrees on who sent them or whether they can be trusted.",
  ],
  [
    "A song about {x}",
    "Children sing a counting song about {x}. It has eleven verses, and each of them is sillier than the last.",
  ],
  [
    "A quarrel over {x}",
    "Two scholars fell out over {x} and never spoke again. What the quarrel was about has been forgotten.",
  ],
  [
    "The stamp with {x}",
    "A postage stamp that shows {x} was printed upside down by mistake, and collectors pay well for it.",
  ],
];
