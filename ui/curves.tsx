/** All curves of some groups of runs, under their headings. */

import { curveSections } from "@pawl/ui/report/curve-list.js";
import { thinned } from "@pawl/ui/report/thin.js";
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { Chart } from "./chart.js";
import { AXES, type Axis, linesOf, type TableGroup } from "./series.js";

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

/** The curves; `only` restricts them to names that contain it. */
export function Curves(props: {
  readonly groups: readonly TableGroup[];
  readonly axis?: Axis;
  readonly smoothing?: number;
  readonly only?: string;
}): JSX.Element {
  const { groups, axis = "update", smoothing = 0, only = "" } = props;
  const sections = useMemo(() => {
    const names = metricsOf(groups).filter((name) => name.includes(only.trim()));
    const shown = groups.map((group) => ({
      ...group,
      tables: group.tables.map((table) => thinned(table, MOST_ROWS)),
    }));
    return curveSections(names).map(({ heading, curves }) => ({
      heading,
      charts: curves.map((curve) => ({ curve, ...linesOf(shown, curve.metric, axis, smoothing) })),
    }));
  }, [groups, axis, smoothing, only]);
  return (
    <>
      {sections.map(({ heading, charts }) => (
        <section key={heading}>
          <h3>{heading}</h3>
          <div class="charts">
            {charts.map(({ curve, x, lines }) => (
              <Chart
                key={curve.metric}
                title={curve.title}
                note={curve.note}
                percent={curve.percent}
                dots={curve.dots}
                x={x}
                xLabel={AXES[axis]}
                lines={lines}
              />
            ))}
          </div>
        </section>
      ))}
    </>
  );
}
