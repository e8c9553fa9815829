/** One episode as the page shows it: steps, tokens with their numbers, and its group. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { computeAdvantages } from "@pawl/core/advantages/advantages.js";
import { HttpError } from "@pawl/core/http/http-server.js";
import type { Episode, Group, Step } from "@pawl/core/rollout/episode.js";
import { checkpointFolders } from "@pawl/core/runs/checkpoints.js";
import { type EpisodeRecord, unpackEpisode } from "@pawl/core/runs/episode-record.js";
import { episodesPath } from "@pawl/core/runs/small-file.js";
import { loadTokenizer, type Tokenizer } from "@pawl/core/text/tokenizer.js";
import { hasCritic } from "@pawl/core/train/critic.js";
import { selectedSteps } from "@pawl/core/update/update.js";
import type { TrainConfig } from "@pawl/training/config.js";
import { trainConfigOf } from "@pawl/training/recorded-config.js";
import { TOKENIZER } from "@pawl/training/saved-model.js";
import type { CutText, TokenView } from "../report/views.js";
import type { EpisodeView, GroupView, StepView } from "./api.js";
import { type EpisodeEntry, idOf } from "./episode-entry.js";
import { rowOfEntry } from "./episode-filter.js";
import type { EpisodeIndex } from "./episode-index.js";
import { readMember } from "./record-scan.js";

/** Characters that are sent of one text; "show more" asks for the rest, a piece at a time. */
const SHOWN = 4_000;

/** The beginning of a text, and how long it is. */
export function cutText(text: string, most = SHOWN): CutText {
  if (text.length <= most) return { text, length: text.length };
  // Half of a pair of surrogates is no character.
  const last = text.charCodeAt(most - 1);
  const end = last >= 0xd800 && last < 0xdc00 ? most - 1 : most;
  return { text: text.slice(0, end), length: text.length };
}

const cutIfAny = (text: string | undefined, most?: number): CutText | null =>
  text === undefined ? null : cutText(text, most);

/** Tokens of one step that are sent. */
const MOST_TOKENS = 3_000;
/** Episodes of one group that are shown side by side. */
const MOST_ATTEMPTS = 64;
/** Pieces of a prompt that are sent. */
const MOST_PIECES = 60;
/** Characters of an update's records that are read to see which of its steps were selected. */
const MOST_CHARACTERS = 2 ** 25;
/** Characters of an action or observation in the comparison of a group. */
const GLANCE = 200;

/** Characters of one more piece of a long text. */
const MORE = 200_000;

/** The entry with an id; the index is brought up to date if it is new. */
async function findEntry(index: EpisodeIndex, id: string): Promise<number> {
  const [offset, line] = id.split("-").map(Number);
  const find = (): number =>
    index.entries.findIndex((entry) => entry.offset === offset && entry.line === line);
  if (find() < 0) await index.refresh();
  const at = find();
  if (at < 0) throw new HttpError(404, `there is no episode ${id.slice(0, 40)} in this run`);
  return at;
}

/** Reads the episode with an id. */
export async function readEpisodeById(
  folder: string,
  index: EpisodeIndex,
  id: string,
): Promise<Episode> {
  // First the place: looking for it may fill the index.
  const at = await findEntry(index, id);
  return readEpisode(folder, index.entries[at]!);
}

/** Reads an episode's record. */
async function readEpisode(folder: string, entry: EpisodeEntry): Promise<Episode> {
  const [episode] = await readEpisodes(folder, [entry]);
  return episode!;
}

/**
 * Reads the records of episodes; those that were written together are read together. Throws if they have
 * more characters than `most`.
 */
async function readEpisodes(
  folder: string,
  entries: readonly EpisodeEntry[],
  most = Number.POSITIVE_INFINITY,
): Promise<readonly Episode[]> {
  let room = most;
  const members = new Map<number, Promise<readonly string[] | undefined>>();
  const episodes: Episode[] = [];
  for (const { offset, length, line } of entries) {
    const member = members.get(offset) ?? readMember(episodesPath(folder), offset, length);
    members.set(offset, member);
    const text = (await member)?.[line];
    if (text === undefined)
      throw new HttpError(410, "this episode is not in the record any more: the run was resumed");
    room -= text.length;
    if (room < 0) throw new Error(`their records have more than ${most} characters`);
    episodes.push(unpackEpisode(JSON.parse(text) as EpisodeRecord));
  }
  return episodes;
}

