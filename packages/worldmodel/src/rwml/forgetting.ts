/**
 * Forgetting: how far the weights moved from where they started, and how well old text is still
 * predicted.
 */
import type { Engine, TargetSequence } from "@pawl/core/engine/engine.js";
import { UserError } from "@pawl/core/errors.js";
import { readRegularText } from "@pawl/core/files/regular-file.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import { openCheckpoint } from "@pawl/models/weights/checkpoint.js";

/**
 * |w − w₀| / |w₀|, of all weights together and of each tensor; infinite if a tensor started at 0.
 */
export interface WeightChange {
  readonly all: number;
  readonly tensors: Readonly<Record<string, number>>;
}

/** How far the weights in one checkpoint folder are from those in another, relative to the latter. */
export async function weightChange(before: string, after: string): Promise<WeightChange> {
  const start = await openCheckpoint(before);
  const end = await openCheckpoint(after);
  const tensors: Record<string, number> = {};
  let allMoved = 0;
  let allStart = 0;
  for (const { name } of start.tensors) {
    const [old, now] = [await start.read(name), await end.read(name)];
    if (old.length !== now.length) {
      throw new UserError(
        `${after}: tensor ${name} has ${now.length} numbers, in ${before} it has ${old.length}: these are two different models.`,
      );
    }
    let moved = 0;
    let length = 0;
    for (let i = 0; i < old.length; i++) {
      moved += (now[i]! - old[i]!) ** 2;
      length += old[i]! ** 2;
    }
    tensors[name] = relative(moved, length);
    allMoved += moved;
    allStart += length;
  }
  return { all: relative(allMoved, allStart), tensors };
}

const relative = (moved: number, length: number): number =>
  moved === 0 ? 0 : Math.sqrt(moved / length);

/** The mean of −log p over the targets of some sequences; NaN if there are none. */
export async function meanLoss(
  engine: Engine,
  sequences: readonly TargetSequence[],
): Promise<number> {
  let loss = 0;
  let count = 0;
  for (const [i, { logprobs }] of (await engine.forward(sequences)).entries()) {
    const { targets } = sequences[i]!;
    for (let t = 1; t < logprobs.length; t++) {
      if (targets !== undefined && !targets[t]) continue;
      loss -= logprobs[t]!;
      count++;
    }
  }
  return loss / count;
}

/** The paragraphs of a text file as sequences, each truncated to the model's context. */
export function textSequences(
  path: string,
  tokenizer: Tokenizer,
  maxContext: number,
): readonly TargetSequence[] {
  let text: string;
  try {
    text = readRegularText(path);
  } catch (error) {
    throw new UserError(`the held-out text cannot be read: ${(error as Error).message}`, {
      cause: error,
    });
  }
  const sequences = text
    .split(/\n\s*\n/)
    .map((paragraph) => ({
      ids: tokenizer.encode(paragraph.trim(), { plain: true }).slice(0, maxContext),
    }))
    .filter(({ ids }) => ids.length > 1);
  if (sequences.length === 0) {
    throw new UserError(`${path} has no text: expected paragraphs separated by empty lines.`);
  }
  return sequences;
}
