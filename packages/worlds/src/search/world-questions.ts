/**
 * Questions about the made-up world: one fact (one hop), or a fact about the entity that another
 * fact leads to (two hops).
 *
 * A fifth of the entities is set apart: `valid_unseen` asks about them, and no other question asks
 * about them or leads through them. A tenth of the other questions is `valid_seen`, the rest
 * `train`.
 */

import { EnvError, type Environment, type Task } from "@pawl/core/envs/env.js";
import { taskLists } from "@pawl/core/envs/task-lists.js";
import { createRandom, mixSeed } from "@pawl/core/random.js";
import type { Passage } from "../retrieval/corpus.js";
import type { Question, QuestionBook } from "./question-file.js";
import { writeAction } from "./search-env.js";
import { fill, type KnowledgeWorld, relationsOf, type Thing, wordsFor } from "./world.js";
import type { Relation } from "./world-relations.js";

/** How many facts a question needs. */
export type Hops = "one" | "two" | "both";

/** The names of the two kinds of questions. */
const types = { one: "one-hop", two: "two-hop" } as const;

/** A question before it is put into words. */
interface Riddle {
  readonly thing: Thing;
  readonly relation: Relation;
  /** The relation that leads from the entity to the one that is asked about. */
  readonly by?: Relation;
}

const UNSEEN_SHARE = 0.2;
const VALID_SHARE = 0.1;

/** The tasks of a world and their questions. */
export function worldQuestions(
  world: KnowledgeWorld,
  hops: Hops,
  seed: number,
): { readonly lists: Pick<Environment, "splits" | "tasks" | "task">; readonly book: QuestionBook } {
  const riddles = shareOut(world, hops, seed);
  const lists = taskLists(
    "search",
    Object.fromEntries(
      Object.entries(riddles).map(([split, list]) => [split, () => tasksOf(split, list)]),
    ),
  );
  const namesIn = namesByPassage(world);
  return {
    lists,
    book: {
      question(task) {
        const { id, split } = lists.task(task.id);
        const at = Number(id.slice(split.length + 1));
        return putIntoWords(riddles[split as keyof typeof riddles][at]!, mixSeed(seed, id));
      },
      suggestions: (question, found) => suggest(question, found, namesIn),
    },
  };
}

function tasksOf(split: string, riddles: readonly Riddle[]): readonly Task[] {
  return riddles.map(({ by }, at) => ({
    id: `${split}/${at}`,
    split,
    type: by === undefined ? types.one : types.two,
  }));
}

function shareOut(world: KnowledgeWorld, hops: Hops, seed: number) {
  const random = createRandom(mixSeed("questions", seed));
  const { things } = world;
  const apart = new Set(
    random.shuffle([...things]).slice(0, Math.ceil(UNSEEN_SHARE * things.length)),
  );
  const train: Riddle[] = [];
  const valid_seen: Riddle[] = [];
  const valid_unseen: Riddle[] = [];
  for (const riddle of random.shuffle(allRiddles(things, hops))) {
    if (apart.has(riddle.thing)) valid_unseen.push(riddle);
    else if (apart.has(askedThing(riddle))) continue;
    else if (random.next() < VALID_SHARE || valid_seen.length === 0) valid_seen.push(riddle);
    else train.push(riddle);
  }
  if (train.length === 0 || valid_unseen.length === 0)
    throw new EnvError(
      `search: a world of ${things.length} things has too few questions ; make it larger, or give it more relations.`,
    );
  return { train, valid_seen, valid_unseen };
}

function allRiddles(things: readonly Thing[], hops: Hops): Riddle[] {
  const riddles: Riddle[] = [];
  for (const thing of things) {
    for (const relation of relationsOf(thing.kind)) {
      const value = thing.facts.get(relation.name);
      if (value === undefined) continue;
      if (hops !== "two") riddles.push({ thing, relation });
      if (hops === "one" || typeof value === "string") continue;
      for (const next of relationsOf(value.kind)) {
        const answer = value.facts.get(next.name);
        // Skip questions that already contain their answer.
        if (answer !== undefined && answer !== thing)
          riddles.push({ thing, relation: next, by: relation });
      }
    }
  }
  return riddles;
}

/** The entity whose fact is asked for. */
function askedThing({ thing, by }: Riddle): Thing {
  return by === undefined ? thing : (thing.facts.get(by.name) as Thing);
}

function putIntoWords(riddle: Riddle, seed: number): Question {
  const { thing, relation, by } = riddle;
  const asked = askedThing(riddle);
  const subject = by === undefined ? thing.name : fill(by.phrase!, thing.name);
  const trail = by === undefined ? [thing] : [thing, asked];
  return {
    text: fill(createRandom(seed).pick(relation.asks), subject),
    answers: [wordsFor(asked.facts.get(relation.name)!)],
    trail: trail.map(({ passage, name }) => ({ passage, query: name })),
  };
}

/** The names of entities and the words in each entity's passage. */
interface PassageNames {
  readonly things: readonly string[];
  readonly words: readonly string[];
}

function namesByPassage(world: KnowledgeWorld): ReadonlyMap<string, PassageNames> {
  return new Map(
    world.things.map(({ passage, name, facts }) => {
      const values = [...facts.values()];
      const things = values.flatMap((value) => (typeof value === "string" ? [] : [value.name]));
      const words = values.flatMap((value) => (typeof value === "string" ? [value] : []));
      return [passage, { things: [name, ...things], words }];
    }),
  );
}

/**
 * Searches and answers for policies that can only choose: what the question names and what the
 * latest passages say, correct or not. Any other text would be carried out as well, and nothing
 * here is taken from the answer.
 */
function suggest(
  question: Question,
  found: readonly Passage[],
  namesIn: ReadonlyMap<string, PassageNames>,
): readonly string[] {
  const read = found.flatMap(({ id }) => namesIn.get(id) ?? []);
  const things = read.flatMap((names) => names.things);
  const words = read.flatMap((names) => names.words);
  const queries = [question.text, question.trail![0]!.query, ...things];
  return [
    ...queries.map((text) => writeAction({ kind: "search", text })),
    ...[...things, ...words].map((text) => writeAction({ kind: "answer", text })),
  ];
}
