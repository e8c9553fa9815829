/** Tables over groups of runs: the last evaluations, and where the time went. */

import { successInterval } from "@pawl/core/success-interval.js";
import { splitsOf } from "@pawl/ui/report/curve-list.js";
import { type Spread, spreadOf } from "@pawl/ui/report/thin.js";
import type { JSX } from "preact";
import { Swatch } from "./chart.js";
import { metricsOf } from "./curves.js";
import { shortNumber, shortPercent } from "./format.js";
import { Scroll } from "./scroll.js";
import { firstOf, lastOf, type TableGroup } from "./series.js";
import { visible } from "./text.js";

/** Success at the start and at the last evaluation: mean ± standard deviation over a group's runs. */
export function EvaluationTable({
  groups,
}: {
  readonly groups: readonly TableGroup[];
}): JSX.Element {
  const names = metricsOf(groups);
  const columns = splitsOf(names).flatMap((split) => [
    { name: `eval.${split}.success`, title: split, percent: true },
    ...(names.includes(`eval.${split}.score`)
      ? [{ name: `eval.${split}.score`, title: `${split} score`, percent: false }]
      : []),
  ]);
  if (columns.length === 0) return <p class="hint">No evaluation was recorded.</p>;
  const several = groups.some(({ tables }) => tables.length > 1);
  return (
    <>
      <Scroll label="Results of evaluations">
        <table>
          <thead>
            <tr>
              <th scope="col">Success</th>
              {several && (
                <th scope="col" class="number">
                  n
                </th>
              )}
              {columns.map(({ title }) => (
                <th scope="col" class="number">
                  {visible(title)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {groups.map(({ tables }, index) => (
              <tr>
                <Name of={groups} index={index} />
                {several && <td class="number">{tables.length}</td>}
                {columns.map(({ name, percent }) => (
                  <Change tables={tables} name={name} percent={percent} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      <p class="hint">
        The last evaluation of each run, with its 95 % interval (Wilson), and its first, before RL.
        {several && " Over runs that differ only in their seed, mean ± standard deviation."}
      </p>
    </>
  );
}

/** The group of a row, with the colour of its lines where there are others. */
function Name({
  of,
  index,
}: {
  readonly of: readonly TableGroup[];
  readonly index: number;
}): JSX.Element {
  return (
    <th scope="row">
      {of.length > 1 && <Swatch index={index} />}
      {visible(of[index]!.label)}
    </th>
  );
}

/** A metric at the last evaluation, from that at the first. */
function Change(props: {
  readonly tables: TableGroup["tables"];
  readonly name: string;
  readonly percent: boolean;
}): JSX.Element {
  const { tables, name, percent } = props;
  const last = tables.flatMap((table) => lastOf(table, name) ?? []);
  const first = tables.flatMap((table) => firstOf(table, name) ?? []);
  if (last.length === 0) return <td class="number">–</td>;
  return (
    <td class="number">
      <div class="strong">{plusMinus(spreadOf(last), percent)}</div>
      {name.endsWith(".success") && tables.length === 1 && (
        <Interval share={last[0]!} of={lastOf(tables[0]!, episodesOf(name))} />
      )}
      <div class="start">from {plusMinus(spreadOf(first), percent)}</div>
    </td>
  );
}

/** The metric that counts the episodes of an evaluation. */
const episodesOf = (success: string): string => success.replace(/success$/, "episodes");

function Interval(props: {
  readonly share: number;
  readonly of: number | undefined;
}): JSX.Element | null {
  if (props.of === undefined || props.of === 0) return null;
  const [low, high] = successInterval({
    successes: Math.round(props.share * props.of),
    episodes: props.of,
  });
  return (
    <div class="start">
      {shortPercent(low)} to {shortPercent(high)}
    </div>
  );
}

/** Success by type of task at the last evaluation, from that at the first. */
export function TypeTable({
  groups,
}: {
  readonly groups: readonly TableGroup[];
}): JSX.Element | null {
  const names = metricsOf(groups);
  const splits = splitsOf(names).filter((split) =>
    names.some((name) => name.startsWith(`eval.${split}.success.`)),
  );
  if (splits.length === 0) return null;
  return (
    <>
      {splits.map((split) => {
        const start = `eval.${split}.success.`;
        const types = names.flatMap((name) =>
          name.startsWith(start) ? name.slice(start.length) : [],
        );
        return (
          <Scroll label={`Success by type of task, ${split}`}>
            <table>
              <thead>
                <tr>
                  <th scope="col">{visible(split)}</th>
                  {types.map((type) => (
                    <th scope="col" class="number">
                      {visible(type)}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {groups.map(({ tables }, index) => (
                  <tr>
                    <Name of={groups} index={index} />
                    {types.map((type) => (
                      <Change tables={tables} name={start + type} percent />
                    ))}
                  </tr>
                ))}
              </tbody>
            </table>
          </Scroll>
        );
      })}
    </>
  );
}

const PHASES = ["rollout", "score", "prepare", "measure", "learn"] as const;

/** Mean seconds per update in each phase. */
export function TimeTable({
  groups,
}: {
  readonly groups: readonly TableGroup[];
}): JSX.Element | null {
  const names = metricsOf(groups);
  const other = names.filter(
    (name) => name.startsWith("seconds.") && !PHASES.some((phase) => name === `seconds.${phase}`),
  );
  const phases = [...PHASES, ...other.map((name) => name.slice("seconds.".length))].filter(
    (phase) => names.includes(`seconds.${phase}`),
  );
  const times = groups.map(({ tables }) =>
    phases.map((phase) => {
      const values = tables.flatMap(({ columns }) =>
        (columns[`seconds.${phase}`] ?? []).flatMap((value) => value ?? []),
      );
      return values.length === 0 ? 0 : spreadOf(values).mean;
    }),
  );
  const totals = times.map((row) => row.reduce((sum, seconds) => sum + seconds, 0));
  const longest = Math.max(...totals);
  if (!(longest > 0)) return null;
  return (
    <Scroll label="Seconds per update">
      <table>
        <thead>
          <tr>
            <th scope="col">Seconds per update</th>
            {phases.map((phase, i) => (
              <th scope="col" class="number">
                <span class={`phase p${i % 6} key`} aria-hidden="true" />
                {phase}
              </th>
            ))}
            <th scope="col" class="number">
              all
            </th>
            <th scope="col" class="bars">
              <span class="unseen">share</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {groups.map((_, index) => (
            <tr>
              <Name of={groups} index={index} />
              {times[index]!.map((seconds) => (
                <td class="number">{seconds.toFixed(2)}</td>
              ))}
              <td class="number strong">{totals[index]!.toFixed(2)}</td>
              <td class="bars">
                <div>
                  {times[index]!.map((seconds, i) => (
                    <span
                      class={`phase p${i % 6}`}
                      style={{ width: `${(100 * seconds) / longest}%` }}
                    />
                  ))}
                </div>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function plusMinus({ mean, deviation, count }: Spread, percent: boolean): string {
  const format = percent ? shortPercent : shortNumber;
  if (count < 2) return format(mean);
  return percent
    ? `${(100 * mean).toFixed(1)} ± ${(100 * deviation).toFixed(1)} %`
    : `${format(mean)} ± ${format(deviation)}`;
}
