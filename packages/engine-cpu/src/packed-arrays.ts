/**
 * The typed arrays of a micro-batch, as the graphs of `program.ts` take them, and the inverse for
 * results.
 */
import type { TargetSequence } from "@pawl/core/engine/engine.js";
import type { ModelConfig } from "@pawl/models/weights/model-config.js";
import type { MicroBatch, SharedPrefixes } from "./packing.js";
import { type Feed, type Feeds, flags, floats, integers } from "./sessions.js";
import { rotaryTables } from "./tables.js";

/** A micro-batch that is ready to compute. */
export interface PackedMicroBatch {
  readonly length: number;
  readonly rows: number;
  /** [rows · length] */
  readonly ids: Int32Array;
  /** For every target: the flat index of the token that predicts it, and its own id. */
  readonly predictors: Int32Array;
  readonly targets: Int32Array;
  /** For every target: which token of which sequence it is. */
  readonly sequenceOf: Int32Array;
  readonly tokenOf: Int32Array;
  readonly shared: SharedPrefixes | undefined;
}

/**
 * How many tokens of a sequence are computed: the last one predicts nothing. None if there is no
 * target.
 */
export function computedLength(sequence: TargetSequence): number {
  return countTargets(sequence) === 0 ? 0 : sequence.ids.length - 1;
}

/** Whether token i of a sequence is a target; nothing predicts the first one. */
function isTarget({ targets }: TargetSequence, i: number): boolean {
  return i > 0 && (targets === undefined || targets[i] !== 0);
}

/** The same without the tokens after the last target, which nothing depends on. */
export function lengthToLastTarget(sequence: TargetSequence): number {
  let last = sequence.ids.length - 1;
  while (last > 0 && !isTarget(sequence, last)) last -= 1;
  return Math.max(0, last);
}

export function countTargets(sequence: TargetSequence): number {
  let count = 0;
  for (let i = 1; i < sequence.ids.length; i++) if (isTarget(sequence, i)) count += 1;
  return count;
}

/** Lays the sequences of a micro-batch out. */
export function layOut(
  sequences: readonly TargetSequence[],
  microBatch: MicroBatch,
): PackedMicroBatch {
  const { length, shared } = microBatch;
  const each = shared?.each ?? 1;
  const rows = microBatch.sequences.length / each;
  const count = microBatch.sequences.reduce((sum, i) => sum + countTargets(sequences[i]!), 0);
  const ids = new Int32Array(rows * length);
  const [predictors, targets, sequenceOf, tokenOf] = Array.from(
    { length: 4 },
    () => new Int32Array(count),
  ) as [Int32Array, Int32Array, Int32Array, Int32Array];
  let slot = 0;
  microBatch.sequences.forEach((sequence, at) => {
    const given = sequences[sequence]!;
    const row = Math.floor(at / each);
    const placeOf = placesOf(row, at % each, shared);
    const computed = (shared === undefined ? computedLength : lengthToLastTarget)(given);
    for (let i = 0; i < computed; i++) {
      const place = row * length + placeOf(i);
      ids[place] = given.ids[i]!;
      if (!isTarget(given, i + 1)) continue;
      predictors[slot] = place;
      targets[slot] = given.ids[i + 1]!;
      sequenceOf[slot] = sequence;
      tokenOf[slot] = i + 1;
      slot += 1;
    }
  });
  return { length, rows, ids, predictors, targets, sequenceOf, tokenOf, shared };
}

/** Where the tokens of a row's sequence are in it. */
function placesOf(row: number, which: number, shared: SharedPrefixes | undefined) {
  if (shared === undefined) return (token: number) => token;
  const own = shared.prefixes[row]!;
  const begin = shared.prefix + which * shared.suffix;
  return (token: number) => (token < own ? token : begin + token - own);
}

