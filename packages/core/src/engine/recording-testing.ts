/** An engine that records calls and forwards them to another engine. */
import type { Objective } from "../objectives/expression.js";
import type {
  BackwardResult,
  Engine,
  ForwardOptions,
  SampleRequest,
  TargetSequence,
  TrainSequence,
} from "./engine.js";

/** The recorded calls, in order. */
export interface Asked {
  readonly samples: SampleRequest[];
  readonly forwards: {
    readonly sequences: readonly TargetSequence[];
    readonly options: ForwardOptions;
  }[];
  readonly passes: {
    readonly sequences: readonly TrainSequence[];
    readonly objective: Objective;
    readonly result: BackwardResult;
  }[];
}

/** The engine, and its calls so far. */
export function recording(engine: Engine): { readonly engine: Engine; readonly asked: Asked } {
  const asked: Asked = { samples: [], forwards: [], passes: [] };
  return {
    asked,
    engine: {
      ...engine,
      get capabilities() {
        return engine.capabilities;
      },
      sample(requests, options) {
        asked.samples.push(...requests);
        return engine.sample(requests, options);
      },
      forward(sequences, options = {}) {
        asked.forwards.push({ sequences, options });
        return engine.forward(sequences, options);
      },
      async forwardBackward(sequences, objective) {
        const result = await engine.forwardBackward(sequences, objective);
        asked.passes.push({ sequences, objective, result });
        return result;
      },
    },
  };
}
