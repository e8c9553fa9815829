/** Curves over a run: lines with bands, a read-out that follows pointer and arrow keys, and the numbers. */
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { shortNumber, shortPercent } from "./format.js";
import { Scroll } from "./scroll.js";
import { visible, visibleText } from "./text.js";

/** One line; null where there is no value. */
export interface Line {
  readonly label: string;
  readonly y: readonly (number | null)[];
  /** The band around it. */
  readonly low?: readonly (number | null)[];
  readonly high?: readonly (number | null)[];
  /** What was smoothed. */
  readonly raw?: readonly (number | null)[];
  /** Of a thinned line: how many updates a point is the mean of; the band is their range. */
  readonly every?: number;
  /** How many runs stand behind it. */
  readonly runs?: number;
  /** Its colour, if not that of its place. */
  readonly colour?: number;
  /** Stays in the background. */
  readonly pale?: boolean;
}

interface ChartProps {
  readonly title: string;
  readonly note?: string;
  readonly x: readonly number[];
  readonly xLabel: string;
  readonly lines: readonly Line[];
  readonly percent?: boolean | undefined;
  readonly dots?: boolean | undefined;
  /** In pixels. */
  readonly height?: number;
  /** The page has a key to the lines, so that their names need not be repeated. */
  readonly keyed?: boolean;
}

/** Lines are told apart by their dashes as well as by their colours. */
const DASHES: readonly (readonly number[])[] = [[], [8, 4], [2, 3], [10, 4, 2, 4], [5, 5], [1, 4]];
const COLOURS = 8;

const HEIGHT = 210;
const variable = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** The chart with its title. */
export function Chart(props: ChartProps): JSX.Element {
  const { title, note, x, lines, percent = false, height = HEIGHT, keyed = false } = props;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const [at, setAt] = useState<number | null>(null);
  const [theme, setTheme] = useState(0);
  const [opened, setOpened] = useState(false);
  const format = percent ? shortPercent : shortNumber;
  const shape = JSON.stringify([
    lines.map(({ label, low, raw }) => [label, low !== undefined, raw !== undefined]),
    percent,
  ]);

  useEffect(() => {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const changed = (): void => setTheme((n) => n + 1);
    dark.addEventListener("change", changed);
    return () => dark.removeEventListener("change", changed);
  }, []);

  // With its box, so that no empty one is seen. New data is set below without a new plot.
  useLayoutEffect(() => {
    const element = place.current!;
    const made = new uPlot(options(props, element.clientWidth, setAt), dataOf(props), element);
    plot.current = made;
    const resized = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }));
    resized.observe(element);
    return () => {
      resized.disconnect();
      made.destroy();
    };
  }, [shape, theme]);

  useLayoutEffect(() => plot.current?.setData(dataOf(props)), [x, lines]);

  const move = (event: KeyboardEvent): void => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
    const edge = { Home: 0, End: x.length - 1 }[event.key];
    if (event.key === "Escape") plot.current?.setCursor({ left: -10, top: -10 });
    if (step === undefined && edge === undefined) return;
    event.preventDefault();
    const next = edge ?? Math.min(x.length - 1, Math.max(0, (at ?? x.length - 1) + step!));
    const left = plot.current!.valToPos(x[next]!, "x");
    plot.current!.setCursor({ left, top: height / 3 });
    setAt(next);
  };

  return (
    <figure class="chart">
      <figcaption>
        <strong>{visible(title)}</strong> {note !== undefined && <span>{note}</span>}
      </figcaption>
      <div
        ref={place}
        class="plot"
        role="application"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: arrow keys move the read-out
        tabIndex={0}
        aria-label={`${summary(props, format)} Arrow keys read values.`}
        onKeyDown={move}
      />
      <div class="readout" aria-live="polite">
        <span class="quiet">
          {props.xLabel} {x.length === 0 ? "–" : shortNumber(x[at ?? x.length - 1]!)}
        </span>
        {lines.map((line, i) => (
          <span class="value" title={keyed ? visibleText(line.label) : undefined}>
            <Swatch index={line.colour ?? i} />
            {lines.length > 1 && (
              <span class={keyed ? "unseen" : "name"}>{visible(line.label)}</span>
            )}{" "}
            <b>{read(line, at ?? lastPlace(line), format)}</b>
          </span>
        ))}
      </div>
      <details class="numbers" onToggle={(event) => setOpened(event.currentTarget.open)}>
        <summary>Numbers</summary>
        {opened && <Numbers {...props} />}
      </details>
    </figure>
  );
}

