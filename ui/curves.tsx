/** All curves of some groups of runs: success first, the others under their headings. */

import { successInterval } from "@pawl/core/success-interval.js";
import { type CurveSection, curveSections, splitsOf } from "@pawl/ui/report/curve-list.js";
import { thinned } from "@pawl/ui/report/thin.js";
import type { MetricsColumns } from "@pawl/ui/report/views.js";
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Chart, type Line, Swatch } from "./chart.js";
import { AXES, type Axis, axisOf, linesOf, type TableGroup } from "./series.js";
import { visible } from "./text.js";

/** Longer runs become solid blocks of colour. */
const MOST_ROWS = 600;

/** The names of all metrics that some run has. */
export function metricsOf(groups: readonly TableGroup[]): readonly string[] {
  return [
    ...new Set(
      groups.flatMap(({ tables }) => tables.flatMap(({ columns }) => Object.keys(columns))),
    ),
  ];
}

/** Which line is which, once for all charts of a page. */
export function Key({
  groups,
}: {
  readonly groups: readonly { readonly label: string; readonly seeds: readonly number[] }[];
}): JSX.Element {
  return (
    <ul class="key">
      {groups.map(({ label, seeds }, i) => (
        <li>
          <Swatch index={i} />
          {visible(label)}{" "}
          <span class="quiet">
            {seeds.length === 1 ? "seed" : "seeds"} {seeds.join(", ")}
          </span>
        </li>
      ))}
    </ul>
  );
}

/** Success on every split and in training: what the runs are for. */
export function SuccessChart(props: {
  readonly groups: readonly TableGroup[];
  readonly axis?: Axis;
}): JSX.Element | null {
  const { groups, axis = "update" } = props;
  const splits = splitsOf(metricsOf(groups));
  const charts = useMemo(
    () =>
      groups.length === 1
        ? [{ title: "Success", dots: true, ...overlaid(groups[0]!, splits, axis) }]
        : ["train", ...splits].flatMap((split) => {
            const metric = split === "train" ? "train.success" : `eval.${split}.success`;
            const { x, lines } = linesOf(thin(groups), metric, axis);
            const title = split === "train" ? "Success while training" : `Success on ${split}`;
            return x.length === 0 ? [] : [{ title, dots: split !== "train", x, lines }];
          }),
    [groups, axis],
  );
  if (charts.every(({ x }) => x.length === 0)) return null;
  const note = groups.every(({ tables }) => tables.length === 1)
    ? "share of tasks solved; bands are 95 % intervals (Wilson)"
    : "share of tasks solved; mean ± standard deviation over the runs";
  return (
    <div class={groups.length === 1 ? "hero" : "charts few"}>
      {charts.map(({ title, dots, x, lines }) => (
        <Chart
          key={title}
          title={title}
          note={groups.length === 1 ? note : ""}
          percent
          dots={dots}
          keyed={groups.length > 1}
          height={groups.length === 1 ? 300 : 230}
          x={x}
          xLabel={AXES[axis]}
          lines={lines}
        />
      ))}
    </div>
  );
}

/** A group's success on all splits over a common x; training, which is no evaluation, stays pale. */
function overlaid(group: TableGroup, splits: readonly string[], axis: Axis) {
  const parts = [...splits, "train"].map((split, colour) => {
    const metric = split === "train" ? "train.success" : `eval.${split}.success`;
    const { x, lines } = linesOf(thin([group]), metric, axis);
    const { every: _, low, high, ...line } = lines[0]!;
    const pale = split === "train" && splits.length > 0;
    const band = pale ? {} : low !== undefined ? { low, high } : wilson(group, split, x, axis);
    const label = split === "train" ? "in training" : split;
    return { x, line: { ...line, ...band, label, colour: pale ? PALE : colour, pale } };
  });
  const x = [...new Set(parts.flatMap((part) => part.x))].sort((a, b) => a - b);
  const lines = parts
    .filter((part) => part.x.length > 0)
    .map(({ x: own, line }): Line => {
      const place = new Map(own.map((value, i) => [value, i]));
      const at = (values: Line["y"]) =>
        x.map((value) => (place.has(value) ? (values[place.get(value)!] ?? null) : null));
      const { low, high } = line;
      return { ...line, y: at(line.y), ...(low && high && { low: at(low), high: at(high) }) };
    });
  return { x, lines };
}

