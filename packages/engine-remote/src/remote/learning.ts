/** Scoring and learning on a server: objectives in one pass if it supports them, in two if not. */

import { checkInputs, checkSequences } from "@pawl/core/engine/checks.js";
import {
  type BackwardResult,
  type Capabilities,
  EngineError,
  type ForwardOptions,
  type ForwardResult,
  type TargetSequence,
  type TrainSequence,
} from "@pawl/core/engine/engine.js";
import { type Expr, expressionsOf, type Objective } from "@pawl/core/objectives/expression.js";
import { derivative } from "@pawl/core/objectives/expression-derivative.js";
import { evaluateTokens } from "@pawl/core/objectives/expression-evaluate.js";
import { inputsOf, quantitiesOf } from "@pawl/core/objectives/expression-interpret.js";
import { z } from "zod";
import { parse, type Result } from "./server.js";
import { type Datum, datumOf, maskOf, perToken, sentConstraints, tensorSchema } from "./wire.js";

/** How the model on the server is reached. */
export interface Learning {
  readonly server: string;
  /** Can change with the checkpoint that is loaded. */
  capabilities(): Capabilities;
  readonly binary: boolean;
  /** Whether it supports the extensions of a forward pass: choice of weights, entropies, values. */
  readonly extended: boolean;
  /** A call that changes nothing, to the policy's or the reference's model. */
  read(path: string, body: object, weights: "policy" | "reference"): Promise<Result>;
  /** A call that changes the model, executed once. */
  change(path: string, body: object): Promise<Result>;
}

const passResult = z.object({
  loss_fn_outputs: z.array(
    z.object({
      logprobs: tensorSchema.optional(),
      entropies: tensorSchema.optional(),
      values: tensorSchema.optional(),
    }),
  ),
  metrics: z.record(z.string(), z.unknown()).default({}),
});

/** Log-probabilities, and whatever else was requested, of each sequence. */
export async function forward(
  learning: Learning,
  sequences: readonly TargetSequence[],
  { weights = "policy", entropies = false, values = false }: ForwardOptions,
): Promise<readonly ForwardResult[]> {
  checkSequences(sequences, learning.capabilities());
  checkTemperatures(learning, sequences);
  if (values) requireValues(learning);
  const body = {
    forward_input: {
      // A plain server requires weights for a loss that is not used.
      ...dataOf(
        learning,
        sequences,
        (sequence): Readonly<Record<string, Uint8Array>> =>
          learning.extended ? { mask: maskOf(sequence) } : { weights: maskOf(sequence) },
      ),
      loss_fn: "cross_entropy",
      loss_fn_config: learning.extended ? { weights, entropies, values } : undefined,
    },
  };
  const outputs = await pass(sequences, async () => learning.read("forward", body, weights));
  return sequences.map((sequence, i) => {
    const mask = maskOf(sequence);
    const output = outputs[i];
    const column = (what: "logprobs" | "entropies" | "values") =>
      output === undefined
        ? new Float32Array(sequence.ids.length)
        : perToken(output[what], mask, what);
    return {
      logprobs: column("logprobs"),
      entropies: entropies ? column("entropies") : undefined,
      values: values ? column("values") : undefined,
    };
  });
}

