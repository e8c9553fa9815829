/** Filters over the index of episodes. */

import { HttpError } from "@pawl/core/http/http-server.js";
import { z } from "zod";
import type { EpisodeFilter, EpisodePage, EpisodeRow, EpisodeSort } from "./api.js";
import { type EpisodeEntry, idOf } from "./episode-entry.js";
import type { EpisodeIndex } from "./episode-index.js";

/** Episodes that are sent at once. */
const PAGE = 100;

const number = z.coerce.number();
const filterSchema = z
  .strictObject({
    text: z.string().max(500),
    type: z.string().max(200),
    split: z.string().max(200),
    outcome: z.enum(["solved", "failed", "broken"]),
    stop: z.enum(["done", "step-limit", "stuck", "context-limit", "broken"]),
    invalid: z.stringbool(),
    minReturn: number,
    maxReturn: number,
    minSteps: number,
    maxSteps: number,
    fromGroup: number,
    toGroup: number,
    sort: z.enum(["newest", "oldest", "longest", "shortest", "best", "worst"]),
    from: number.int().min(0),
  })
  .partial();

/** The filter of an address; a setting that there is not is refused. */
export function parseFilter(query: Readonly<Record<string, string>>): EpisodeFilter {
  const read = filterSchema.safeParse(query);
  if (!read.success) throw new HttpError(400, `filter: ${z.prettifyError(read.error)}`);
  return read.data as EpisodeFilter;
}

/** The episodes that pass, a page of them. */
export function filterEpisodes(index: EpisodeIndex, filter: EpisodeFilter): EpisodePage {
  const { entries, words, progress, problems } = index;
  const { text = "", sort = "newest", from = 0 } = filter;
  const withText = text.trim() === "" ? undefined : words.find(text, entries.length);
  const passing = entries.filter(
    (entry, i) => (withText === undefined || withText[i] === 1) && passes(entry, filter),
  );
  const sorted = sort === "oldest" ? passing : order(passing, sort);
  const distinct = (key: "type" | "split"): string[] => {
    const names = new Set<string>();
    for (const entry of entries) names.add(entry[key]);
    return [...names].sort().slice(0, 200);
  };
  return {
    rows: sorted.slice(from, from + PAGE).map(rowOfEntry),
    matching: passing.length,
    indexed: entries.length,
    progress: progress.reading ? Math.min(1, progress.done / Math.max(1, progress.size)) : 1,
    rest: progress.reading ? 0 : Math.max(0, progress.size - progress.done),
    types: distinct("type"),
    splits: distinct("split"),
    problems,
    wordsFull: words.full,
  };
}

function passes(entry: EpisodeEntry, filter: EpisodeFilter): boolean {
  const { type, split, outcome, stop, invalid } = filter;
  const within = (value: number, low = -Infinity, high = Infinity): boolean =>
    value >= low && value <= high;
  return (
    (type === undefined || entry.type === type) &&
    (split === undefined || entry.split === split) &&
    (outcome === undefined || outcomeOf(entry) === outcome) &&
    (stop === undefined || entry.stop === stop) &&
    (invalid === undefined || entry.invalid > 0 === invalid) &&
    within(entry.return, filter.minReturn, filter.maxReturn) &&
    within(entry.steps, filter.minSteps, filter.maxSteps) &&
    within(entry.group, filter.fromGroup, filter.toGroup)
  );
}

const outcomeOf = ({ stop, success }: EpisodeEntry): NonNullable<EpisodeFilter["outcome"]> =>
  stop === "broken" ? "broken" : success ? "solved" : "failed";

function order(entries: EpisodeEntry[], sort: Exclude<EpisodeSort, "oldest">): EpisodeEntry[] {
  // Sorting is stable, so episodes that are equal stay newest first.
  const newest = entries.toReversed();
  switch (sort) {
    case "newest":
      return newest;
    case "longest":
      return newest.sort((a, b) => b.steps - a.steps);
    case "shortest":
      return newest.sort((a, b) => a.steps - b.steps);
    case "best":
      return newest.sort((a, b) => b.return - a.return);
    case "worst":
      return newest.sort((a, b) => a.return - b.return);
  }
}

/** An entry as the page sees it. */
export function rowOfEntry(entry: EpisodeEntry): EpisodeRow {
  const { offset: _, length: __, line: ___, ...rest } = entry;
  return { id: idOf(entry), ...rest };
}
