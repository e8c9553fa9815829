/**
 * What fewer bits would gain and cost when sampling on a CPU: why the embedded engine has none.
 *
 *   npm run bench -- precision MODEL [--repetitions 15]
 *
 *   mean_…, max_…    how far log-probabilities are from those of 32 bits, over answers sampled with
 *                    weights rounded to f16, bf16 or 8 bits (int8: a scale for each output; the
 *                    embedding, norms and what flows between layers keep 32 bits, which is kind)
 *   …_ratio_ROWS     seconds of 32-bit products ÷ those in f16 or int8 (rows too are rounded, by
 *                    ONNX Runtime), for ROWS tokens at once through a layer's matrices
 *   …_processor_ratio_ROWS   the same in the processors' seconds
 */
import { mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createRandom } from "@pawl/core/random.js";
import { loadTokenizer } from "@pawl/core/text/tokenizer.js";
import { createEmbeddedEngine } from "@pawl/engine-cpu/embedded-engine.js";
import { encodeModel, type OnnxNode } from "@pawl/engine-cpu/onnx.js";
import { fetchModel } from "@pawl/models/fetch-model.js";
import { onnxRuntime } from "@pawl/models/onnx-runtime.js";
import { openCheckpoint, writeCheckpoint } from "@pawl/models/weights/checkpoint.js";
import { interleave, machine, median, THREADS } from "./peer/side.js";

const QUESTIONS = ["Why is the sky blue?", "Tell me of a fox.", "Name three fruits.", "2 + 2?"];
const NEW = 24;

/** Each row's numbers as multiples of its largest one's 127th part. */
function rounded(data: Float32Array, width: number): Float32Array {
  for (let start = 0; start < data.length; start += width) {
    const row = data.subarray(start, start + width);
    const scale = row.reduce((most, x) => Math.max(most, Math.abs(x)), 0) / 127 || 1;
    row.forEach((x, i) => {
      row[i] = Math.round(x / scale) * scale;
    });
  }
  return data;
}

const FORMATS = { f16: "F16", bf16: "BF16", int8: "F32" } as const;
type Format = keyof typeof FORMATS;

/** Differences of log-probabilities of what the rounded model samples. */
async function apart(folder: string, scratch: string, format: Format): Promise<readonly number[]> {
  const model = await openCheckpoint(folder);
  const out = join(scratch, format);
  const tensors = model.tensors.map(({ name, shape }) => {
    const read = async () => {
      const data = await model.read(name);
      return format === "int8" && /_proj\.weight$/.test(name) ? rounded(data, shape[1]!) : data;
    };
    return [name, { shape, read }] as const;
  });
  await writeCheckpoint(out, model.config, new Map(tensors), { dtype: FORMATS[format] });
  const tokenizer = await loadTokenizer(folder);
  const requests = QUESTIONS.map((content, seed) => {
    const text = tokenizer.chat([{ role: "user", content }], { addGenerationPrompt: true });
    return { prompt: tokenizer.encode(text), maxTokens: NEW, count: 2, seed };
  });
  const less = await createEmbeddedEngine({ model: { folder: out }, threads: THREADS });
  const samples = await less.sample(requests);
  await less.dispose();
  const answers = samples.flatMap((group, i) =>
    group.map((one) => ({ prompt: requests[i]!.prompt, ...one })),
  );
  const whole = await createEmbeddedEngine({ model: { folder }, threads: THREADS });
  const scores = await whole.forward(
    answers.map(({ prompt, tokens }) => ({ ids: [...prompt, ...tokens] })),
  );
  await whole.dispose();
  return answers.flatMap(({ prompt, logprobs }, i) =>
    Array.from(logprobs, (x, at) => Math.abs(x - scores[i]!.logprobs[prompt.length + at]!)),
  );
}

const FLOAT = 1;
const INT8 = 3;
const FLOAT16 = 10;

