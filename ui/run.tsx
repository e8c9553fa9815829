/** One run: its curves while it trains, its settings beside its recipe's, and what to do with it. */

import type { AlarmRecord } from "@pawl/core/runs/alarms-file.js";
import { splitsOf } from "@pawl/ui/report/curve-list.js";
import type { MetricsTable, RunDetail, RunRow } from "@pawl/ui/server/api.js";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Curves, SuccessChart } from "./curves.js";
import { duration, moment, shortNumber, shortPath, shortPercent } from "./format.js";
import { Empty, Problem, useLoaded, Waiting } from "./load.js";
import { link, setQuery, usePlace } from "./route.js";
import { measuredOn, State } from "./runs.js";
import { AXES, type Axis, firstOf, lastOf } from "./series.js";
import { ask, isInPage, listen } from "./server.js";
import { Settings } from "./settings.js";
import { EvaluationTable, TimeTable } from "./tables.js";
import { Copyable, visible } from "./text.js";

/** The page of a run. */
export function Run({ id }: { readonly id: string }): JSX.Element {
  const detail = useLoaded(`run ${id}`, () => ask<RunDetail>("run", { run: id }));
  const { table, row, alarms, gone, connected, problem } = useLiveRun(id);
  const { query } = usePlace();
  const axis = (query.axis ?? "update") as Axis;
  const smoothing = Number(query.smooth ?? 0);
  const groups = useMemo(
    () => (table === undefined ? [] : [{ label: id === "" ? "this run" : id, tables: [table] }]),
    [table, id],
  );
  const state = row?.state;
  // A run that has ended since has other commands.
  useEffect(() => {
    if (state !== undefined && detail.value !== undefined && state !== detail.value.row.state)
      detail.again();
  }, [state]);
  if (detail.value === undefined) return <Waiting of={detail} />;
  const { folder, error, recipe, settings, commands, versions } = detail.value;
  const now = row ?? detail.value.row;
  return (
    <>
      <RunHeader row={now} page="run" />
      {gone !== undefined && (
        <Problem>
          The run can no longer be read: {visible(gone)}. The page shows what was loaded before.
        </Problem>
      )}
      {!connected && gone === undefined && (
        <Problem>Connection to the server lost; reconnecting.</Problem>
      )}
      {problem !== undefined && <Problem>{visible(problem)}</Problem>}
      {table?.problems.map((text) => (
        <Problem>{visible(text)}</Problem>
      ))}
      {error !== null && <Problem>The run failed: {visible(error)}</Problem>}
      <Alarms alarms={alarms} />
      <Summary row={now} table={table} settings={settings} />
      {table !== undefined && <SuccessChart groups={groups} axis={axis} />}
      <Facts row={now} table={table} alarms={alarms.length} />
      {!isInPage && (
        <section>
          <h2>Commands</h2>
          <dl class="commands">
            {commands.map(({ what, command }) => (
              <>
                <dt>{what}</dt>
                <dd>
                  <Copyable text={command} label={what} />
                </dd>
              </>
            ))}
          </dl>
        </section>
      )}
      {!PLAYED.test(now.kind) && (
        <section>
          <h2>Curves</h2>
          {table === undefined ? (
            <p class="waiting">Loading…</p>
          ) : table.update.length === 0 ? (
            <Empty>
              {now.state === "running"
                ? "No update has finished yet. The curves will appear here."
                : "This run recorded no metrics."}
            </Empty>
          ) : (
            <>
              <AxisForm axis={axis} smoothing={smoothing} only={query.only ?? ""} />
              <Curves groups={groups} axis={axis} smoothing={smoothing} only={query.only ?? ""} />
            </>
          )}
        </section>
      )}
      {table !== undefined && table.update.length > 0 && (
        <>
          {splitsOf(Object.keys(table.columns)).length > 0 && (
            <section>
              <h2>Evaluations</h2>
              <EvaluationTable groups={groups} />
            </section>
          )}
          {Object.keys(table.columns).some((name) => name.startsWith("seconds.")) && (
            <section>
              <h2>Where the time goes</h2>
              <TimeTable groups={groups} />
            </section>
          )}
        </>
      )}
      <section>
        <h2>Settings</h2>
        <Settings settings={settings} recipe={recipe} />
      </section>
      <p class="hint">
        <code>{visible(folder)}</code> ·{" "}
        {Object.entries(versions)
          .map(([name, version]) => `${name} ${version}`)
          .join(" · ")}
      </p>
    </>
  );
}