/** One forward and one backward pass; on a server without objectives, one more forward pass. */
export async function forwardBackward(
  learning: Learning,
  sequences: readonly TrainSequence[],
  objective: Objective,
): Promise<BackwardResult> {
  checkSequences(sequences, learning.capabilities());
  checkTemperatures(learning, sequences);
  const names = inputsOf(...expressionsOf(objective));
  checkInputs(sequences, names);
  checkFinite(sequences, names);
  if (quantitiesOf(...expressionsOf(objective)).includes("value")) requireValues(learning);
  if (!learning.capabilities().fusedObjective) return inTwoPasses(learning, sequences, objective);
  const { outputs, metrics } = await backward(learning, sequences, {
    ...dataOf(learning, sequences, (sequence) => {
      const mask = maskOf(sequence);
      const masked = (values: ArrayLike<number>) =>
        Float64Array.from(mask, (isTarget, i) => (isTarget ? values[i]! : 0));
      return {
        mask,
        ...Object.fromEntries(names.map((name) => [name, masked(sequence.inputs[name]!)])),
      };
    }),
    loss_fn: "objective",
    loss_fn_config: { objective: { loss: objective.loss, metrics: objective.metrics } },
  });
  const sum = (name: string) => {
    const value = metrics[`${name}:sum`];
    if (typeof value !== "number" || !Number.isFinite(value))
      throw new EngineError(
        `the engine server at ${learning.server} reports ${JSON.stringify(value)} as ${name}; expected a finite number`,
      );
    return value;
  };
  const nothing = sequences.every((sequence) => sequence.ids.length < 2);
  return {
    loss: nothing ? 0 : sum("loss"),
    metrics: Object.fromEntries(
      Object.keys(objective.metrics).map((name) => [name, nothing ? 0 : sum(name)]),
    ),
    logprobs: sequences.map((sequence, i) =>
      outputs[i] === undefined
        ? new Float32Array(sequence.ids.length)
        : perToken(outputs[i].logprobs, maskOf(sequence), "logprobs"),
    ),
  };
}

async function inTwoPasses(
  learning: Learning,
  sequences: readonly TrainSequence[],
  objective: Objective,
): Promise<BackwardResult> {
  checkTwoPass(objective, learning.server);
  const scored = await forward(learning, sequences, {});
  const { weights, result } = firstPass(
    sequences,
    objective,
    scored.map(({ logprobs }) => logprobs),
  );
  const at = new Map(sequences.map((sequence, i) => [sequence as TargetSequence, i]));
  await backward(learning, sequences, {
    ...dataOf(learning, sequences, (sequence) => ({ weights: weights[at.get(sequence)!]! })),
    loss_fn: "cross_entropy",
  });
  return result;
}

async function backward(learning: Learning, sequences: readonly TargetSequence[], input: object) {
  let metrics: Readonly<Record<string, unknown>> = {};
  const outputs = await pass(sequences, async () => {
    const result = await learning.change("forward_backward", { forward_backward_input: input });
    metrics = parse(passResult, result, "forward_backward").metrics;
    return result;
  });
  return { outputs, metrics };
}

/** The outputs by sequence; sequences of one token are not sent, so they have none. */
async function pass(sequences: readonly TargetSequence[], run: () => Promise<Result>) {
  const sent = sequences.flatMap(({ ids }, i) => (ids.length < 2 ? [] : [i]));
  if (sent.length === 0) return [];
  const { loss_fn_outputs } = parse(passResult, await run(), "a forward pass");
  if (loss_fn_outputs.length !== sent.length)
    throw new EngineError(
      `the engine server sent results for ${loss_fn_outputs.length} sequences; expected ${sent.length}`,
    );
  const outputs: ((typeof loss_fn_outputs)[number] | undefined)[] = sequences.map(() => undefined);
  sent.forEach((i, k) => {
    outputs[i] = loss_fn_outputs[k];
  });
  return outputs;
}

/** The sequences, with what answers in them were held to. */
function dataOf<S extends TargetSequence>(
  { binary }: Learning,
  sequences: readonly S[],
  inputs: (sequence: S) => Readonly<Record<string, ArrayLike<number>>>,
): { readonly data: readonly Datum[]; readonly constraints?: readonly object[] } {
  const held = sentConstraints();
  const data = sequences
    .filter(({ ids }) => ids.length > 1)
    .map((sequence) => {
      const temperatures = temperaturesOf(sequence);
      const all = { ...inputs(sequence), ...(temperatures && { temperatures }) };
      const constraints = sequence.constraints?.map(
        ({ start, end, constraint }) => [start, end, held.numberOf(constraint)] as const,
      );
      return { ...datumOf(sequence, all, binary), ...(constraints && { constraints }) };
    });
  return { data, ...held.body() };
}

/** Rejects temperatures other than 1 on a server that does not support them. */
function checkTemperatures(
  { capabilities, server }: Learning,
  sequences: readonly TargetSequence[],
) {
  const other = capabilities().temperatures
    ? -1
    : sequences.findIndex((one) => temperaturesOf(one) !== undefined);
  if (other >= 0)
    throw new EngineError(
      `the engine server at ${server} computes log-probabilities only at temperature 1, but sequence ${other} has others; set temperature to 1, or use our own server (pawl serve engine)`,
    );
}

