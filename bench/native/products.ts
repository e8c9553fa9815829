/** Matrix products of our shapes in the prototype, ONNX Runtime and PyTorch: GFLOP/s. */
import { encodeModel } from "@pawl/engine-cpu/onnx.js";
import { onnxRuntime } from "@pawl/models/onnx-runtime.js";
import type { Peer } from "../peer/side.js";
import { THREADS } from "../peer/side.js";
import { random } from "../peer/work.js";

/** Rows, columns, depth; `tall` sums over rows, as weights' gradients do. */
const SHAPES = [
  { m: 8192, n: 256, k: 256 },
  { m: 8192, n: 2048, k: 256 },
  { m: 8192, n: 256, k: 1024 },
  { m: 1024, n: 2048, k: 256 },
  { m: 8192, n: 1024, k: 128 },
  { m: 64, n: 2048, k: 256 },
  { m: 1024, n: 256, k: 2048, tall: true },
  { m: 1024, n: 256, k: 256, tall: true },
  { m: 1024, n: 128, k: 1024, tall: true },
] as const;

const REPETITIONS = 8;

async function onnx({
  m,
  n,
  k,
  tall = false,
}: {
  m: number;
  n: number;
  k: number;
  tall?: boolean;
}) {
  const [left, right] = tall
    ? [
        [m, k],
        [m, n],
      ]
    : [
        [m, k],
        [n, k],
      ];
  const value = (name: string, shape: readonly number[]) =>
    ({ name, type: "float32", shape }) as const;
  const model = encodeModel({
    name: "product",
    nodes: [
      {
        op: "FusedMatMul",
        domain: "com.microsoft",
        inputs: ["a", "b"],
        outputs: ["c"],
        attributes: tall ? { transA: { int: 1 } } : { transB: { int: 1 } },
      },
      { op: "Shape", domain: "", inputs: ["c"], outputs: ["shape"], attributes: {} },
    ],
    inputs: [value("a", left!), value("b", right!)],
    outputs: [{ name: "shape", type: "int64", shape: [2] }],
    constants: [],
  });
  const session = await onnxRuntime().InferenceSession.create(model, {
    intraOpNumThreads: THREADS,
    graphOptimizationLevel: "disabled",
  });
  const matrix = ([rows, columns]: readonly number[]) => {
    const data = Float32Array.from({ length: rows! * columns! }, () => random.next());
    return new (onnxRuntime().Tensor)("float32", data, [rows!, columns!]);
  };
  const feeds = { a: matrix(left!), b: matrix(right!) };
  const repeat = Math.max(1, Math.round(4e9 / (2 * m * n * k)));
  let best = Number.POSITIVE_INFINITY;
  for (let i = 0; i <= REPETITIONS; i++) {
    const begin = performance.now();
    for (let j = 0; j < repeat; j++) await session.run(feeds);
    if (i > 0) best = Math.min(best, (performance.now() - begin) / repeat);
  }
  await session.release();
  return (2 * m * n * k) / best / 1e6;
}

/** One row for each shape; the best of several repetitions, all sides after one another. */
export async function productsOf(native: Peer, torch: Peer): Promise<readonly object[]> {
  const rows: object[] = [];
  for (const shape of SHAPES) {
    const gflops = async (peer: Peer) =>
      Math.round((await peer.ask({ do: "product", ...shape })).gflops!);
    rows.push({
      ...shape,
      native: await gflops(native),
      onnx: Math.round(await onnx(shape)),
      torch: await gflops(torch),
    });
  }
  return rows;
}