/** An episode in full. */
export async function viewEpisode(
  folder: string,
  index: EpisodeIndex,
  id: string,
): Promise<EpisodeView> {
  const at = await findEntry(index, id);
  const entry = index.entries[at]!;
  const group = index.entries.filter((one) => one.group === entry.group).slice(0, MOST_ATTEMPTS);
  const episode = await readEpisode(folder, entry);
  const notes: string[] = [];
  const { tokenizer, advantages, selected, update, critic, attempts } = await extras(
    folder,
    index.entries,
    entry,
    notes,
  );
  const beside = (place: number): string | null => {
    const other = index.entries[place];
    return other === undefined ? null : idOf(other);
  };
  return {
    row: rowOfEntry(entry),
    goal: cutText(episode.goal),
    firstObservation: cutText(episode.firstObservation),
    error: cutIfAny(episode.error),
    given: cutIfAny(agentText(episode, "given")),
    result: cutIfAny(agentText(episode, "result")),
    why: cutIfAny(episode.why),
    seed: episode.seed,
    update,
    steps: episode.steps.map((step, i) => ({
      ...viewStep(step, tokenizer, advantages?.[i]),
      ...(selected?.has(i) && { selected: selected.get(i)! }),
    })),
    group: group.map((one, i) => ({
      ...rowOfEntry(one),
      hint: attempts?.[i]?.hint ?? 0,
      branch: attempts?.[i]?.branch ?? null,
    })),
    older: beside(at - 1),
    newer: beside(at + 1),
    critic,
    checkpoint: checkpointFolders(folder).length > 0,
    notes,
  };
}

/** What an agent was given, or returned. */
function agentText(episode: Episode, field: "given" | "result"): string | undefined {
  const value = episode[field];
  return value === undefined || typeof value === "string" ? value : JSON.stringify(value);
}

/** What the attempts of an episode's group did. */
export async function viewGroup(
  folder: string,
  index: EpisodeIndex,
  id: string,
): Promise<GroupView> {
  const at = await findEntry(index, id);
  const { group } = index.entries[at]!;
  const some = index.entries.filter((one) => one.group === group).slice(0, MOST_ATTEMPTS);
  const episodes = await readEpisodes(folder, some);
  return {
    attempts: episodes.map(({ steps }, i) => ({
      row: rowOfEntry(some[i]!),
      steps: steps.map(({ action, observation, valid }) => ({
        action: action.slice(0, GLANCE),
        observation: observation.slice(0, GLANCE),
        valid,
      })),
    })),
  };
}

/** A part of a text that was cut: step −1 is the episode itself. */
export async function moreText(
  folder: string,
  index: EpisodeIndex,
  where: {
    readonly id: string;
    readonly step: number;
    readonly field: string;
    readonly from: number;
  },
): Promise<CutText> {
  const { id, step, field, from } = where;
  const episode = await readEpisodeById(folder, index, id);
  const source: Readonly<Record<string, unknown>> | undefined =
    step < 0
      ? {
          ...{
            goal: episode.goal,
            firstObservation: episode.firstObservation,
            error: episode.error,
          },
          ...{ given: agentText(episode, "given"), result: agentText(episode, "result") },
          why: episode.why,
        }
      : {
          ...episode.steps[step],
          ...promptPiece(episode.steps[step], field),
          ...callText(episode.steps[step], field),
        };
  const text = source?.[field];
  if (typeof text !== "string") throw new HttpError(404, "there is no such text in this episode");
  return { text: cutText(text.slice(from), MORE).text, length: text.length };
}

/** `prompt.3` is the fourth piece of a prompt. */
function promptPiece(step: Step | undefined, field: string): Readonly<Record<string, string>> {
  const number = /^prompt\.(\d+)$/.exec(field)?.[1];
  const piece = number === undefined ? undefined : step?.prompt[Number(number)];
  return piece === undefined ? {} : { [field]: piece.text };
}

/** `calls.1.result` is what came back for the second call. */
function callText(step: Step | undefined, field: string): Readonly<Record<string, unknown>> {
  const [, number, part] = /^calls\.(\d+)\.(arguments|result)$/.exec(field) ?? [];
  if (number === undefined) return {};
  return { [field]: step?.calls?.[Number(number)]?.[part as "arguments" | "result"] };
}

const tokenizers = new Map<string, Promise<Tokenizer>>();

function tokenizerOf(folder: string): Promise<Tokenizer> {
  const path = join(folder, TOKENIZER);
  const known = tokenizers.get(path);
  if (known !== undefined) return known;
  // One is enough for a page; a large vocabulary takes tens of megabytes.
  tokenizers.clear();
  const loaded = loadTokenizer(path);
  tokenizers.set(path, loaded);
  loaded.catch(() => tokenizers.delete(path));
  return loaded;
}

/** What the record does not hold: token texts, advantages, the update and what it selected. */
interface Extras extends Pick<EpisodeView, "update" | "critic"> {
  readonly tokenizer: Tokenizer | undefined;
  /** All of the group, where they were read. */
  readonly attempts?: readonly Episode[];
  readonly advantages?: readonly (number | readonly number[])[] | undefined;
  readonly selected?: ReadonlyMap<number, boolean> | undefined;
}

