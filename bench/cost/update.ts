/** The cost of one update: its phases, their work, and what goes over HTTP. */
import { type Machine, secondsOf } from "./machine.js";
import { memoryOf, totalOf, withCuda } from "./memory.js";
import { SHAPES, type ShapeName } from "./shape.js";
import type { Task } from "./task.js";
import { wireOf } from "./wire.js";
import { sum, workOf } from "./work.js";

/** What an update consists of, in tokens per step. */
export interface Update {
  readonly shape: ShapeName;
  readonly episodes: number;
  readonly steps: number;
  readonly response: number;
  readonly observation: number;
  /** Every step has a prompt of its own; or the first one does, and later ones continue it. */
  readonly prompts: "apart" | "continued";
  /** Tokens of each prompt, or of the first. */
  readonly prompt: number;
  /** Whether the reference scores the actions. */
  readonly reference: boolean;
  /** Steps per optimiser step. */
  readonly minibatch: number;
}

/** What the engine does in an update. */
export interface Phases {
  readonly act: Task;
  readonly score: Task | undefined;
  readonly learn: Task;
}

/** An update's tasks. */
export function phasesOf(update: Update): Phases {
  const { episodes, steps, prompt, response, observation } = update;
  const optimizerSteps = Math.max(1, Math.round((episodes * steps) / update.minibatch));
  if (update.prompts === "continued") {
    const sequence = { sequences: episodes, length: prompt + steps * (response + observation) };
    const targets = steps * (response + observation);
    return {
      act: { do: "act", episodes, turns: steps, first: prompt, response, observation },
      score: update.reference ? { do: "score", ...sequence, targets: steps * response } : undefined,
      learn: { do: "learn", ...sequence, targets, steps: optimizerSteps },
    };
  }
  const sequences = episodes * steps;
  const length = prompt + response;
  return {
    act: { do: "sample", prompts: episodes, count: 1, prompt, fresh: response, times: steps },
    score: update.reference ? { do: "score", sequences, length, targets: response } : undefined,
    learn: {
      do: "learn",
      sequences,
      length: length + observation,
      targets: response + observation,
      steps: optimizerSteps,
    },
  };
}

/** Seconds by phase, and what they are made of. */
export interface Cost {
  readonly act: number;
  readonly score: number;
  readonly learn: number;
  readonly total: number;
  /** Tokens that are learnt, and operations of all phases. */
  readonly tokens: number;
  readonly flops: number;
  /** Bytes over HTTP; 0 for an engine in the same process. */
  readonly wire: number;
  /** Bytes on the GPU: everything, with the KV cache of all rows that are decoded together. */
  readonly memory: number;
}

/** What an update costs. */
export async function costOf(machine: Machine, update: Update): Promise<Cost> {
  const shape = SHAPES[update.shape];
  const { act, score, learn } = phasesOf(update);
  const isRemote = Number.isFinite(machine.wire);
  const phase = async (task: Task | undefined) => {
    if (task === undefined) return { seconds: 0, wire: 0 };
    const wire = isRemote ? await wireOf(task) : 0;
    return { seconds: secondsOf(machine, shape, task, wire), wire };
  };
  const phases = { act: await phase(act), score: await phase(score), learn: await phase(learn) };
  const limits = machine.limits(shape);
  const work = sum(
    [act, score, learn].flatMap((task) => task ?? []).map((task) => workOf(shape, limits, task)),
  );
  const { sequences, length } = learn as Extract<Task, { do: "learn" }>;
  const rows = Math.min(update.episodes, limits.rows);
  const memory = memoryOf(shape, { cached: rows * length, tokens: sequences * length });
  const all = Object.values(phases);
  return {
    act: phases.act.seconds,
    score: phases.score.seconds,
    learn: phases.learn.seconds,
    total: all.reduce((total, { seconds }) => total + seconds, 0),
    tokens: sequences * length,
    flops: work.passFlops + work.stepFlops,
    wire: all.reduce((total, { wire }) => total + wire, 0),
    memory: withCuda(totalOf(memory, { reference: update.reference })),
  };
}
