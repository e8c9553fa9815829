/** Writes files in the GGUF format: metadata, a table of tensors, and their data. */
import { EngineError } from "@pawl/core/engine/engine.js";
import { writeFileAtomically, writeFully } from "@pawl/core/files/atomic-file.js";
import { BLOCK_FORMATS, type BlockFormat } from "./gguf-blocks.js";

/** A value of the metadata with its type. */
export type WrittenValue =
  | { readonly u32: number }
  | { readonly i32: number }
  | { readonly f32: number }
  | { readonly bool: boolean }
  | { readonly string: string }
  | { readonly strings: readonly string[] }
  | { readonly i32s: readonly number[] }
  | { readonly f32s: readonly number[] };

/** Values by their keys, in the order they are written. */
export type WrittenMetadata = Readonly<Record<string, WrittenValue>>;

/** Numbers of the formats that are written. */
export const FORMAT = { f32: 0, f16: 1, q8_0: 8 } as const;

/** A tensor to be written; its numbers are read when it is its turn. */
export interface TensorToWrite {
  readonly name: string;
  /** Outermost dimension first. */
  readonly shape: readonly number[];
  readonly format: (typeof FORMAT)[keyof typeof FORMAT];
  read(): Promise<Float32Array>;
}

/** A tensor as the table lists it: its dimensions innermost first, its format's number. */
interface Entry {
  readonly name: string;
  readonly dimensions: readonly number[];
  readonly type: number;
  readonly bytes: number;
}

const ALIGNMENT = 32;
/** Weights encoded at once: a multiple of every block. */
const CHUNK = 1 << 20;
/** The largest number of 16 bits, and half a step more: beyond it, rounding gives infinity. */
const MAX_HALF = 65_520;

/** Writes a file; one tensor at a time is in memory, and the file appears when it is complete. */
export async function writeGgufFile(
  file: string,
  metadata: WrittenMetadata,
  tensors: readonly TensorToWrite[],
): Promise<void> {
  const entries = tensors.map((tensor) => ({
    name: tensor.name,
    dimensions: [...tensor.shape].reverse(),
    type: tensor.format,
    bytes: tensorBytes(tensor),
  }));
  await writeFileAtomically(file, async (handle) => {
    await writeFully(handle, ggufHeader(metadata, entries));
    for (const [i, tensor] of tensors.entries()) {
      const data = await tensor.read();
      if (data.length !== weightsOf(tensor))
        throw new EngineError(
          `${file}: tensor ${tensor.name} of shape [${tensor.shape.join(", ")}] needs ${weightsOf(tensor)} numbers, but has ${data.length}`,
        );
      checkRange(data, tensor, file);
      const { encode } = formatOf(tensor);
      for (let done = 0; done < data.length; done += CHUNK)
        await writeFully(handle, encode!(data.subarray(done, done + CHUNK)));
      const { bytes } = entries[i]!;
      await writeFully(handle, Buffer.alloc(padded(bytes, ALIGNMENT) - bytes));
    }
  });
}

/** Bytes that the tensors take in a file. */
export function tensorBytes(tensor: Pick<TensorToWrite, "shape" | "format">): number {
  const { weights, bytes } = formatOf(tensor);
  return (weightsOf(tensor) / weights) * bytes;
}

/** A file up to its data, which begins at a multiple of the alignment; so does each tensor. */
export function ggufHeader(
  metadata: WrittenMetadata,
  tensors: readonly Entry[],
  alignment = ALIGNMENT,
): Buffer {
  const header = [Buffer.from("GGUF"), u32(3), u64(tensors.length)];
  header.push(u64(Object.keys(metadata).length));
  for (const [key, value] of Object.entries(metadata))
    header.push(string(key), Buffer.concat(encode(value)));
  let offset = 0;
  for (const { name, dimensions, type, bytes } of tensors) {
    header.push(string(name), u32(dimensions.length), ...dimensions.map(u64), u32(type));
    header.push(u64(offset));
    offset += padded(bytes, alignment);
  }
  const start = Buffer.concat(header);
  return Buffer.concat([start], padded(start.length, alignment));
}

/** The next multiple of the alignment. */
export function padded(length: number, alignment: number): number {
  return Math.ceil(length / alignment) * alignment;
}

function formatOf({ format }: Pick<TensorToWrite, "format">): BlockFormat {
  return BLOCK_FORMATS.get(format)!;
}

function weightsOf({ shape }: Pick<TensorToWrite, "shape">): number {
  return shape.reduce((product, size) => product * size, 1);
}

function checkRange(data: Float32Array, { name, format }: TensorToWrite, file: string): void {
  if (format === FORMAT.f32) return;
  // A block's scale is its largest weight over 127, and has 16 bits.
  const limit = format === FORMAT.q8_0 ? 127 * MAX_HALF : MAX_HALF;
  const beyond = data.find((weight) => !(Math.abs(weight) < limit));
  if (beyond !== undefined)
    throw new EngineError(
      `${file}: tensor ${name} holds ${beyond}, which ${formatOf({ format }).name} cannot; expected less than ${limit}`,
    );
}

export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

export function u64(value: number | bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function string(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([u64(bytes.length), bytes]);
}

function numbers(write: "writeInt32LE" | "writeFloatLE", values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  values.forEach((value, i) => {
    bytes[write](value, 4 * i);
  });
  return bytes;
}

/** A value after its type's number; lists have the type of their items and a length. */
function encode(value: WrittenValue): readonly Buffer[] {
  if ("u32" in value) return [u32(4), u32(value.u32)];
  if ("i32" in value) return [u32(5), numbers("writeInt32LE", [value.i32])];
  if ("f32" in value) return [u32(6), numbers("writeFloatLE", [value.f32])];
  if ("bool" in value) return [u32(7), Buffer.of(value.bool ? 1 : 0)];
  if ("string" in value) return [u32(8), string(value.string)];
  if ("strings" in value)
    return [u32(9), u32(8), u64(value.strings.length), ...value.strings.map(string)];
  if ("i32s" in value)
    return [u32(9), u32(5), u64(value.i32s.length), numbers("writeInt32LE", value.i32s)];
  return [u32(9), u32(6), u64(value.f32s.length), numbers("writeFloatLE", value.f32s)];
}
