/** What is rejected before anything is computed, with the place and the fix. */
import {
  type AdamParams,
  EngineError,
  type SampleRequest,
  type TargetSequence,
  type TrainSequence,
} from "./engine.js";

/** What token ids are checked against. */
export interface Limits {
  readonly vocabularySize: number;
  readonly maxContext: number;
}

/** Rejects sequences that are empty, too long or contain something that is not a token id. */
export function checkSequences(sequences: readonly TargetSequence[], limits: Limits): void {
  sequences.forEach((sequence, i) => {
    const where = `sequence ${i}`;
    checkIds(sequence.ids, where, limits);
    const { targets } = sequence;
    if (targets !== undefined && targets.length !== sequence.ids.length)
      throw new EngineError(
        `${where} has ${sequence.ids.length} tokens but ${targets.length} target flags; expected one per token`,
      );
    checkTemperatures(sequence, where);
  });
}

/**
 * Rejects temperatures that logits cannot be divided by; those of tokens that are not targets are
 * ignored.
 */
function checkTemperatures({ ids, targets, temperatures }: TargetSequence, where: string): void {
  if (temperatures === undefined) return;
  if (temperatures.length !== ids.length)
    throw new EngineError(
      `${where} has ${ids.length} tokens but ${temperatures.length} temperatures; expected one per token`,
    );
  for (let i = 1; i < ids.length; i++) {
    const temperature = temperatures[i]!;
    if (targets?.[i] === 0 || (temperature > 0 && Number.isFinite(temperature))) continue;
    throw new EngineError(
      `temperatures: token ${i} of ${where} has ${temperature}; expected a finite number above 0`,
    );
  }
}

/**
 * Rejects training sequences that lack an input of the objective, or have it for too few tokens.
 */
export function checkInputs(sequences: readonly TrainSequence[], names: readonly string[]): void {
  sequences.forEach((sequence, i) => {
    for (const name of names) {
      const values = sequence.inputs[name];
      if (values === undefined)
        throw new EngineError(
          `sequence ${i} has no input "${name}", which the objective reads; given: ${Object.keys(sequence.inputs).join(", ") || "none"}`,
        );
      if (values.length !== sequence.ids.length)
        throw new EngineError(
          `input "${name}" of sequence ${i} has ${values.length} numbers; expected one per token: ${sequence.ids.length}`,
        );
    }
  });
}

/** Rejects sampling requests that could not be carried out. */
export function checkRequests(requests: readonly SampleRequest[], limits: Limits): void {
  requests.forEach((request, i) => {
    const where = `request ${i}`;
    checkIds(request.prompt, `${where}'s prompt`, limits);
    const inRange = (name: string, value: number, low: number, high: number, whole: boolean) => {
      if (!(value >= low && value <= high) || (whole && !Number.isInteger(value)))
        throw new EngineError(
          `${where}: ${name} must be ${whole ? "a whole number" : "a number"} between ${low} and ${high}, but it is ${value}`,
        );
    };
    inRange("maxTokens", request.maxTokens, 1, 2 ** 31, true);
    inRange("temperature", request.temperature ?? 1, 0, 1e6, false);
    inRange("topK", request.topK ?? 0, 0, 2 ** 31, true);
    inRange("topP", request.topP ?? 1, 0, 1, false);
    inRange("count", request.count ?? 1, 1, 65_536, true);
    inRange("seed", request.seed, -(2 ** 53), 2 ** 53, true);
    const end = request.prompt.length + request.maxTokens;
    if (end > limits.maxContext)
      throw new EngineError(
        `${where}: a prompt of ${request.prompt.length} tokens and ${request.maxTokens} new ones exceed the model's context of ${limits.maxContext}; shorten the prompt or lower maxTokens`,
      );
    if (request.stop?.some((sequence) => sequence.length === 0))
      throw new EngineError(`${where}: a stop sequence is empty`);
  });
}

/** Rejects what is held to a constraint, for an engine that does not know them. */
export function refuseConstraints(
  given: readonly (Pick<SampleRequest, "constraint"> & Pick<TargetSequence, "constraints">)[],
  engine: string,
): void {
  if (given.some(({ constraint, constraints }) => (constraint ?? constraints) !== undefined))
    throw new EngineError(
      `${engine} cannot hold answers to a schema; use the embedded engine or our own server (pawl serve engine), or leave out what asks for it: a response format, a tool choice, strict tools`,
    );
}

/** Rejects settings under which the weights could become NaN or infinite. */
export function checkAdamParams(params: AdamParams): void {
  const check = (name: keyof AdamParams, low: number, high: number) => {
    const value = params[name];
    if (value !== undefined && !(value >= low && value <= high))
      throw new EngineError(`${name} must be between ${low} and ${high}, but it is ${value}`);
  };
  check("learningRate", 0, 100);
  check("beta1", 0, 0.999999);
  check("beta2", 0, 0.9999999);
  check("eps", 1e-16, 1);
  check("weightDecay", 0, 1e3);
  check("gradClipNorm", 1e-12, Number.MAX_VALUE);
}

function checkIds(ids: ArrayLike<number>, where: string, limits: Limits): void {
  if (ids.length === 0) throw new EngineError(`${where} is empty; expected at least one token`);
  if (ids.length > limits.maxContext)
    throw new EngineError(
      `${where} has ${ids.length} tokens; the model's context is ${limits.maxContext}`,
    );
  for (let i = 0; i < ids.length; i++) {
    const id = ids[i]!;
    if (!Number.isInteger(id) || id < 0 || id >= limits.vocabularySize)
      throw new EngineError(
        `${where}: token ${i} is ${id}; expected an id from 0 to ${limits.vocabularySize - 1}`,
      );
  }
}