/** A line's colour and dashes, as in the chart. */
export function Swatch({ index }: { readonly index: number }): JSX.Element {
  return <span class={`swatch c${index % COLOURS} d${index % DASHES.length}`} aria-hidden="true" />;
}

/** Where a line has its last value: lines do not all end at the same x. */
const lastPlace = ({ y }: Line): number => y.findLastIndex((value) => value !== null);

function read(line: Line, at: number, format: (value: number) => string): string {
  const value = line.y[at];
  if (value === null || value === undefined) return "–";
  const high = line.high?.[at];
  if (line.every !== undefined)
    return `${format(value)} (mean of ${line.every}: ${format(line.low?.[at] ?? value)} to ${format(high ?? value)})`;
  const spread = high === null || high === undefined ? "" : ` ± ${format(high - value)}`;
  return `${format(value)}${spread}${line.runs !== undefined && line.runs > 1 ? ` (n ${line.runs})` : ""}`;
}

function summary(
  { title, lines, x, xLabel }: ChartProps,
  format: (value: number) => string,
): string {
  const ends = lines.map(({ label, y }) => {
    const first = y.findIndex((value) => value !== null);
    const last = y.findLastIndex((value) => value !== null);
    if (first < 0) return `${label}: no values`;
    return `${label}: ${format(y[first]!)} at ${xLabel} ${shortNumber(x[first]!)}, ${format(y[last]!)} at ${shortNumber(x[last]!)}`;
  });
  return `${title}. ${ends.join("; ")}.`;
}

/** Most rows of numbers in the page; all of them can be copied. */
const ROWS = 200;

