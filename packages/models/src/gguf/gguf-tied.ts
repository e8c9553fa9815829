/**
 * One matrix quantised twice: files of models with tied embeddings may hold `output.weight` beside
 * `token_embd.weight`, because the output is worth more bits. They are one again if they differ by
 * no more than their two formats round, and the finer one is kept. Untied matrices are nowhere near:
 * they were trained apart.
 *
 * A weight of b bits in a block that spans about 4.2 standard deviations is off by a step over
 * √12, ε = 4.2 / (√12 · 2^b) ≈ 1.2 · 2^−b of the weights' size, so two roundings
 * differ by √(ε₁² + ε₂²). Twice that is allowed for the whole matrix, and four times that for a row;
 * one row in a thousand may be further off, as those of tokens that were never trained are.
 */
import { type GgufFile, type GgufTensor, readGgufTensor } from "./gguf-file.js";

const EMBEDDING = "token_embd.weight";
const OUTPUT = "output.weight";
/** Rows read at once. */
const ROWS = 4096;
const ROWS_APART = 0.001;

/** What was found of two matrices that are one. */
export interface TiedMatrices {
  /** The file with one of them, as the embedding. */
  readonly gguf: GgufFile;
  /** What was done, in words. */
  readonly notice: string;
}

/** Whether a file holds an output matrix that may be its embedding once more. */
export const holdsTwoMatrices = ({ tensors }: GgufFile): boolean =>
  tensors.has(EMBEDDING) && tensors.has(OUTPUT);

/** The file with one matrix if it holds one quantised twice; undefined if they are two. */
export async function tieMatrices(gguf: GgufFile): Promise<TiedMatrices | undefined> {
  const embedding = gguf.tensors.get(EMBEDDING);
  const output = gguf.tensors.get(OUTPUT);
  if (embedding === undefined || output === undefined) return undefined;
  if (embedding.shape.join() !== output.shape.join() || embedding.shape.length !== 2)
    return undefined;
  const error = Math.hypot(roundingError(embedding), roundingError(output));
  const { apart, difference, cosine } = await compare(gguf, embedding, output, 4 * error);
  if (difference > 2 * error || apart > ROWS_APART * embedding.shape[0]!) return undefined;
  const [kept, left] = bits(output) >= bits(embedding) ? [output, embedding] : [embedding, output];
  const tensors = new Map([...gguf.tensors, [EMBEDDING, { ...kept, name: EMBEDDING }]]);
  tensors.delete(OUTPUT);
  return {
    gguf: { ...gguf, tensors },
    notice: `${OUTPUT} and ${EMBEDDING} are one matrix quantised twice (cosine ${cosine.toFixed(4)}): ${kept.name} (${kept.format.name}) is used for both, ${left.name} (${left.format.name}) is left out`,
  };
}

/** Bits of a weight that round it: those of a block format, or of a float's fraction. */
function bits({ format: { name } }: GgufTensor): number {
  const floats: Readonly<Record<string, number>> = { F32: 24, F16: 11, BF16: 8 };
  return floats[name] ?? Number(/^Q(\d)_/.exec(name)![1]);
}

const roundingError = (tensor: GgufTensor): number => 1.2 * 2 ** -bits(tensor);

/** Rows further apart than `limit`, the relative difference of all, and their cosine. */
async function compare(gguf: GgufFile, one: GgufTensor, other: GgufTensor, limit: number) {
  const [rows, width] = one.shape as [number, number];
  let [apart, squares, ones, others, product] = [0, 0, 0, 0, 0];
  for (let from = 0; from < rows; from += ROWS) {
    const count = Math.min(ROWS, rows - from);
    const [a, b] = await Promise.all([one, other].map((tensor) => part(gguf, tensor, from, count)));
    for (let row = 0; row < count; row++) {
      let [difference, size] = [0, 0];
      for (let i = row * width; i < (row + 1) * width; i++) {
        const [x, y] = [a![i]!, b![i]!];
        difference += (x - y) ** 2;
        size += x * x;
        others += y * y;
        product += x * y;
      }
      // Not "greater": NaN is no agreement.
      if (!(difference <= limit ** 2 * size)) apart++;
      squares += difference;
      ones += size;
    }
  }
  const cosine = product / Math.sqrt(ones * others);
  return { apart, difference: Math.sqrt(squares / ones), cosine };
}

function part(gguf: GgufFile, tensor: GgufTensor, from: number, rows: number) {
  const bytes = tensor.bytes / tensor.shape[0]!;
  const start = tensor.start + from * bytes;
  return readGgufTensor(gguf, { ...tensor, start, bytes: rows * bytes });
}
