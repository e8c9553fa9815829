/** All runs below the folder, live. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { RunList, RunRow } from "../src/ui/api.js";
import { count, duration, moment, shortPercent } from "./format.js";
import { Empty, Problem, useLoaded, Waiting } from "./load.js";
import { link, setQuery, usePlace } from "./route.js";
import { Scroll } from "./scroll.js";
import { ask, listen } from "./server.js";
import { TagEditor, tagsOf, useTags } from "./tags.js";
import { Copyable, visible } from "./text.js";

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
  const { text = "", state = "" } = query;
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = list.runs.filter(
    (run) =>
      (state === "" || run.state === state) &&
      words.every((word) => searched(run, tagsOf(tags, run.id)).includes(word)),
  );
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
                  <th scope="col">Progress</th>
                  <th scope="col" class="number">
                    Time left
                  </th>
                  <th scope="col">World</th>
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
        <div class="quiet small">
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
        {run.successOf !== null && (
          <div class="quiet small">{run.successOf.replace(/^eval\.|\.success$/g, "")}</div>
        )}
      </td>
      <td>
        {update === null ? (
          "–"
        ) : (
          <>
            <div class="small">
              {update}
              {updates !== null && ` of ${updates}`}
            </div>
            {updates !== null && (
              <progress max={updates} value={update} aria-label={`updates of ${name}`} />
            )}
          </>
        )}
      </td>
      <td class="number">{duration(run.secondsLeft)}</td>
      <td>{visible(run.env)}</td>
      <td class="small differs">
        {Object.entries(run.differs).map(([path, value]) => (
          <div>
            <span class="quiet">{visible(path)}</span> {visible(value)}
          </div>
        ))}
      </td>
      <td>
        <TagEditor id={id} />
      </td>
      <td class="small">{moment(run.createdAt)}</td>
    </tr>
  );
}

const SIGNS: Readonly<Record<RunRow["state"], string>> = {
  running: "▶",
  done: "✓",
  stopped: "■",
  interrupted: "⏸",
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
