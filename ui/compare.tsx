/** Several runs, or groups of runs over seeds: curves with bands, and a paired table. */

import { type Estimate, pairedDifference } from "@pawl/studies/statistics.js";
import type { MetricsTable, RunDetail, RunList, RunRow } from "@pawl/ui/server/api.js";
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { Swatch } from "./chart.js";
import { Curves, Key, metricsOf, SuccessChart } from "./curves.js";
import { shortNumber, shortPath } from "./format.js";
import { Empty, useLoaded, Waiting } from "./load.js";
import { link, setQuery, usePlace } from "./route.js";
import { AxisForm } from "./run.js";
import { Scroll } from "./scroll.js";
import { type Axis, lastOf, type TableGroup } from "./series.js";
import { ask } from "./server.js";
import { EvaluationTable, TimeTable } from "./tables.js";
import { visible, visibleText } from "./text.js";

/** Curves of more runs than this cannot be told apart, and take long to load. */
const MOST = 32;

/** Too many differences for a name. */
const MOST_DIFFERENCES = 4;

type Settings = ReadonlyMap<string, string>;

interface CompareGroup extends TableGroup {
  readonly rows: readonly RunRow[];
}

/** The page that compares. */
export function Compare(): JSX.Element {
  const { query } = usePlace();
  const asked = (query.runs ?? "").split(",").map(decodeURIComponent);
  const ids = query.runs === undefined ? [] : [...new Set(asked)].slice(0, MOST);
  const together = query.seeds !== "apart";
  const loaded = useLoaded(JSON.stringify(ids), async () => {
    const list = await ask<RunList>("runs");
    const tables = await Promise.all(ids.map((run) => ask<MetricsTable>("metrics", { run })));
    const details = await Promise.all(ids.map((run) => ask<RunDetail>("run", { run })));
    return { list, tables, details };
  });
  const groups = useMemo(
    () => (loaded.value === undefined ? [] : groupsOf(ids, loaded.value, together)),
    [loaded.value, together],
  );
  if (loaded.value === undefined) return <Waiting of={loaded} />;
  const { runs } = loaded.value.list;
  const axis = (query.axis ?? "update") as Axis;
  const smoothing = Number(query.smooth ?? 0);
  return (
    <>
      <h1>Compare</h1>
      <Chooser runs={runs} ids={ids} />
      {asked.length > MOST && <p class="hint">Only the first {MOST} runs are shown.</p>}
      {ids.length === 0 ? (
        <Empty>
          Select runs above, or in the list of <a href={link([])}>all runs</a>.
        </Empty>
      ) : (
        <>
          <label class="line">
            <input
              type="checkbox"
              checked={together}
              onChange={(event) =>
                setQuery({ seeds: event.currentTarget.checked ? undefined : "apart" })
              }
            />{" "}
            Average runs that differ only in their seed (mean ± standard deviation)
          </label>
          <Key
            groups={groups.map(({ label, rows }) => ({
              label,
              seeds: rows.map(({ seed }) => seed),
            }))}
          />
          <SuccessChart groups={groups} axis={axis} />
          <Pairs groups={groups} />
          <section>
            <h2>Evaluations</h2>
            <EvaluationTable groups={groups} />
          </section>
          <section>
            <h2>Curves</h2>
            <AxisForm axis={axis} smoothing={smoothing} only={query.only ?? ""} />
            <Curves groups={groups} axis={axis} smoothing={smoothing} only={query.only ?? ""} />
          </section>
          <section>
            <h2>Where the time goes</h2>
            <TimeTable groups={groups} />
          </section>
        </>
      )}
    </>
  );
}

function Chooser({
  runs,
  ids,
}: {
  readonly runs: readonly RunRow[];
  readonly ids: readonly string[];
}): JSX.Element {
  const set = (next: readonly string[]): void =>
    setQuery({ runs: next.length === 0 ? undefined : next.map(encodeURIComponent).join(",") });
  return (
    <details class="chooser" open={ids.length === 0}>
      <summary>
        {ids.length} of {runs.length} runs selected
      </summary>
      <ul>
        {runs.map(({ id, state }) => (
          <li>
            <label>
              <input
                type="checkbox"
                checked={ids.includes(id)}
                onChange={(event) =>
                  set(event.currentTarget.checked ? [...ids, id] : ids.filter((one) => one !== id))
                }
              />{" "}
              {visible(id || "this folder")} <span class="quiet">{state}</span>
            </label>
          </li>
        ))}
      </ul>
    </details>
  );
}

