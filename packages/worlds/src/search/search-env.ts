/**
 * Search QA as an environment: any number of searches, then one answer, which ends the episode.
 *
 * With an in-process retriever it is synchronous and can be cloned; with an asynchronous one it is
 * a remote environment. Both use the same functions for the rules.
 */

import {
  begun,
  type Env,
  EnvError,
  type RemoteEnv,
  type StepResult,
  type Task,
} from "@pawl/core/envs/env.js";
import type { Passage } from "../retrieval/corpus.js";
import type { LocalRetriever, PassageHit, WaitingRetriever } from "../retrieval/retriever.js";
import type { Question, QuestionBook } from "./question-file.js";

/** How answers are compared: exact match and F1 as in SQuAD, maximised over the correct answers. */

const punctuation = /[!-/:-@[-`{-~]/g;
// Not \b, which treats accented letters as the end of a word.
const articles = /(?<![\p{L}\p{N}_])(?:an?|the)(?![\p{L}\p{N}_])/gu;

/** An answer without capitals, punctuation, articles and extra white space. */
export function normaliseAnswer(text: string): string {
  return words(text).join(" ");
}

/** Whether the answer is one of the correct ones. */
export function exactMatch(answer: string, right: readonly string[]): boolean {
  const own = normaliseAnswer(answer);
  return right.some((one) => normaliseAnswer(one) === own);
}

/**
 * The harmonic mean of precision and recall of the answer's words, for the closest correct answer.
 */
export function f1Score(answer: string, right: readonly string[]): number {
  const own = words(answer);
  return Math.max(0, ...right.map((one) => f1(own, words(one))));
}

function words(text: string): readonly string[] {
  const bare = text.toLowerCase().replace(punctuation, "").replace(articles, " ");
  return bare.split(/\s+/).filter(Boolean);
}

function f1(own: readonly string[], right: readonly string[]): number {
  if (own.length === 0 || right.length === 0) return own.length === right.length ? 1 : 0;
  const left = new Map<string, number>();
  for (const word of right) left.set(word, (left.get(word) ?? 0) + 1);
  let common = 0;
  for (const word of own) {
    const times = left.get(word) ?? 0;
    if (times === 0) continue;
    common++;
    left.set(word, times - 1);
  }
  return (2 * common) / (own.length + right.length);
}

/** The reward for a correct answer. */
export const RIGHT_REWARD = 1;

const NOT_UNDERSTOOD =
  "This was neither a search nor an answer. Write a query between <search> and </search>, or the answer between <answer> and </answer>.";
const NOTHING_FOUND = "Nothing was found. Try other words.";
/** The same for correct and wrong answers: what follows an answer must not reveal it. */
const ANSWERED = "The answer was taken.";

/** What the environments of one opened environment share. */
export interface SearchWorld<R> {
  readonly book: QuestionBook;
  readonly retriever: R;
  /** Passages per search. */
  readonly topk: number;
}

/** The state of an episode. */
export interface SearchState {
  readonly taskType: string;
  readonly question: Question;
  /** The passages of the latest search. */
  readonly hits: readonly Passage[];
  /** Ids of all passages seen so far. */
  readonly seen: ReadonlySet<string>;
  readonly answered: boolean;
}

/** A running environment, with what its expert sees. */
export interface SearchEnv extends Env {
  readonly state: SearchState;
}

interface Move {
  readonly state: SearchState;
  readonly result: StepResult;
}

/** An environment with a synchronous retriever. */
export function createSearchEnv(
  world: SearchWorld<LocalRetriever>,
  started?: SearchState,
): SearchEnv {
  const episode = createEpisode(world.book, started);
  const { retriever, topk } = world;
  return {
    ...facts(episode, world.book),
    get goal() {
      return episode.current("goal").question.text;
    },
    get taskType() {
      return episode.current("taskType").taskType;
    },
    get state() {
      return episode.current("the expert");
    },
    reset: (task) => episode.begin(task),
    step(action) {
      const state = episode.current("step");
      const begun = begin(state, action);
      if ("result" in begun) return episode.move(begun);
      return episode.move(afterSearch(state, retriever.search(begun.query, topk)));
    },
    clone: () => createSearchEnv(world, episode.state),
  };
}

/** An environment with an asynchronous retriever; `close` aborts pending requests. */
export function createWaitingSearchEnv(world: SearchWorld<WaitingRetriever>): RemoteEnv {
  const episode = createEpisode(world.book);
  const { retriever, topk } = world;
  const closed = new AbortController();
  return {
    ...facts(episode, world.book),
    get goal() {
      return episode.current("goal").question.text;
    },
    get taskType() {
      return episode.current("taskType").taskType;
    },
    reset: async (task) => episode.begin(task),
    async step(action) {
      const state = episode.current("step");
      const begun = begin(state, action);
      if ("result" in begun) return episode.move(begun);
      const hits = await retriever.search(begun.query, topk, closed.signal);
      return episode.move(afterSearch(state, hits));
    },
    async close() {
      closed.abort(new EnvError("search: the environment was closed while it searched."));
    },
  };
}

/** The state of an episode, with checks of the order of calls. */
function createEpisode(book: QuestionBook, started?: SearchState) {
  let state = started;
  return {
    get state() {
      return state;
    },
    current: (asked: string): SearchState => begun(state, "search", asked),
    begin(task: Task): string {
      const question = book.question(task);
      state = { taskType: task.type, question, hits: [], seen: new Set(), answered: false };
      return question.text;
    },
    move(moved: Move): StepResult {
      state = moved.state;
      return moved.result;
    },
  };
}

function facts(
  episode: ReturnType<typeof createEpisode>,
  book: QuestionBook,
): Pick<Env, "admissibleActions" | "irreversible"> {
  const { suggestions } = book;
  return {
    irreversible: (action) => parseAction(action)?.kind === "answer",
    ...(suggestions !== undefined && {
      admissibleActions() {
        const { question, hits, answered } = episode.current("admissibleActions");
        if (answered) return [];
        return [...new Set(suggestions(question, hits))].sort();
      },
    }),
  };
}

/** The immediate result of an action, or the query to send first. */
function begin(state: SearchState, action: string): Move | { readonly query: string } {
  if (state.answered)
    throw new EnvError("search: step was called after the answer; call reset(task).");
  const parsed = parseAction(action);
  if (parsed === undefined) {
    const info = { valid: false, success: false, score: 0 };
    return { state, result: { observation: NOT_UNDERSTOOD, reward: 0, done: false, info } };
  }
  if (parsed.kind === "search") return { query: parsed.text };
  const { answers } = state.question;
  const success = exactMatch(parsed.text, answers);
  const info = { valid: true, success, score: f1Score(parsed.text, answers) };
  const result = { observation: ANSWERED, reward: success ? RIGHT_REWARD : 0, done: true, info };
  return { state: { ...state, answered: true }, result };
}

function afterSearch(state: SearchState, hits: readonly PassageHit[]): Move {
  const passages = hits.map(({ passage }) => passage);
  const seen = new Set([...state.seen, ...passages.map(({ id }) => id)]);
  const observation = passages.length === 0 ? NOTHING_FOUND : passages.map(showPassage).join("\n");
  const info = { valid: true, success: false, score: 0 };
  return {
    state: { ...state, hits: passages, seen },
    result: { observation, reward: 0, done: false, info },
  };
}

/** One line per passage: its number, its title and its text. */
function showPassage({ contents }: Passage, rank: number): string {
  const [title = "", ...rest] = contents.split("\n");
  const name = oneLine(title).replace(/^"(.*)"$/, "$1");
  const text = oneLine(rest.join(" "));
  return withoutTags(`[${rank + 1}] ${text === "" ? name : `${name}: ${text}`}`);
}

function oneLine(text: string): string {
  return text.split(/\s+/).filter(Boolean).join(" ");
}

/** Tags that mean something in a prompt or in a response must not come from the corpus. */
function withoutTags(text: string): string {
  return text.replace(/<(\/?(?:think|search|answer|information)>|\|)/gi, "‹$1");
}

/** The actions: a search or the answer, each in its own tags. */

/** A search or an answer, with its text. */
interface SearchAction {
  readonly kind: "search" | "answer";
  readonly text: string;
}

/**
 * Parses `<search>…</search>` or `<answer>…</answer>`; undefined for anything else and for empty
 * ones.
 */
export function parseAction(action: string): SearchAction | undefined {
  const trimmed = action.trim();
  for (const kind of ["search", "answer"] as const) {
    const open = `<${kind}>`;
    const close = `</${kind}>`;
    if (!trimmed.startsWith(open) || !trimmed.endsWith(close)) continue;
    const text = trimmed.slice(open.length, -close.length).trim();
    return text === "" || /<\/?(?:search|answer)>/.test(text) ? undefined : { kind, text };
  }
  return undefined;
}

/**
 * The action as a policy would write it. With the spaces, the words are the same tokens as in the
 * question and in the passages.
 */
export function writeAction({ kind, text }: SearchAction): string {
  return `<${kind}> ${text} </${kind}>`;
}
