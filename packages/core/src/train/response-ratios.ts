/**
 * Ratios of whole responses (GSPO eq. 7), which no expression over single tokens can compute.
 *
 * They have no gradient there, so one forward pass before a mini-batch is learnt gives them, on any
 * engine. The first mini-batch of an update is learnt by the weights that acted: its ratios are 1,
 * without a pass.
 */
import type { Engine, TrainSequence } from "../engine/engine.js";
import type { Objective } from "../objectives/expression.js";
import { inputsOf } from "../objectives/expression-interpret.js";
import { responseLogRatio } from "../objectives/inputs.js";

const [NAME = ""] = inputsOf(responseLogRatio);

/** The sequences with the input that the objective may ask for: log s for each action token. */
export async function withResponseRatios<S extends TrainSequence>(
  engine: Pick<Engine, "forward">,
  sequences: readonly S[],
  { loss }: Objective,
  acted: boolean,
): Promise<readonly S[]> {
  if (!inputsOf(loss).includes(NAME)) return sequences;
  const actions = sequences.map(({ inputs: { policyWeight = [] } }) =>
    Uint8Array.from(policyWeight, (weight) => (weight === 0 ? 0 : 1)),
  );
  const passed = acted
    ? undefined
    : await engine.forward(sequences.map((one, i) => ({ ...one, targets: actions[i]! })));
  return sequences.map((sequence, i) => {
    const ratios = new Float32Array(sequence.ids.length);
    const logprobs = passed?.[i]?.logprobs;
    if (logprobs !== undefined)
      for (const [start, end] of responses(actions[i]!)) {
        let moved = 0;
        for (let at = start; at < end; at++)
          moved += logprobs[at]! - sequence.inputs.oldLogprob![at]!;
        ratios.fill(moved / (end - start), start, end);
      }
    return { ...sequence, inputs: { ...sequence.inputs, [NAME]: ratios } };
  });
}

/** Where responses are: a prompt lies between any two. */
function* responses(isAction: Uint8Array): Generator<readonly [number, number]> {
  for (let start = isAction.indexOf(1); start >= 0; ) {
    const next = isAction.indexOf(0, start);
    const end = next < 0 ? isAction.length : next;
    yield [start, end];
    start = isAction.indexOf(1, end);
  }
}