function groupsOf(
  ids: readonly string[],
  {
    tables,
    details,
  }: { readonly tables: readonly MetricsTable[]; readonly details: readonly RunDetail[] },
  together: boolean,
): readonly CompareGroup[] {
  const members = new Map<string, { rows: RunRow[]; tables: MetricsTable[]; settings: Settings }>();
  for (const [i, id] of ids.entries()) {
    const { row, settings } = details[i]!;
    const key = together ? row.groupKey : id;
    const group = members.get(key) ?? {
      rows: [],
      tables: [],
      settings: new Map(settings.map(({ path, value }) => [path, value])),
    };
    group.rows.push(row);
    group.tables.push(tables[i]!);
    members.set(key, group);
  }
  const groups = [...members.values()];
  const paths = new Set(groups.flatMap(({ settings }) => [...settings.keys()]));
  const differing = [...paths].filter(
    (path) => new Set(groups.map(({ settings }) => settings.get(path))).size > 1,
  );
  const named = together && differing.length > 0 && differing.length <= MOST_DIFFERENCES;
  return groups.map(({ rows, tables: own, settings }) => ({
    label: named
      ? differing.map((path) => `${path} ${shortPath(settings.get(path) ?? "–")}`).join(" · ")
      : rows.length === 1
        ? rows[0]!.id
        : `${rows[0]!.id} and ${rows.length - 1} more`,
    rows,
    tables: own,
  }));
}

/** Each group against the first, seed by seed. */
function Pairs({ groups }: { readonly groups: readonly CompareGroup[] }): JSX.Element | null {
  const { query } = usePlace();
  if (groups.length < 2) return null;
  const names = metricsOf(groups)
    .filter((name) => !name.startsWith("seconds."))
    .sort();
  const usual = names.find((name) => /^eval\..+\.success$/.test(name)) ?? "train.success";
  const metric = query.metric ?? usual;
  const valuesOf = ({ rows, tables }: CompareGroup): ReadonlyMap<number, number> =>
    new Map(
      rows.flatMap(({ seed }, i) => {
        const value = lastOf(tables[i]!, metric);
        return value === undefined ? [] : [[seed, value] as const];
      }),
    );
  const values = groups.map(valuesOf);
  const seeds = [...new Set(values.flatMap((one) => [...one.keys()]))].sort((a, b) => a - b);
  return (
    <section>
      <h2>Paired by seed</h2>
      <label class="line">
        Last value of{" "}
        <select
          value={metric}
          onChange={(event) => setQuery({ metric: event.currentTarget.value })}
        >
          {names.map((name) => (
            <option value={name}>{visibleText(name)}</option>
          ))}
        </select>
      </label>
      <Scroll label="Paired differences">
        <table>
          <thead>
            <tr>
              <th scope="col">Group</th>
              {seeds.map((seed) => (
                <th scope="col" class="number">
                  seed {seed}
                </th>
              ))}
              <th scope="col" class="number">
                Difference from the first
              </th>
            </tr>
          </thead>
          <tbody>
            {groups.map(({ label }, i) => (
              <tr>
                <th scope="row">
                  <Swatch index={i} />
                  {visible(label)}
                </th>
                {seeds.map((seed) => (
                  <td class="number">
                    {values[i]!.has(seed) ? shortNumber(values[i]!.get(seed)!) : "–"}
                  </td>
                ))}
                <td class="number">
                  {i === 0 ? "" : difference(pairedDifference(values[i]!, values[0]!))}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      <p class="hint">
        Differences between runs with the same seed: mean, 95 % interval (Student's t) and number of
        pairs.
      </p>
    </section>
  );
}

function difference(estimate: Estimate | undefined): string {
  if (estimate === undefined) return "no seed in common";
  const { mean, interval, n } = estimate;
  const signed = `${mean >= 0 ? "+" : ""}${shortNumber(mean)}`;
  return interval === undefined
    ? `${signed} (n 1)`
    : `${signed} [${shortNumber(interval[0])}, ${shortNumber(interval[1])}] (n ${n})`;
}