/** The temperatures of a sequence's targets, 1 elsewhere; undefined if all are 1. */
function temperaturesOf(sequence: TargetSequence): Float32Array | undefined {
  const given = sequence.temperatures;
  if (given === undefined) return undefined;
  const result = Float32Array.from(maskOf(sequence), (isTarget, i) => (isTarget ? given[i]! : 1));
  return result.every((temperature) => temperature === 1) ? undefined : result;
}

function requireValues({ capabilities, server }: Learning): void {
  if (!capabilities().values)
    throw new EngineError(
      `values were requested, but the model on the engine server at ${server} has no value head; create it with valueHead: true`,
    );
}

/** JSON has no NaN, so it is detected here, with its position. */
function checkFinite(sequences: readonly TrainSequence[], names: readonly string[]): void {
  sequences.forEach((sequence, i) => {
    const mask = maskOf(sequence);
    for (const name of names) {
      const values = sequence.inputs[name]!;
      for (let token = 1; token < mask.length; token++)
        if (mask[token] === 1 && !Number.isFinite(values[token]))
          throw new EngineError(
            `input "${name}" is ${values[token]} at token ${token} of sequence ${i}; expected a finite number`,
          );
    }
  });
}

// An objective on a server that only knows cross-entropy: a forward pass, then w = −d loss / d
// log-prob computed here, then cross-entropy with weights w, whose gradient is the objective's.
//
// This costs a second forward pass, and works only for objectives of log-probabilities alone.

/** What the second pass needs, and the results already known from the first. */
interface FirstPass {
  /** Per sequence and token: the weight of its log-probability; 0 if it is not a target. */
  readonly weights: readonly Float32Array[];
  readonly result: BackwardResult;
}

/** Rejects objectives that read more than log-probabilities. */
function checkTwoPass(objective: Objective, server: string): void {
  const others = quantitiesOf(...expressionsOf(objective)).filter((name) => name !== "logprob");
  if (others.length > 0)
    throw new EngineError(
      `the objective reads ${others.join(" and ")}, which the engine server at ${server} cannot differentiate: it does not support objectives, only weights of log-probabilities. Use our own server (pawl serve engine), the embedded engine, or an objective without ${others.join(" and ")}`,
    );
}

/** Evaluates the objective and its derivative at the log-probabilities of a forward pass. */
function firstPass(
  sequences: readonly TrainSequence[],
  objective: Objective,
  logprobs: readonly Float32Array[],
): FirstPass {
  const expressions: readonly Expr[] = [
    derivative(objective.loss, "logprob"),
    ...expressionsOf(objective),
  ];
  const inputs = inputsOf(...expressionsOf(objective));
  const names = Object.keys(objective.metrics);
  const sums = new Float64Array(names.length + 1);
  const weights = sequences.map((sequence, i) => {
    const mask = maskOf(sequence);
    const at = Array.from(mask.keys()).filter((token) => mask[token] === 1);
    const pick = (values: ArrayLike<number>) => at.map((token) => values[token]!);
    const [slopes, ...columns] = evaluateTokens(expressions, {
      count: at.length,
      quantities: { logprob: pick(logprobs[i]!) },
      inputs: Object.fromEntries(inputs.map((name) => [name, pick(sequence.inputs[name]!)])),
    });
    columns.forEach((column, k) => {
      column.forEach((value, j) => {
        if (!Number.isFinite(value))
          throw new EngineError(
            `${k === 0 ? "the loss" : `metric ${names[k - 1]}`} is ${value} at token ${at[j]} of sequence ${i}; check its inputs there`,
          );
        sums[k]! += value;
      });
    });
    const result = new Float32Array(mask.length);
    at.forEach((token, j) => {
      result[token] = -slopes![j]!;
    });
    return result;
  });
  return {
    weights,
    result: {
      loss: sums[0]!,
      metrics: Object.fromEntries(names.map((name, k) => [name, sums[k + 1]!])),
      logprobs,
    },
  };
}