/** The colour of what is not the point: grey. */
const PALE = 6;

/** The 95 % interval of one run's evaluations, where the number of their episodes is recorded. */
function wilson({ tables }: TableGroup, split: string, x: readonly number[], axis: Axis) {
  const [table] = thin([{ label: "", tables }])[0]!.tables;
  const of = (name: string) => table?.columns[`eval.${split}.${name}`] ?? [];
  const [success, episodes] = [of("success"), of("episodes")];
  if (tables.length !== 1 || episodes.length === 0) return {};
  const places = axisOf(table!, axis);
  const intervals = new Map(
    success.flatMap((share, i) => {
      const count = episodes[i] ?? 0;
      if (share === null || count === 0) return [];
      const successes = Math.round(share * count);
      return [[places[i]!, successInterval({ successes, episodes: count })] as const];
    }),
  );
  const edge = (side: 0 | 1) => x.map((place) => intervals.get(place)?.[side] ?? null);
  return { low: edge(0), high: edge(1) };
}

/** Thinned once for all charts: it takes longer than drawing one. */
const thinnedTables = new WeakMap<MetricsColumns, MetricsColumns>();

const thin = (groups: readonly TableGroup[]): readonly TableGroup[] =>
  groups.map((group) => ({ ...group, tables: group.tables.map(thinOne) }));

function thinOne(table: MetricsColumns): MetricsColumns {
  const before = thinnedTables.get(table);
  if (before !== undefined) return before;
  const thinner = thinned(table, MOST_ROWS);
  thinnedTables.set(table, thinner);
  return thinner;
}

/** Sections that are open at first: what one looks at while a run trains. */
const OPEN = 2;

/** The other curves, by section; `only` restricts them to names that contain it, and opens all. */
export function Curves(props: {
  readonly groups: readonly TableGroup[];
  readonly axis?: Axis;
  readonly smoothing?: number;
  readonly only?: string;
}): JSX.Element {
  const { groups, only = "" } = props;
  const names = metricsOf(groups).filter((name) => name.includes(only.trim()));
  const sections = curveSections(names);
  return (
    <>
      {sections.map((section, i) => (
        <Section
          key={`${section.heading} ${only.trim() !== ""}`}
          {...props}
          section={section}
          open={i < OPEN || only.trim() !== ""}
        />
      ))}
      {sections.length === 0 && <p class="hint">No other metric has this in its name.</p>}
    </>
  );
}

/** Curves under a heading, which are made when it is opened. */
function Section(props: {
  readonly section: CurveSection;
  readonly open: boolean;
  readonly groups: readonly TableGroup[];
  readonly axis?: Axis;
  readonly smoothing?: number;
}): JSX.Element {
  const { section, groups, axis = "update", smoothing = 0 } = props;
  // Drawn when what is above can be seen.
  const [open, setOpen] = useState(false);
  useEffect(() => {
    if (!props.open) return;
    const soon = setTimeout(() => setOpen(true));
    return () => clearTimeout(soon);
  }, []);
  const charts = useMemo(
    () =>
      open
        ? section.curves.map((curve) => ({
            curve,
            ...linesOf(thin(groups), curve.metric, axis, smoothing),
          }))
        : [],
    [open, groups, axis, smoothing, section.curves.map(({ metric }) => metric).join()],
  );
  return (
    <details class="curves" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <h3>{section.heading}</h3>{" "}
        <span class="quiet small">{section.curves.map(({ title }) => title).join(" · ")}</span>
      </summary>
      <div class="charts">
        {charts.map(({ curve, x, lines }) => (
          <Chart
            key={curve.metric}
            title={curve.title}
            note={curve.note}
            percent={curve.percent}
            dots={curve.dots}
            keyed={groups.length > 1}
            x={x}
            xLabel={AXES[axis]}
            lines={lines}
          />
        ))}
      </div>
    </details>
  );
}
