/** The embedded engine as callers see it: an `Engine` that works in a worker thread. */
import { availableParallelism } from "node:os";
import type { Vocabulary } from "@pawl/core/constraint/vocabulary.js";
import type {
  Capabilities,
  Drawn,
  Engine,
  SampleRequest,
  TargetSequence,
} from "@pawl/core/engine/engine.js";
import type { Core, EmbeddedOptions } from "./core.js";
import { startEngineThread } from "./replicas.js";

/** Starts an engine in its own thread and waits until its model is ready. */
export async function createEmbeddedEngine(options: EmbeddedOptions): Promise<Engine> {
  const threads = options.threads ?? availableParallelism();
  const caller = startEngineThread("worker", { options, threads });
  let capabilities: Capabilities | undefined;
  const called = async <T>(
    method: keyof Core,
    args: readonly unknown[],
    onProgress?: (progress: unknown) => void,
  ) => {
    const answer = (await caller.call(method, args, [], onProgress)) as {
      readonly value: T;
      readonly capabilities: Capabilities;
    };
    capabilities = answer.capabilities;
    return answer.value;
  };
  const typed = <T>(method: keyof Core, ...args: readonly unknown[]) => called<T>(method, args);
  let vocabulary: (() => Vocabulary) | undefined;
  /** Tells the engine the vocabulary, if it was not told and something is held to a constraint. */
  const tell = async (isNeeded: boolean) => {
    if (!isNeeded || vocabulary === undefined) return;
    const told = typed("useVocabulary", vocabulary());
    vocabulary = undefined;
    await told;
  };
  const isConstrained = ({ constraints }: TargetSequence) => constraints !== undefined;
  try {
    await typed("capabilities");
  } catch (error) {
    await caller.end();
    throw error;
  }
  return {
    get capabilities() {
      return capabilities!;
    },
    sample: async (requests, options, onDrawn) => {
      await tell(requests.some(({ constraint }) => constraint !== undefined));
      return called(
        "sample",
        [requests.map(plainRequest), options, onDrawn !== undefined],
        (drawn) => onDrawn?.(drawn as Drawn),
      );
    },
    forward: async (sequences, options) => {
      await tell(sequences.some(isConstrained));
      return typed("forward", sequences.map(plainSequence), options);
    },
    forwardBackward: async (sequences, objective, onTokens) => {
      await tell(sequences.some(isConstrained));
      const plain = sequences.map((sequence) => ({
        ...plainSequence(sequence),
        inputs: Object.fromEntries(
          Object.entries(sequence.inputs).map(([name, values]) => [name, numbers(values)]),
        ),
      }));
      return called("forwardBackward", [plain, objective], (done) => onTokens?.(Number(done)));
    },
    optimStep: (params) => typed("optimStep", params),
    discardGradients: () => typed("discardGradients"),
    snapshotReference: () => typed("snapshotReference"),
    snapshotActor: () => typed("snapshotActor"),
    save: (folder, options) => typed("save", folder, options),
    load: (folder) => typed("load", folder),
    useVocabulary: (known) => {
      vocabulary = known;
    },
    dispose: async () => {
      if (caller.ended) return;
      await typed("dispose");
      await caller.end();
    },
  };
}

/** Copies, because transferring a view would take its whole buffer to the worker. */
function numbers(values: ArrayLike<number>): Float64Array {
  return Float64Array.from(values);
}

function plainSequence(sequence: TargetSequence): TargetSequence {
  const { ids, targets, temperatures, constraints } = sequence;
  return {
    ...(constraints && { constraints }),
    ids: numbers(ids),
    targets: targets && numbers(targets),
    temperatures: temperatures && numbers(temperatures),
  };
}

function plainRequest(request: SampleRequest): SampleRequest {
  return { ...request, prompt: numbers(request.prompt) };
}
