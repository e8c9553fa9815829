/** The episodes of a run: search, filter, and the list. */

import type { EpisodePage, EpisodeRow, RunDetail } from "@pawl/ui/server/api.js";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { count, shortNumber, shortPercent } from "./format.js";
import { Empty, Problem, useLoaded, Waiting } from "./load.js";
import { link, setQuery, usePlace } from "./route.js";
import { RunHeader } from "./run.js";
import { Scroll } from "./scroll.js";
import { ask } from "./server.js";
import { visible, visibleText } from "./text.js";

const FILTERS = [
  ...["text", "type", "split", "outcome", "stop", "invalid", "minReturn", "maxReturn"],
  ...["minSteps", "maxSteps", "fromGroup", "toGroup", "sort"],
];
/** How often a list that is still being indexed is asked for again. */
const AGAIN_MS = 1000;

/** The page of a run's episodes. */
export function Episodes({ id }: { readonly id: string }): JSX.Element {
  const { query } = usePlace();
  const detail = useLoaded(`run ${id}`, () => ask<RunDetail>("run", { run: id }));
  const filter = Object.fromEntries(
    FILTERS.flatMap((name) => (query[name] ? [[name, query[name]]] : [])),
  );
  const key = JSON.stringify([id, filter]);
  const settled = useSettled(key);
  const found = useLoaded(settled, () => {
    const [run, asked] = JSON.parse(settled) as [string, Record<string, string>];
    return ask<EpisodePage>("episodes", { run, ...asked });
  });
  const [page, setPage] = useState<EpisodePage>();
  const [more, setMore] = useState<{ key: string; rows: readonly EpisodeRow[] }>({
    key: "",
    rows: [],
  });
  useEffect(() => {
    if (found.value !== undefined) setPage(found.value);
    if (found.value === undefined || found.value.progress >= 1) return;
    const timer = setTimeout(found.again, AGAIN_MS);
    return () => clearTimeout(timer);
  }, [found.value]);
  const rows = [...(page?.rows ?? []), ...(more.key === settled ? more.rows : [])];
  const loadMore = (): void => {
    void ask<EpisodePage>("episodes", { run: id, ...filter, from: rows.length }).then((next) =>
      setMore({ key: settled, rows: [...(more.key === settled ? more.rows : []), ...next.rows] }),
    );
  };
  if (detail.value === undefined) return <Waiting of={detail} />;
  return (
    <>
      <RunHeader row={detail.value.row} page="episodes" />
      {found.problem !== undefined && <Problem>{visible(found.problem)}</Problem>}
      {page?.problems.map((problem) => (
        <Problem>{visible(problem)}</Problem>
      ))}
      <FilterForm query={query} page={page} />
      {page === undefined ? (
        <p class="waiting" role="status">
          Loading…
        </p>
      ) : (
        <>
          <p class="hint" role="status">
            {count(page.matching, "episode")} of {page.indexed.toLocaleString("en")}
            {page.progress < 1 && `; indexing, ${shortPercent(page.progress)} done`}
            {page.rest > 0 &&
              `; the record ends with an incomplete episode (${count(page.rest, "byte")}), which is being written or was cut off`}
            {page.wordsFull && "; the index is full: some words of the record cannot be searched"}
            {detail.value.row.state === "running" && page.progress >= 1 && (
              <>
                {" "}
                <button type="button" class="small" onClick={found.again}>
                  Check for new episodes
                </button>
              </>
            )}
          </p>
          {rows.length === 0 ? (
            <Empty>
              {page.indexed === 0
                ? detail.value.row.state === "running"
                  ? "No episode has been recorded yet. They appear after each update."
                  : "This run recorded no episodes."
                : "No episode matches the filter. Remove a word or a condition."}
            </Empty>
          ) : (
            <EpisodeTable run={id} rows={rows} query={filter} />
          )}
          {rows.length < page.matching && rows.length > 0 && (
            <p>
              <button type="button" onClick={loadMore}>
                Show more ({(page.matching - rows.length).toLocaleString("en")} left)
              </button>
            </p>
          )}
        </>
      )}
    </>
  );
}

/** The value once it has not changed for a moment, so that typing asks once. */
function useSettled(value: string): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), 150);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

/** Filters that few need at once. */
const RANGES: Readonly<Record<string, string>> = {
  minReturn: "Return ≥",
  maxReturn: "Return ≤",
  minSteps: "Steps ≥",
  maxSteps: "Steps ≤",
  fromGroup: "Group ≥",
  toGroup: "Group ≤",
};