function Numbers({ x, xLabel, lines, title }: ChartProps): JSX.Element {
  const rows = x.map((value, i) => [value, ...lines.map(({ y }) => y[i] ?? null)]);
  const step = Math.max(1, Math.ceil(rows.length / ROWS));
  const csv = [[xLabel, ...lines.map(({ label }) => label)], ...rows]
    .map((row) => row.map((cell) => (cell === null ? "" : csvCell(String(cell)))).join(","))
    .join("\n");
  return (
    <div>
      <p>
        <CopyAll text={csv} label={title} />
        {step > 1 && (
          <span class="quiet">
            {" "}
            Every {step}th of {rows.length} rows is listed.
          </span>
        )}
      </p>
      <Scroll label={`Numbers of ${title}`}>
        <table>
          <thead>
            <tr>
              <th scope="col" class="number">
                {xLabel}
              </th>
              {lines.map(({ label }) => (
                <th scope="col" class="number">
                  {visible(label)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows
              .filter((_, i) => i % step === 0 || i === rows.length - 1)
              .map(([first, ...rest]) => (
                <tr>
                  <td class="number">{first}</td>
                  {rest.map((cell) => (
                    <td class="number">{cell ?? "–"}</td>
                  ))}
                </tr>
              ))}
          </tbody>
        </table>
      </Scroll>
    </div>
  );
}

const csvCell = (cell: string): string =>
  /[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;

function CopyAll({ text, label }: { readonly text: string; readonly label: string }): JSX.Element {
  const [copied, setCopied] = useState(false);
  return (
    <button
      type="button"
      class="small"
      aria-label={`Copy the numbers of ${label} as CSV`}
      onClick={() => void navigator.clipboard?.writeText(text).then(() => setCopied(true))}
    >
      {copied ? "Copied" : "Copy as CSV"}
    </button>
  );
}

function dataOf({ x, lines }: ChartProps): uPlot.AlignedData {
  const columns = lines.flatMap(({ y, low, high, raw }) => [
    ...(raw === undefined ? [] : [raw]),
    y,
    ...(low === undefined || high === undefined ? [] : [high, low]),
  ]);
  return [x, ...columns] as uPlot.AlignedData;
}

function options(
  props: ChartProps,
  width: number,
  onCursor: (index: number | null) => void,
): uPlot.Options {
  const { lines, percent = false, dots = false, height = HEIGHT } = props;
  const ink = variable("--quiet");
  const grid = { stroke: variable("--grid"), width: 1 };
  const series: uPlot.Series[] = [{}];
  const bands: uPlot.Band[] = [];
  for (const [i, line] of lines.entries()) {
    const index = line.colour ?? i;
    const colour = variable(`--c${index % COLOURS}`);
    if (line.raw !== undefined)
      series.push({
        stroke: `color-mix(in srgb, ${colour} 30%, transparent)`,
        width: 1,
        spanGaps: true,
        points: { show: false },
      });
    series.push({
      label: line.label,
      stroke: line.pale ? `color-mix(in srgb, ${colour} 45%, transparent)` : colour,
      width: line.pale ? 1.2 : 1.8,
      dash: [...DASHES[index % DASHES.length]!],
      spanGaps: true,
      points: {
        show: (dots && !line.pale) || line.y.filter((value) => value !== null).length < 2,
        size: 6,
        fill: colour,
      },
    });
    if (line.low === undefined || line.high === undefined) continue;
    const at = series.length;
    const edge: uPlot.Series = {
      stroke: "transparent",
      width: 0,
      points: { show: false },
      spanGaps: true,
    };
    series.push(edge, { ...edge });
    bands.push({ series: [at, at + 1], fill: `color-mix(in srgb, ${colour} 18%, transparent)` });
  }
  const axis: uPlot.Axis = { stroke: ink, grid, ticks: grid, font: "12px system-ui, sans-serif" };
  const format = percent ? shortPercent : shortNumber;
  return {
    width: Math.max(width, 120),
    height,
    series,
    bands,
    scales: {
      x: { time: false, range: (_, low, high) => apart(low, high, 1) },
      y: percent ? { range: [0, 1] } : { range: (_, low, high) => heightOf(low, high) },
    },
    axes: [
      {
        ...axis,
        size: 34,
        values: (_, ticks) => ticks.map(shortNumber),
        // There is no update 1.5.
        ...(props.x.every(Number.isInteger) && { incrs: WHOLE }),
      },
      { ...axis, size: labelRoom, values: (_, ticks) => ticks.map(format) },
    ],
    legend: { show: false },
    cursor: { y: false, drag: { x: true, y: false } },
    hooks: { setCursor: [({ cursor }) => onCursor(cursor.idx ?? null)] },
  };
}

/** Whole distances between the marks of an axis. */
const WHOLE = Array.from({ length: 30 }, (_, i) => [1, 2, 5][i % 3]! * 10 ** Math.floor(i / 3));

/** The pixels that the labels beside a chart need; as many for all charts unless one has long labels. */
const labelRoom = (_: uPlot, labels: readonly string[] | null): number =>
  Math.max(58, 16 + 7 * Math.max(0, ...(labels ?? []).map((label) => label.length)));

/** A range that is not a single point. */
function apart(low: number | null, high: number | null, reach: number): [number, number] {
  const [from, to] = [low ?? 0, high ?? 1];
  return to > from ? [from, to] : [from - reach, to + reach];
}

/** Starts at 0 unless that flattens the curves, with a little room above and below. */
function heightOf(low: number | null, high: number | null): [number, number] {
  const [from, to] = apart(low, high, Math.abs(low ?? 0) / 2 || 1);
  const room = 0.06 * (to - from);
  if ((low ?? 0) >= 0 && from < 0.6 * to) return [0, to + room];
  return [from - room, to + room];
}
