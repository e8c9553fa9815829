/**
 * What several GPUs should give: the server's FSDP2 (servers/torch/pawl_server/sharding.py), by its own
 * communication volume. Nothing here has been measured on more than one GPU.
 *
 * Every micro-batch gathers the weights in 16 bits for the forward pass, all but the embedding again for
 * the backward pass, and reduces and scatters gradients in 32 bits. Scoring gathers once per
 * micro-batch, sampling once per turn.
 */

import type { ModelConfig } from "../../src/engine/weights/model-config.js";
import { type Machine, secondsOf } from "./machine.js";
import { parametersOf, SHAPES } from "./shape.js";
import type { Learn, Sample, Score } from "./task.js";
import { phasesOf, type Update } from "./update.js";
import { wireOf } from "./wire.js";

/** Assumed: bytes per second that a GPU receives, nominal times the share that collectives reach. */
const REACHED = 0.8;
export const LINKS = { nvlink: REACHED * 450e9, network: REACHED * (400e9 / 8) } as const;
export type Link = keyof typeof LINKS;

/** Bytes that each GPU receives. */
export interface Volume {
  readonly gatherForward: number;
  readonly gatherBackward: number;
  readonly reduceScatter: number;
}

/** The volume of one micro-batch that is learnt. */
export function volumeOf(shape: ModelConfig, gpus: number): Volume {
  const parameters = parametersOf(shape);
  const received = (gpus - 1) / gpus;
  const embedding = shape.vocabularySize * shape.hiddenSize;
  return {
    gatherForward: 2 * parameters * received,
    gatherBackward: 2 * (parameters - embedding) * received,
    reduceScatter: 4 * parameters * received,
  };
}

/** An update on several GPUs: seconds if communication hides behind arithmetic, and if none does. */
export interface Shared {
  readonly hidden: number;
  readonly exposed: number;
  /** Seconds over HTTP, which are in both. */
  readonly wire: number;
  /** One micro-batch: arithmetic, and communication. */
  readonly pass: number;
  readonly communication: number;
}

/** What an update with prompts of their own should take. */
export async function sharedUpdate(
  machine: Machine,
  update: Update,
  gpus: number,
  link: Link,
): Promise<Shared> {
  const shape = SHAPES[update.shape];
  const volume = volumeOf(shape, gpus);
  const rate = LINKS[link];
  const gather = volume.gatherForward / rate;
  const communication = gather + (volume.gatherBackward + volume.reduceScatter) / rate;
  const { batchTokens } = machine.limits(shape);
  const { act, score, learn } = phasesOf(update) as { act: Sample; score?: Score; learn: Learn };
  const wires = await Promise.all([act, learn, ...(score ? [score] : [])].map(wireOf));
  const wire = wires.reduce((total, bytes) => total + bytes, 0) / machine.wire;
  const own = <T extends Learn | Score>(task: T): T => ({
    ...task,
    sequences: task.sequences / gpus,
  });
  const updates = learn.steps ?? 1;
  const perStep = (learn.sequences * learn.length) / gpus / updates;
  const passes = updates * Math.ceil(perStep / batchTokens);
  const learning = secondsOf(machine, shape, own(learn));
  const scoring = score && {
    seconds: secondsOf(machine, shape, own(score)),
    waiting: Math.ceil((score.sequences * score.length) / gpus / batchTokens) * gather,
  };
  // Sampling gathers all weights before its first token, so nothing hides that.
  const acting =
    secondsOf(machine, shape, { ...act, prompts: act.prompts / gpus }) + (act.times ?? 1) * gather;
  const total = (join: (arithmetic: number, waiting: number) => number) =>
    wire +
    acting +
    (scoring ? join(scoring.seconds, scoring.waiting) : 0) +
    join(learning, passes * communication);
  return {
    hidden: total(Math.max),
    exposed: total((arithmetic, waiting) => arithmetic + waiting),
    wire,
    pass: learning / passes,
    communication,
  };
}