/** A run's metrics, which grow while it trains; none without a name. */
export function useLiveRun(id: string | undefined) {
  const [table, setTable] = useState<MetricsTable>();
  const [row, setRow] = useState<RunRow>();
  const [alarms, setAlarms] = useState<readonly AlarmRecord[]>([]);
  const [gone, setGone] = useState<string>();
  const [problem, setProblem] = useState<string>();
  const [connected, setConnected] = useState(true);
  const end = useRef(0);
  useLayoutEffect(() => {
    if (id === undefined) return;
    let stop = (): void => undefined;
    let left = false;
    const start = (): void => {
      ask<MetricsTable>("metrics", { run: id }).then(
        (read) => {
          if (left) return;
          end.current = read.end;
          setTable(read);
          stop();
          stop = listen(() => ({ run: id, from: String(end.current) }), handlers, setConnected);
        },
        (error: Error) => left || setProblem(error.message),
      );
    };
    const handlers = {
      run: setRow,
      alarms: setAlarms,
      again: start,
      gone: ({ message }: { message: string }) => setGone(message),
      metrics(part: { lines: readonly Readonly<Record<string, number>>[]; end: number }) {
        end.current = part.end;
        setTable((before) => before && append(before, part.lines, part.end));
      },
    };
    setTable(undefined);
    setGone(undefined);
    start();
    return () => {
      left = true;
      stop();
    };
  }, [id]);
  return { table, row, alarms, gone, connected, problem };
}

function append(
  before: MetricsTable,
  lines: readonly Readonly<Record<string, number>>[],
  end: number,
): MetricsTable {
  const from = before.update.length;
  const update = [...before.update, ...lines.map((line) => line.update ?? 0)];
  const names = new Set([
    ...Object.keys(before.columns),
    ...lines.flatMap((line) => Object.keys(line)),
  ]);
  names.delete("update");
  const columns = Object.fromEntries(
    [...names].map((name) => [
      name,
      [
        ...(before.columns[name] ?? new Array<null>(from).fill(null)),
        ...lines.map((line) => line[name] ?? null),
      ],
    ]),
  );
  return { ...before, update, columns, end };
}

/** A run's name, state and pages. */
export function RunHeader({
  row,
  page,
}: {
  readonly row: RunRow;
  readonly page: "run" | "episodes";
}): JSX.Element {
  const name = row.id === "" ? "This run" : row.id;
  const tab = (key: "run" | "episodes", parts: readonly string[], label: string): JSX.Element => (
    <a href={link(parts)} aria-current={page === key ? "page" : undefined}>
      {label}
    </a>
  );
  return (
    <header>
      <h1>
        {visible(name)} <State of={row.state} />
      </h1>
      <p class="lead">
        {row.kind} · {visible(row.env)} · seed {row.seed} · started {moment(row.createdAt)} UTC
      </p>
      <nav class="tabs" aria-label="Pages of this run">
        {tab("run", ["run", row.id], "Overview")}
        {tab("episodes", ["run", row.id, "episodes"], "Episodes")}
        <a href={link(["compare"], { runs: encodeURIComponent(row.id) })}>Compare</a>
      </nav>
    </header>
  );
}