async function extras(
  folder: string,
  entries: readonly EpisodeEntry[],
  entry: EpisodeEntry,
  notes: string[],
): Promise<Extras> {
  let tokenizer: Tokenizer | undefined;
  if (existsSync(join(folder, TOKENIZER))) {
    try {
      tokenizer = await tokenizerOf(folder);
    } catch (error) {
      notes.push(`Tokens have no texts: ${(error as Error).message}`);
    }
  }
  let config: TrainConfig;
  try {
    config = trainConfigOf(folder);
  } catch {
    return { tokenizer, update: null, critic: false };
  }
  const update = Math.floor(entry.group / config.groups);
  const together = entries.filter(({ group }) => Math.floor(group / config.groups) === update);
  const own = together.filter(({ group }) => group === entry.group);
  const attempts = await readEpisodes(folder, own);
  const groups = grouped(own, attempts);
  const critic = hasCritic(config);
  const advantages = critic
    ? undefined
    : computeAdvantages(groups, config.advantage).advantages[0]![own.indexOf(entry)];
  const selected = isSelecting(config)
    ? await selectionOf(folder, config, together, entry, notes)
    : undefined;
  return { tokenizer, attempts, advantages, selected, update, critic };
}

/** Which steps of an episode the world model learns from; those of the whole update compete. */
async function selectionOf(
  folder: string,
  config: TrainConfig,
  together: readonly EpisodeEntry[],
  entry: EpisodeEntry,
  notes: string[],
): Promise<ReadonlyMap<number, boolean> | undefined> {
  try {
    const why = unselectable(config, together);
    if (why !== undefined) throw new Error(why);
    const groups = grouped(together, await readEpisodes(folder, together, MOST_CHARACTERS));
    const g = groups.findIndex(({ index }) => index === entry.group);
    const e = together.filter(({ group }) => group === entry.group).indexOf(entry);
    const steps = selectedSteps(groups, config.paw).filter(
      ({ group, episode, inPool }) => group === g && episode === e && inPool,
    );
    return new Map(steps.map((one) => [one.step, one.selected]));
  } catch (error) {
    // Also where the episodes of a policy that is no model have no tokens.
    notes.push(
      `Which steps the world model learns from is not shown: ${(error as Error).message}.`,
    );
    return undefined;
  }
}

const isSelecting = ({ paw }: TrainConfig): boolean => paw.loss !== "off";

/** Why the record does not say which steps the world model learns from, if it does not. */
function unselectable(
  { paw, groups }: TrainConfig,
  together: readonly EpisodeEntry[],
): string | undefined {
  if (paw.alpha < 1 && paw.entropy === "full")
    return "they are selected by full entropies, which the record does not have";
  if (new Set(together.map(({ group }) => group)).size < groups)
    return "the update is not complete yet";
  return undefined;
}

/** Episodes in their groups. */
function grouped(entries: readonly EpisodeEntry[], episodes: readonly Episode[]): readonly Group[] {
  const groups = new Map<number, Episode[]>();
  for (const [i, { group }] of entries.entries())
    groups.set(group, [...(groups.get(group) ?? []), episodes[i]!]);
  return [...groups]
    .sort(([a], [b]) => a - b)
    .map(([index, members]) => ({ index, task: members[0]!.task, episodes: members }));
}

function viewStep(
  step: Step,
  tokenizer: Tokenizer | undefined,
  advantage: number | ArrayLike<number> | undefined,
): StepView {
  const { prompt, sequence } = step;
  return {
    response: cutText(step.response),
    action: cutText(step.action),
    observation: cutText(step.observation),
    // The last pieces: the beginning is the same at every step.
    prompt: prompt.slice(-MOST_PIECES).map(({ origin, role, text }) => ({
      origin,
      ...(role !== undefined && { role }),
      text: cutText(text, 1000),
    })),
    promptPieces: prompt.length,
    wellFormed: step.wellFormed,
    valid: step.valid,
    cut: step.cut === true,
    strayed: step.strayed === true,
    reward: step.reward,
    ...(typeof advantage === "number" && { advantage }),
    tokens: sequence === undefined || tokenizer === undefined ? [] : tokensOf(sequence, tokenizer),
    calls: (step.calls ?? []).map(({ tool, arguments: values, result }) => ({
      tool,
      arguments: cutText(values, 1000),
      result: cutIfAny(result, 1000),
    })),
    seconds: step.seconds ?? null,
    candidates: (step.candidates ?? []).map(({ action, predicted, refused, truth, ...rest }) => ({
      action: cutText(action, 1000),
      votes: rest.votes,
      predicted: cutIfAny(predicted, 1000),
      refused: refused ?? null,
      truth:
        truth === undefined
          ? null
          : { observation: cutText(truth.observation, 1000), valid: truth.valid },
      chosen: rest.chosen === true,
    })),
  };
}

/** The tokens after the prompt, with the log-probabilities that were recorded. */
export function tokensOf(
  { ids, spans, logprobs }: NonNullable<Step["sequence"]>,
  tokenizer: Tokenizer,
): readonly TokenView[] {
  const first = spans.findLastIndex(({ kind }) => kind === "prompt") + 1;
  let action = 0;
  return spans
    .slice(first)
    .flatMap(({ kind, start, end }) =>
      ids.slice(start, end).map((id): TokenView => {
        const logprob = kind === "action" ? logprobs?.[action++] : undefined;
        return { text: tokenizer.decode([id]), kind, ...(logprob !== undefined && { logprob }) };
      }),
    )
    .slice(0, MOST_TOKENS);
}
