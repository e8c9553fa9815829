/** All runs below the folder, live. */

import type { MetricsTable, RunList, RunRow } from "@pawl/ui/server/api.js";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { count, duration, moment, shortPath, shortPercent } from "./format.js";
import { Empty, Problem, useLoaded, Waiting } from "./load.js";
import { link, setQuery, usePlace } from "./route.js";
import { Scroll } from "./scroll.js";
import { ask, listen } from "./server.js";
import { TagEditor, tagsOf, useTags } from "./tags.js";
import { Copyable, dotted, visible } from "./text.js";

/** The list of runs. */
export function Runs(): JSX.Element {
  const { query } = usePlace();
  const first = useLoaded("runs", () => ask<RunList>("runs"));
  const [live, setLive] = useState<RunList>();
  const [connected, setConnected] = useState(true);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const tags = useTags();
  useEffect(() => {
    const rows = (changed: readonly RunRow[]): void =>
      setLive((list) => list && withRows(list, changed));
    return listen(() => ({}), { runs: setLive, rows }, setConnected);
  }, []);
  const list = live ?? first.value;
  if (list === undefined) return <Waiting of={first} />;
  const { text = "", state = "", order = "" } = query;
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const matching = list.runs.filter(
    (run) =>
      (state === "" || run.state === state) &&
      words.every((word) => searched(run, tagsOf(tags, run.id)).includes(word)),
  );
  const value = ORDERS[order]?.of;
  const shown = value === undefined ? matching : matching.toSorted((a, b) => value(b) - value(a));
  const toggle = (id: string): void => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  };
  return (
    <>
      <h1>Runs</h1>
      {!connected && (
        <Problem>
          Connection to the server lost; reconnecting. The data below may be out of date.
        </Problem>
      )}
      {list.problems.map((problem) => (
        <Problem>{visible(problem)}</Problem>
      ))}
      {list.runs.length === 0 ? (
        <Empty>
          <p>
            There are no runs in <code>{visible(list.folder)}</code> yet. This command trains one in
            a minute and a half; it will appear here:
          </p>
          <Copyable text="pawl train --quick" label="the command that makes a run" />
        </Empty>
      ) : (
        <>
          <form class="filters" onSubmit={(event) => event.preventDefault()}>
            <label>
              Filter
              <input
                type="search"
                value={text}
                placeholder="world, setting, tag…"
                data-search
                onInput={(event) => setQuery({ text: event.currentTarget.value })}
              />
            </label>
            <label>
              State
              <select
                value={state}
                onChange={(event) => setQuery({ state: event.currentTarget.value })}
              >
                <option value="">all</option>
                {["running", "done", "stopped", "interrupted", "failed", "killed"].map((name) => (
                  <option value={name}>{name}</option>
                ))}
              </select>
            </label>
            <label>
              Order
              <select
                value={order}
                onChange={(event) => setQuery({ order: event.currentTarget.value })}
              >
                <option value="">newest first</option>
                {Object.entries(ORDERS).map(([name, { label }]) => (
                  <option value={name}>{label}</option>
                ))}
              </select>
            </label>
            <span class="quiet" role="status">
              {count(shown.length, "run")}
            </span>
            <a
              class={`button ${chosen.size < 1 ? "off" : ""}`}
              href={link(["compare"], { runs: [...chosen].map(encodeURIComponent).join(",") })}
              aria-disabled={chosen.size < 1}
            >
              {chosen.size === 0 ? "Compare selected" : `Compare ${count(chosen.size, "run")}`}
            </a>
          </form>
          {shown.length === 0 && (
            <Empty>No run matches the filter. Remove a word, or select all states.</Empty>
          )}
          <Scroll label="Runs">
            <table class="runs">
              <thead>
                <tr>
                  <th scope="col">
                    <span class="unseen">Select</span>
                  </th>
                  <th scope="col">Run</th>
                  <th scope="col">State</th>
                  <th scope="col" class="number">
                    Success
                  </th>
                  <th scope="col">Course</th>
                  <th scope="col">Progress</th>
                  <th scope="col">World, model</th>
                  <th scope="col">Differs in</th>
                  <th scope="col">Tags</th>
                  <th scope="col">Started (UTC)</th>
                </tr>
              </thead>
              <tbody>
                {shown.map((run) => (
                  <Row
                    key={run.id}
                    run={run}
                    chosen={chosen.has(run.id)}
                    toggle={() => toggle(run.id)}
                  />
                ))}
              </tbody>
            </table>
          </Scroll>
        </>
      )}
    </>
  );
}

/** Orders of the list; the largest value comes first. */
const ORDERS: Readonly<Record<string, { readonly label: string; of(run: RunRow): number }>> = {
  success: { label: "most successful", of: (run) => run.success ?? -1 },
  long: { label: "longest", of: (run) => run.seconds ?? -1 },
  oldest: { label: "oldest first", of: (run) => -Date.parse(run.createdAt) },
};

/** The list with the rows that have changed since. */
function withRows(list: RunList, changed: readonly RunRow[]): RunList {
  const byId = new Map(changed.map((row) => [row.id, row]));
  return { ...list, runs: list.runs.map((row) => byId.get(row.id) ?? row) };
}

const searched = (run: RunRow, tags: readonly string[]): string =>
  [
    run.id,
    run.kind,
    run.state,
    run.env,
    run.model ?? "",
    `seed ${run.seed}`,
    ...Object.entries(run.differs).flat(),
    ...tags,
  ]
    .join(" ")
    .toLowerCase();