/** The factor of each target's logits; undefined if it is 1 for all of them. */
export function inverseTemperatures(
  packed: PackedMicroBatch,
  sequences: readonly TargetSequence[],
): Float32Array | undefined {
  const { sequenceOf, tokenOf } = packed;
  const inverses = Float32Array.from(
    tokenOf,
    (token, slot) => 1 / (sequences[sequenceOf[slot]!]!.temperatures?.[token] ?? 1),
  );
  return inverses.every((inverse) => inverse === 1) ? undefined : inverses;
}

/** The masks of targets, each once, and the number of each target's; undefined if there is none. */
export function maskFeeds(
  { sequenceOf, tokenOf }: PackedMicroBatch,
  masksOf: (sequence: number) => ReadonlyMap<number, Uint8Array>,
  vocabularySize: number,
): { readonly table: Feed; readonly numbers: Feed } | undefined {
  // Number 0 allows everything.
  const distinct = new Map<Uint8Array, number>();
  const numbers = Int32Array.from(tokenOf, (token, slot) => {
    const mask = masksOf(sequenceOf[slot]!).get(token);
    if (mask === undefined) return 0;
    const number = distinct.get(mask) ?? distinct.size + 1;
    distinct.set(mask, number);
    return number;
  });
  if (distinct.size === 0) return undefined;
  const table = new Uint8Array((distinct.size + 1) * vocabularySize).fill(1, 0, vocabularySize);
  for (const [mask, number] of distinct) table.set(mask, number * vocabularySize);
  return {
    table: flags(table, [distinct.size + 1, vocabularySize]),
    numbers: integers(numbers, [numbers.length]),
  };
}

/** The tokens of a micro-batch as graph inputs. */
export function packedFeeds(packed: PackedMicroBatch, config: ModelConfig): Feeds {
  const { length, rows, ids, predictors, targets, shared } = packed;
  const fill = (shape: readonly [number, number], at: (row: number, column: number) => number) =>
    integers(
      Int32Array.from({ length: shape[0] * shape[1] }, (_, i) =>
        at(Math.floor(i / shape[1]), i % shape[1]),
      ),
      shape,
    );
  const position = (row: number, at: number): number =>
    shared === undefined || at < shared.prefix
      ? at
      : shared.prefixes[row]! + ((at - shared.prefix) % shared.suffix);
  const places: Feeds =
    shared === undefined
      ? { places: fill([1, length], (_, at) => at) }
      : {
          // Padding after a prefix comes after everything, so that causality hides it.
          prefixPlaces: fill([rows, shared.prefix], (row, at) =>
            at < shared.prefixes[row]! ? at : BEHIND,
          ),
          suffixPlaces: fill([rows, shared.each * shared.suffix], (row, at) =>
            position(row, shared.prefix + at),
          ),
          ownPlaces: fill([1, shared.suffix], (_, at) => at),
        };
  return {
    ids: integers(ids, [rows * length]),
    positions: fill([rows, length], position),
    ...places,
    predictors: integers(predictors, [predictors.length]),
    targets: integers(targets, [targets.length, 1]),
    ...rotaryTables(config, length),
  };
}

const BEHIND = 2 ** 30;

/** One number for every target as a graph input. */
export function columnFeed(column: Float32Array): Feed {
  return floats(column, [column.length, 1]);
}

/** Spreads one number per target back over the tokens of the sequences. */
export function scatterTargets(
  { sequenceOf, tokenOf }: PackedMicroBatch,
  column: Float32Array,
  into: readonly Float32Array[],
): void {
  for (let slot = 0; slot < tokenOf.length; slot++)
    into[sequenceOf[slot]!]![tokenOf[slot]!] = column[slot]!;
}

/** Collects one number per target from arrays that have one per token. */
export function gatherTargets(
  { sequenceOf, tokenOf }: PackedMicroBatch,
  values: (sequence: number) => ArrayLike<number>,
): Float32Array {
  const column = new Float32Array(tokenOf.length);
  for (let slot = 0; slot < column.length; slot++)
    column[slot] = values(sequenceOf[slot]!)[tokenOf[slot]!]!;
  return column;
}
