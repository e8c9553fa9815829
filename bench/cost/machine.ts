/** From work to seconds: what a machine reaches, fitted to some measurements and checked on others. */
import type { ModelConfig } from "../../src/engine/weights/model-config.js";
import { parametersOf } from "./shape.js";
import type { Task } from "./task.js";
import { type Limits, type Work, workOf } from "./work.js";

/** What a machine reaches. */
export interface Machine {
  readonly name: string;
  /** Bytes of a number that is computed with. */
  readonly bytes: number;
  /** Operations per second in products. */
  readonly flops: number;
  /** Bytes per second of activations between products. */
  readonly move: number;
  /** Bytes per second of weights, and of the KV cache, while decoding. */
  readonly read: number;
  readonly cache: number;
  /** Bytes per second of the KV cache between turns, when rows are moved. */
  readonly copy: number;
  /** Bytes per second of attention scores between products; infinite if they are never written. */
  readonly scores: number;
  /** Host seconds per layer of a forward pass over a micro-batch; a backward pass takes twice that. */
  readonly layer: number;
  /** Whether the host works ahead of the device, so that only the slower of both counts. */
  readonly ahead: boolean;
  /** Seconds of a decode step per layer, beyond what it computes and reads. */
  readonly stepLayer: number;
  /** Bytes per second over HTTP, of which most is writing and reading JSON. */
  readonly wire: number;
  readonly limits: (shape: ModelConfig) => Limits;
  /** Bytes that an optimiser step reads and writes per weight. */
  readonly optimizer: number;
}

/** Seconds of a task; `wire` are its bytes over HTTP, if the engine is not in the same process. */
export function secondsOf(machine: Machine, shape: ModelConfig, task: Task, wire = 0): number {
  return seconds(machine, shape, workOf(shape, machine.limits(shape), task)) + wire / machine.wire;
}

/** Seconds of some work. */
export function seconds(machine: Machine, shape: ModelConfig, work: Work): number {
  const moved = work.passNumbers / machine.move + work.passScores / machine.scores;
  const device = work.passFlops / machine.flops + machine.bytes * moved;
  const host = work.passes * shape.layers * machine.layer;
  return (
    (machine.ahead ? Math.max(device, host) : device + host) +
    decoding(machine, shape, work) +
    (machine.bytes * work.copied) / machine.copy +
    (work.updates * machine.optimizer * parametersOf(shape)) / machine.move
  );
}

/** Products wait for arithmetic or for the weights, whichever takes longer; then come the cached keys and values. */
function decoding(machine: Machine, shape: ModelConfig, work: Work): number {
  const weights = (work.steps * machine.bytes * parametersOf(shape)) / machine.read;
  return (
    Math.max(work.stepFlops / machine.flops, weights) +
    (machine.bytes * work.stepKeys) / machine.cache +
    work.steps * shape.layers * machine.stepLayer
  );
}

/**
 * The value of a constant at which a machine takes as long as was measured; time must grow with it. If
 * there is none between the bounds, the nearer bound.
 */
export function solve(
  low: number,
  high: number,
  measured: number,
  predict: (value: number) => number,
): number {
  let [from, to] = [low, high];
  for (let i = 0; i < 60; i++) {
    const middle = (from + to) / 2;
    if (predict(middle) < measured) from = middle;
    else to = middle;
  }
  return (from + to) / 2;
}
