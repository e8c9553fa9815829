/** The steps of a packed batch, shared among the lanes. */
import type { ModelConfig } from "../weights/model-config.js";
import type { Lane } from "./lane.js";
import { together } from "./lanes.js";
import type { PackedArrays } from "./packed-arrays.js";
import { type Feed, type Feeds, floats, integers, type Results } from "./sessions.js";
import { rotaryTables } from "./tables.js";

/** Some consecutive steps of a batch. */
export interface StepRange {
  readonly begin: number;
  readonly end: number;
}

/** Runs every lane on its share of the steps; the results are in the order of the steps. */
export function shareSteps(
  lanes: readonly Lane[],
  steps: number,
  run: (lane: Lane, range: StepRange) => Promise<Results>,
): Promise<readonly Results[]> {
  const edge = (lane: number) => Math.floor((lane * steps) / lanes.length);
  return together(
    lanes.flatMap((lane, i) => {
      const range = { begin: edge(i), end: edge(i + 1) };
      return range.begin < range.end ? [run(lane, range)] : [];
    }),
  );
}

/** A result that has one number for every target, of all steps. */
export function joinColumns(parts: readonly Results[], name: string): Float32Array {
  const columns = parts.map((part) => part.get(name)!);
  const joined = new Float32Array(columns.reduce((sum, column) => sum + column.length, 0));
  let at = 0;
  for (const column of columns) {
    joined.set(column, at);
    at += column.length;
  }
  return joined;
}

/** One number for every target of some steps, as a graph input. */
export function columnFeed(packed: PackedArrays, column: Float32Array, range: StepRange): Feed {
  const { targetsPerStep } = packed;
  const shape = [range.end - range.begin, targetsPerStep, 1];
  return floats(column.slice(range.begin * targetsPerStep, range.end * targetsPerStep), shape);
}

/** The tokens of some steps, as graph inputs. */
export function packedFeeds(packed: PackedArrays, config: ModelConfig, range: StepRange): Feeds {
  const { rowsPerStep, length } = packed.batch;
  const feed = (data: Int32Array, ...shape: number[]) => {
    const size = shape.reduce((product, count) => product * count, 1);
    // Copied, because a view would take its whole buffer along to another thread.
    const part = data.slice(range.begin * size, range.end * size);
    return integers(part, [range.end - range.begin, ...shape]);
  };
  return {
    ids: feed(packed.ids, rowsPerStep * length),
    positions: feed(packed.positions, rowsPerStep, length),
    segments: feed(packed.segments, rowsPerStep, length),
    predictors: feed(packed.predictors, packed.targetsPerStep),
    targets: feed(packed.targets, packed.targetsPerStep, 1),
    ...rotaryTables(config, length),
  };
}
