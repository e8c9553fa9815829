/**
 * Runs of several comparisons with and without an arm, taken together: the difference that the arm makes, paired by
 * seed. Which comparisons there are, and what their runs solved, is in bench/pairs.json.
 *
 *   npm run bench -- pairs
 */
import { readFileSync } from "node:fs";
import { table } from "../src/bench/markdown-table.js";
import { type Estimate, pairedDifference, pooled } from "../src/bench/statistics.js";

interface Comparison {
  readonly start: "actions" | "observations";
  readonly updates: number;
  /** Tasks that each seed's run solved, by arm; null where there is no run. */
  readonly solved?: Readonly<Record<string, readonly (number | null)[]>>;
  /** The difference in points where the runs themselves are no longer there. */
  readonly differences?: Readonly<Record<string, Estimate>>;
}

interface Study {
  readonly tasks: number;
  readonly comparisons: readonly Comparison[];
}

const PLAIN = "grpo";
const ARMS = ["paw", "echo", "margin", "ce-length"] as const;
const NAMES = ["PaW", "ECHO", "`margin`", "`ce-length`"] as const;

const ofActions = ({ start }: Comparison): boolean => start === "actions";
const ROWS: readonly (readonly [name: string, has: (comparison: Comparison) => boolean])[] = [
  ["the start that imitated actions only", ofActions],
  [
    "of these, 70 and 100 updates",
    (one) => ofActions(one) && (one.updates === 70 || one.updates === 100),
  ],
  ["both starts", () => true],
];

/** What the arm adds to success in a comparison, in points. */
function difference({ solved, differences }: Comparison, arm: string, tasks: number) {
  const points = (name: string): ReadonlyMap<number, number> =>
    new Map(
      (solved?.[name] ?? []).flatMap((count, seed) =>
        count === null ? [] : [[seed, (100 * count) / tasks] as const],
      ),
    );
  return differences?.[arm] ?? pairedDifference(points(arm), points(PLAIN));
}

const number = (value: number): string => value.toFixed(1).replace("-", "−");
const show = ({ mean, interval, n }: Estimate): string =>
  `${mean > 0 ? "+" : ""}${number(mean)} (${interval === undefined ? "" : `${interval.map(number).join(" to ")}, `}${n} pairs)`;

/** The table, row by row. */
export function pairsTable(file = "bench/pairs.json"): readonly string[] {
  const { comparisons, tasks } = JSON.parse(readFileSync(file, "utf8")) as Study;
  return table(
    ["from", ...NAMES],
    ROWS.map(([name, has]) => [
      name,
      ...ARMS.map((arm) =>
        show(
          pooled(
            comparisons
              .filter(has)
              .flatMap((one) => difference(one, `${PLAIN}+${arm}`, tasks) ?? []),
          ),
        ),
      ),
    ]),
  );
}

export function main(): object {
  const lines = pairsTable();
  process.stdout.write(`${lines.join("\n")}\n`);
  return { rows: lines.length - 2 };
}
