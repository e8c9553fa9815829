/** ScienceWorld's tasks: names, variations, the original splits, and AgentGym's numbering. */

import { z } from "zod";
import { readRegularText } from "../../regular-file.js";
import { EnvError } from "../env.js";

/** A kind of task. */
export interface TaskKind {
  /** The number in the paper, such as 1-1. */
  readonly number: string;
  readonly name: string;
  readonly variations: number;
}

/** All kinds of tasks in the order of the original. */
export const taskKinds: readonly TaskKind[] = (
  [
    ["1-1", "boil", 30],
    ["1-2", "melt", 30],
    ["1-3", "freeze", 30],
    ["1-4", "change-the-state-of-matter-of", 30],
    ["2-1", "use-thermometer", 540],
    ["2-2", "measure-melting-point-known-substance", 436],
    ["2-3", "measure-melting-point-unknown-substance", 300],
    ["3-1", "power-component", 20],
    ["3-2", "power-component-renewable-vs-nonrenewable-energy", 20],
    ["3-3", "test-conductivity", 900],
    ["3-4", "test-conductivity-of-unknown-substances", 600],
    ["4-1", "find-living-thing", 300],
    ["4-2", "find-non-living-thing", 300],
    ["4-3", "find-plant", 300],
    ["4-4", "find-animal", 300],
    ["5-1", "grow-plant", 126],
    ["5-2", "grow-fruit", 126],
    ["6-1", "chemistry-mix", 32],
    ["6-2", "chemistry-mix-paint-secondary-color", 36],
    ["6-3", "chemistry-mix-paint-tertiary-color", 36],
    ["7-1", "lifespan-longest-lived", 125],
    ["7-2", "lifespan-shortest-lived", 125],
    ["7-3", "lifespan-longest-lived-then-shortest-lived", 125],
    ["8-1", "identify-life-stages-1", 14],
    ["8-2", "identify-life-stages-2", 10],
    ["9-1", "inclined-plane-determine-angle", 168],
    ["9-2", "inclined-plane-friction-named-surfaces", 1386],
    ["9-3", "inclined-plane-friction-unnamed-surfaces", 162],
    ["10-1", "mendelian-genetics-known-plant", 120],
    ["10-2", "mendelian-genetics-unknown-plant", 480],
  ] as const
).map(([number, name, variations]) => ({ number, name, variations }));

/** The original splits. */
export const originalSplits = ["train", "dev", "test"] as const;

/** A name of one of the original splits. */
export type OriginalSplit = (typeof originalSplits)[number];

/** A kind's variations in a split, half-open: two quarters, a quarter, and what is left. */
export function variationsOf(
  { variations }: TaskKind,
  split: OriginalSplit,
): readonly [from: number, to: number] {
  const quarter = Math.floor(variations / 4);
  if (split === "train") return [0, 2 * quarter];
  return split === "dev" ? [2 * quarter, 3 * quarter] : [3 * quarter, variations];
}

/** A variation of a kind of task. */
export interface Variation {
  readonly kind: TaskKind;
  readonly variation: number;
}

/** Kinds that AgentGym leaves out of its numbering. */
const LEFT_OUT: ReadonlySet<string> = new Set(["5-1", "5-2", "9-1", "9-2", "9-3", "10-1", "10-2"]);

const numbered = taskKinds.filter(({ number }) => !LEFT_OUT.has(number));

/** How many variations AgentGym numbers. */
export const AGENTGYM_SIZE = numbered.reduce((sum, { variations }) => sum + variations, 0);

/** The variation with this number in AgentGym. */
export function agentgymVariation(id: number): Variation {
  let left = id;
  for (const kind of numbered) {
    if (left < kind.variations) return { kind, variation: left };
    left -= kind.variations;
  }
  throw new EnvError(`scienceworld: AgentGym's numbers are below ${AGENTGYM_SIZE}, got ${id}`);
}

const ids = z.array(
  z
    .int()
    .min(0)
    .max(AGENTGYM_SIZE - 1),
);
const idFile = z.object({ train: ids.min(1), test: ids.min(1) });

/** The published lists, and the test list without what is trained on. */
interface TaskIds {
  readonly train: readonly number[];
  readonly test: readonly number[];
  readonly testClean: readonly number[];
}

/** Reads `{"train": [numbers], "test": [numbers]}`; anything else is an `EnvError`. */
export function readTaskIds(path: string): TaskIds {
  let json: unknown;
  try {
    json = JSON.parse(readRegularText(path));
  } catch (error) {
    const reason = (error as Error).message;
    throw new EnvError(`scienceworld: the option ids: ${path} cannot be read: ${reason}`, {
      cause: error,
    });
  }
  const parsed = idFile.safeParse(json);
  if (!parsed.success) {
    const { path: place, message } = parsed.error.issues[0]!;
    throw new EnvError(
      `scienceworld: the option ids: ${path}: expected {"train": [numbers], "test": [numbers]} with AgentGym's numbers, 0 to ${AGENTGYM_SIZE - 1}; ${place.join(".")}: ${message}`,
    );
  }
  const { train, test } = parsed.data;
  const trained = new Set(train);
  return { train, test, testClean: test.filter((id) => !trained.has(id)) };
}
