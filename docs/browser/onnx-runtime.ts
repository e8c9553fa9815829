/** ONNX Runtime in WebAssembly, in the place of the native library. */
import type * as OnnxRuntime from "onnxruntime-common";
import * as web from "onnxruntime-web/wasm";

web.env.wasm.numThreads = 1;
web.env.wasm.wasmPaths = { wasm: new URL("onnx.wasm", self.location.href).href };

type Tensors = Readonly<Record<string, OnnxRuntime.Tensor | null>>;

/** The library, with sessions that also fill the tensors which they are given for their results. */
const runtime = {
  ...web,
  InferenceSession: {
    create: async (...args: Parameters<typeof web.InferenceSession.create>) => {
      const session = await web.InferenceSession.create(...args);
      return {
        release: () => session.release(),
        async run(feeds: OnnxRuntime.InferenceSession.FeedsType, fetches: Tensors) {
          const results = await session.run(feeds, Object.keys(fetches));
          for (const [name, into] of Object.entries(fetches))
            if (into !== null) (into.data as Float32Array).set(results[name]!.data as Float32Array);
          return results;
        },
      };
    },
  },
} as unknown as typeof OnnxRuntime;

export const onnxRuntime = (): typeof OnnxRuntime => runtime;