/** The products of a layer for so many tokens, one graph after another in a number format. */
async function products(shapes: readonly (readonly number[])[], rows: number, format?: Format) {
  const random = createRandom(0);
  const floats = (shape: readonly number[]) =>
    Float32Array.from({ length: shape[0]! * shape[1]! }, () => random.next() - 0.5);
  const nodes: OnnxNode[] = [];
  const node = (op: string, inputs: string[], outputs: string[], to?: number) =>
    nodes.push({
      ...{ op, domain: "", inputs, outputs },
      attributes: to === undefined ? {} : { to: { int: to } },
    });
  shapes.forEach((_, i) => {
    const [x, w, y] = [`x${i}`, `w${i}`, `y${i}`];
    if (format === undefined) node("MatMul", [x, w], [y]);
    else if (format === "int8") {
      // The weights are cast once, when the graph is made.
      node("Cast", [w], [`${w}q`], INT8);
      node("DynamicQuantizeLinear", [x], [`${x}q`, `${x}s`, `${x}z`]);
      node("MatMulInteger", [`${x}q`, `${w}q`, `${x}z`], [`${y}i`]);
      node("Cast", [`${y}i`], [`${y}f`], FLOAT);
      node("Mul", [`${y}f`, `${x}s`], [y]);
    } else {
      node("Cast", [w], [`${w}h`], FLOAT16);
      node("Cast", [x], [`${x}h`], FLOAT16);
      node("MatMul", [`${x}h`, `${w}h`], [`${y}h`]);
      node("Cast", [`${y}h`], [y], FLOAT);
    }
    node("Shape", [y], [`shape${i}`]);
  });
  const model = encodeModel({
    ...{ name: "products", nodes },
    inputs: shapes.map(([width], i) => ({
      ...{ name: `x${i}`, type: "float32" as const },
      shape: [rows, width!],
    })),
    outputs: shapes.map((_, i) => ({ name: `shape${i}`, type: "int64" as const, shape: [2] })),
    constants: shapes.map((shape, i) => {
      const data = floats(shape).map((x) => (format === "int8" ? Math.round(254 * x) : x));
      const bytes = new Uint8Array(data.buffer);
      return { name: `w${i}`, type: "float32" as const, shape, data: bytes };
    }),
  });
  const session = await onnxRuntime().InferenceSession.create(model, {
    intraOpNumThreads: THREADS,
  });
  const feeds = Object.fromEntries(
    shapes.map(([width], i) => [
      `x${i}`,
      new (onnxRuntime().Tensor)("float32", floats([rows, width!]), [rows, width!]),
    ]),
  );
  const spent: number[] = [];
  return {
    spent,
    run: async () => {
      const [begin, used] = [performance.now(), process.cpuUsage()];
      for (let i = 0; i < 50; i++) await session.run(feeds);
      const { user, system } = process.cpuUsage(used);
      spent.push(user + system);
      return performance.now() - begin;
    },
  };
}

/** Measures both. */
export async function main(args: readonly string[]): Promise<Record<string, number | string>> {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { repetitions: { type: "string", default: "15" } },
  });
  const [name] = positionals;
  if (name === undefined) throw new Error("name a model: a GGUF file, a folder, or a hub id");
  const load = loadavg()[0]!;
  const { folder } = (await fetchModel(name)) ?? { folder: name };
  const { tensors } = await openCheckpoint(folder);
  const shapes = tensors
    .filter((one) => /layers\.0\..*_proj\.weight$/.test(one.name))
    .map(({ shape: [output, input] }) => [input!, output!]);
  const digits = (x: number) => Number(x.toPrecision(3));
  const found: Record<string, number | string> = {};
  for (const rows of [8, 64]) {
    const [plain, f16, int8] = [
      await products(shapes, rows),
      await products(shapes, rows, "f16"),
      await products(shapes, rows, "int8"),
    ];
    const sides = { plain: plain.run, f16: f16.run, int8: int8.run };
    const seconds = await interleave(sides, Number(values.repetitions));
    const processor = (one: typeof plain) => median(one.spent.slice(1));
    for (const [what, one] of Object.entries({ f16, int8 } as const)) {
      found[`${what}_ratio_${rows}`] = digits(seconds.plain / seconds[what as "f16" | "int8"]);
      found[`${what}_processor_ratio_${rows}`] = digits(processor(plain) / processor(one));
    }
  }
  const scratch = mkdtempSync(join(tmpdir(), "pawl-bench-precision-"));
  try {
    for (const format of Object.keys(FORMATS) as Format[]) {
      const differences = await apart(folder, scratch, format);
      const sum = differences.reduce((total, x) => total + x, 0);
      found[`mean_${format}`] = digits(sum / differences.length);
      found[`max_${format}`] = digits(Math.max(...differences));
    }
  } finally {
    rmSync(scratch, { recursive: true });
  }
  return { ...found, machine: machine(), load: digits(load) };
}