function Row(props: {
  readonly run: RunRow;
  readonly chosen: boolean;
  toggle(): void;
}): JSX.Element {
  const { run, chosen, toggle } = props;
  const { id, update, updates } = run;
  const name = id === "" ? "this folder" : id;
  const differs = Object.entries(run.differs);
  const of = measuredOn(run);
  return (
    <tr>
      <td>
        <input
          type="checkbox"
          checked={chosen}
          onChange={toggle}
          aria-label={`Select ${name} to compare`}
        />
      </td>
      <th scope="row">
        <a href={link(["run", id])}>{visible(name)}</a>
        <div class="quiet small kind">
          {run.kind} · seed {run.seed}
        </div>
      </th>
      <td>
        <State of={run.state} />
      </td>
      <td class="number" title={run.successOf ?? undefined}>
        {run.success === null ? "–" : shortPercent(run.success)}
        {run.interval !== null && (
          <div class="quiet small">{run.interval.map(shortPercent).join(" to ")}</div>
        )}
        {of !== undefined && <div class="quiet small">{of}</div>}
      </td>
      <td>
        <Sparkline run={run} />
      </td>
      <td>
        {update === null ? (
          duration(run.seconds)
        ) : (
          <>
            <div class="small">
              {update}
              {updates !== null && ` of ${updates}`}
              {run.secondsLeft !== null && `, ${duration(run.secondsLeft)} left`}
              {run.seconds !== null && `, ${duration(run.seconds)}`}
            </div>
            {updates !== null && (
              <progress max={updates} value={update} aria-label={`updates of ${name}`} />
            )}
          </>
        )}
      </td>
      <td>
        {visible(run.env)}
        {run.model !== null && <div class="quiet small model">{visible(run.model)}</div>}
      </td>
      <td class="small differs">
        {differs.slice(0, MOST_DIFFERENCES).map(([path, value]) => (
          <div>
            <span class="quiet">{dotted(path)}</span> {visible(shortPath(value))}
          </div>
        ))}
        {differs.length > MOST_DIFFERENCES && (
          <div class="quiet">{differs.length - MOST_DIFFERENCES} more</div>
        )}
      </td>
      <td>
        <TagEditor id={id} />
      </td>
      <td class="small">{moment(run.createdAt)}</td>
    </tr>
  );
}

/** What the success of a run was measured on, if its metric says so: a split, `train`. */
export const measuredOn = ({ successOf }: RunRow): string | undefined =>
  successOf === null || successOf === "success"
    ? undefined
    : successOf.replace(/^eval\.|\.success$/g, "");

/** Settings named in a row: its page and the comparison have all. */
const MOST_DIFFERENCES = 3;

/** Width and height of a sparkline. */
const [WIDE, HIGH] = [96, 26];
/** Metrics whose course may stand for a run's. */
const COURSES = ["train.success", "wm.exactMatch", "rwml.reward"];

/** How success went, without axes; read when the row comes into sight, and again while the run goes on. */
function Sparkline({ run }: { readonly run: RunRow }): JSX.Element {
  const place = useRef<HTMLSpanElement>(null);
  const [seen, setSeen] = useState(false);
  const [values, setValues] = useState<readonly number[]>([]);
  useEffect(() => {
    const watcher = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) setSeen(true);
    });
    watcher.observe(place.current!);
    return () => watcher.disconnect();
  }, []);
  useEffect(() => {
    if (!seen || run.update === null) return;
    let late = false;
    ask<MetricsTable>("metrics", { run: run.id, names: COURSES.join(",") }).then(
      ({ columns }) => {
        const name = COURSES.find((metric) => columns[metric] !== undefined);
        const all = (columns[name ?? ""] ?? []).filter((value) => value !== null);
        if (!late) setValues(all);
      },
      // The row says what is wrong with the run.
      () => undefined,
    );
    return () => {
      late = true;
    };
  }, [seen, run.id, run.update]);
  // At most a point for every other pixel, each the mean of as many updates.
  const every = Math.max(1, Math.ceil(values.length / (WIDE / 2)));
  const points = Array.from({ length: Math.ceil(values.length / every) }, (_, i) => {
    const part = values.slice(i * every, (i + 1) * every);
    return part.reduce((sum, value) => sum + value, 0) / part.length;
  });
  const line = points
    .map((value, i) => {
      const x = (WIDE * i) / Math.max(1, points.length - 1);
      return `${x.toFixed(1)},${(HIGH - 2 - (HIGH - 4) * Math.min(1, Math.max(0, value))).toFixed(1)}`;
    })
    .join(" ");
  return (
    <span ref={place} class="sparkline">
      {points.length > 1 && (
        <svg
          viewBox={`0 0 ${WIDE} ${HIGH}`}
          width={WIDE}
          height={HIGH}
          role="img"
          aria-label={`from ${shortPercent(points[0]!)} to ${shortPercent(points.at(-1)!)} in training`}
        >
          <polyline points={line} />
        </svg>
      )}
    </span>
  );
}

const SIGNS: Readonly<Record<RunRow["state"], string>> = {
  running: "▶",
  done: "✓",
  stopped: "■",
  interrupted: "‖",
  failed: "✗",
  killed: "✗",
};

/** A run's state, by sign, word and colour. */
export function State({ of }: { readonly of: RunRow["state"] }): JSX.Element {
  return (
    <span class={`badge ${of}`}>
      <span aria-hidden="true">{SIGNS[of]} </span>
      {of}
    </span>
  );
}