function FilterForm({
  query,
  page,
}: {
  readonly query: Readonly<Record<string, string>>;
  readonly page: EpisodePage | undefined;
}): JSX.Element {
  const choice = (name: string, label: string, options: readonly (readonly [string, string])[]) => (
    <label>
      {label}
      <select
        value={query[name] ?? ""}
        onChange={(event) => setQuery({ [name]: event.currentTarget.value })}
      >
        {options.map(([value, text]) => (
          <option value={value}>{text}</option>
        ))}
      </select>
    </label>
  );
  const number = (name: string, label: string) => (
    <label class="short">
      {label}
      <input
        type="number"
        value={query[name] ?? ""}
        onInput={(event) => setQuery({ [name]: event.currentTarget.value })}
      />
    </label>
  );
  const same = (names: readonly string[]) =>
    names.map((name) => [name, visibleText(name)] as const);
  return (
    <form class="filters" onSubmit={(event) => event.preventDefault()}>
      <label class="wide">
        Search
        <input
          type="search"
          data-search
          value={query.text ?? ""}
          placeholder="words of goals, actions, observations"
          onInput={(event) => setQuery({ text: event.currentTarget.value })}
        />
      </label>
      {choice("outcome", "Outcome", [["", "all"], ...same(["solved", "failed", "broken"])])}
      {choice("type", "Task type", [["", "all"], ...same(page?.types ?? [])])}
      {(page?.splits.length ?? 0) > 1 &&
        choice("split", "Split", [["", "all"], ...same(page!.splits)])}
      {choice("stop", "Stopped", [
        ["", "any reason"],
        ...["done", "step-limit", "stuck", "context-limit", "broken"].map(
          (name) => [name, name.replace("-", " ")] as const,
        ),
      ])}
      {choice("invalid", "Invalid actions", [
        ["", "any"],
        ["true", "some"],
        ["false", "none"],
      ])}
      {choice("sort", "Order", [
        ["", "newest first"],
        ["oldest", "oldest first"],
        ["longest", "longest"],
        ["shortest", "shortest"],
        ["best", "highest return"],
        ["worst", "lowest return"],
      ])}
      <details open={Object.keys(RANGES).some((name) => query[name])}>
        <summary>Ranges</summary>
        <div class="filters">
          {Object.entries(RANGES).map(([name, label]) => number(name, label))}
        </div>
      </details>
      <button
        type="button"
        onClick={() => setQuery(Object.fromEntries(FILTERS.map((name) => [name, undefined])))}
      >
        Clear
      </button>
    </form>
  );
}

/** Episodes as rows that lead to each of them. */
function EpisodeTable(props: {
  readonly run: string;
  readonly rows: readonly EpisodeRow[];
  readonly query?: Readonly<Record<string, string>>;
}): JSX.Element {
  const scored = props.rows.some(({ score }) => score !== null);
  return (
    <Scroll label="Episodes">
      <table class="episodes">
        <thead>
          <tr>
            <th scope="col">Episode</th>
            <th scope="col">Outcome</th>
            <th scope="col">Goal</th>
            <th scope="col">Type</th>
            <th scope="col" class="number">
              Steps
            </th>
            <th scope="col" class="number">
              Invalid
            </th>
            <th scope="col" class="number">
              Return
            </th>
            {scored && (
              <th scope="col" class="number">
                Score
              </th>
            )}
            <th scope="col">Stopped</th>
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row) => (
            <tr key={row.id}>
              <th scope="row">
                <a href={link(["run", props.run, "episode", row.id], props.query)}>
                  {row.group}.{row.attempt}
                </a>
              </th>
              <td>
                <Outcome of={row} />
              </td>
              <td class="goal">{visible(row.goal)}</td>
              <td>{visible(row.type)}</td>
              <td class="number">{row.steps}</td>
              <td class="number">{row.invalid || ""}</td>
              <td class="number">{shortNumber(row.return)}</td>
              {scored && <td class="number">{row.score === null ? "" : shortNumber(row.score)}</td>}
              <td>{row.stop === "done" ? "" : row.stop.replace("-", " ")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

/** How an episode ended, by sign, word and colour. */
export function Outcome({
  of,
}: {
  readonly of: Pick<EpisodeRow, "stop" | "success">;
}): JSX.Element {
  const [name, sign] =
    of.stop === "broken" ? ["broken", "!"] : of.success ? ["solved", "✓"] : ["failed", "✗"];
  return (
    <span class={`badge ${name}`}>
      <span aria-hidden="true">{sign} </span>
      {name}
    </span>
  );
}