/** The run in a line: what was trained where, for how long, from where to where, and what is unusual. */
function Summary(props: {
  readonly row: RunRow;
  readonly table: MetricsTable | undefined;
  readonly settings: RunDetail["settings"];
}): JSX.Element {
  const { row, table, settings } = props;
  const changed = settings.filter(({ recipe }) => recipe !== undefined);
  const parts = [
    row.model,
    row.env,
    row.seconds === null ? undefined : duration(row.seconds),
    courseOf(row, table),
    ...changed.slice(0, MOST_CHANGES).map(({ path, value }) => `${path} ${shortPath(value)}`),
    changed.length > MOST_CHANGES && `${changed.length - MOST_CHANGES} more settings differ`,
  ];
  return <p class="summary">{visible(parts.filter(Boolean).join(" · "))}</p>;
}

/** Success from where to where, if it was measured. */
export function courseOf(row: RunRow, table: MetricsTable | undefined): string | undefined {
  if (row.success === null) return undefined;
  const first =
    row.successOf === null || table === undefined ? undefined : firstOf(table, row.successOf);
  const from = first === undefined || table!.update.length < 2 ? "" : `${shortPercent(first)} → `;
  const interval = row.interval === null ? "" : ` (${row.interval.map(shortPercent).join(" to ")})`;
  const on = measuredOn(row);
  return `${from}${shortPercent(row.success)}${interval}${on === undefined ? "" : ` on ${on}`}`;
}

/** Runs that play and do not train, and so have no curves. */
const PLAYED = /^(eval|rollout|distill)$/;

/** Settings named in the line. */
const MOST_CHANGES = 3;

function Facts({
  row,
  table,
  alarms,
}: {
  readonly row: RunRow;
  readonly table: MetricsTable | undefined;
  readonly alarms: number;
}): JSX.Element {
  const last = (name: string): number | undefined => table && lastOf(table, name);
  const tokens = last("train.tokens");
  const learn = last("seconds.learn");
  const facts: readonly (readonly [string, string | undefined])[] = [
    [
      "updates",
      row.update === null
        ? undefined
        : `${row.update}${row.updates === null ? "" : ` of ${row.updates}`}`,
    ],
    ["time left", row.secondsLeft === null ? undefined : duration(row.secondsLeft)],
    [
      "memory",
      last("memory.mib") === undefined ? undefined : `${shortNumber(last("memory.mib")!)} MiB`,
    ],
    [
      "speed",
      tokens === undefined || !learn
        ? undefined
        : `${shortNumber(tokens / learn)} tokens/s in training`,
    ],
    ["alarms", row.update === null ? undefined : alarms === 0 ? "none" : String(alarms)],
  ];
  return (
    <dl class="facts">
      {facts.map(([name, value]) =>
        value === undefined ? null : (
          <div>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
      )}
    </dl>
  );
}

/** The alarms that were raised, the latest first. */
function Alarms({ alarms }: { readonly alarms: readonly AlarmRecord[] }): JSX.Element | null {
  if (alarms.length === 0) return null;
  return (
    <div class="problem" role="alert">
      <strong>Alarms</strong>
      <ul>
        {alarms.toReversed().map(({ update, alarm, text }) => (
          <li>
            update {update + 1}, {visible(alarm)}: {visible(text)}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Which axis, how smooth, and which metrics. */
export function AxisForm(props: {
  readonly axis: Axis;
  readonly smoothing: number;
  readonly only: string;
}): JSX.Element {
  return (
    <form class="filters" onSubmit={(event) => event.preventDefault()}>
      <label>
        X axis
        <select
          value={props.axis}
          onChange={(event) => setQuery({ axis: event.currentTarget.value })}
        >
          {Object.entries(AXES).map(([name, label]) => (
            <option value={name}>{name === "update" ? "updates" : label}</option>
          ))}
        </select>
      </label>
      <label>
        Smoothing
        <input
          type="range"
          min="0"
          max="0.98"
          step="0.02"
          value={props.smoothing}
          aria-valuetext={props.smoothing === 0 ? "none" : String(props.smoothing)}
          onInput={(event) => setQuery({ smooth: event.currentTarget.value })}
        />
      </label>
      <label>
        Metrics
        <input
          type="search"
          value={props.only}
          placeholder="part of a name"
          onInput={(event) => setQuery({ only: event.currentTarget.value })}
        />
      </label>
    </form>
  );
}
