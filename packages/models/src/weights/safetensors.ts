/** The safetensors file format: tensors in 32- or 16-bit floats, read one at a time. */
import type { FileHandle } from "node:fs/promises";
import { EngineError } from "@pawl/core/engine/engine.js";
import { writeFileAtomically, writeFully } from "@pawl/core/files/atomic-file.js";
import { openRegularHandle } from "@pawl/core/files/regular-file.js";
import { decodeBfloat16, decodeFloat16, encodeBfloat16, encodeFloat16 } from "./half-precision.js";
import { DTYPE_BYTES, parseSafetensorsHeader, type StoredTensor } from "./safetensors-header.js";

/** A safetensors file whose header has been read and checked. */
export interface SafetensorsFile {
  readonly file: string;
  readonly tensors: ReadonlyMap<string, StoredTensor>;
  readonly metadata: Readonly<Record<string, string>>;
}

/** The reference implementation's limit; a larger number means a different kind of file. */
const MAX_HEADER_BYTES = 100_000_000;
/** Bytes read or converted at once, which bounds memory use beyond the tensors themselves. */
const CHUNK_BYTES = 1 << 24;

/** Reads and checks the header of a safetensors file. */
export async function openSafetensors(file: string): Promise<SafetensorsFile> {
  return withFile(file, async (handle) => {
    const stats = await handle.stat();
    if (!stats.isFile()) throw new EngineError(`${file}: not a file`);
    const { size } = stats;
    if (size < 8)
      throw new EngineError(
        `${file}: not a safetensors file: expected at least 8 bytes, found ${size}`,
      );
    const prefix = Buffer.alloc(8);
    await readFully(handle, prefix, 0, file);
    const length = Number(prefix.readBigUInt64LE());
    if (length > MAX_HEADER_BYTES || 8 + length > size)
      throw new EngineError(
        `${file}: not a safetensors file, or a truncated one: it announces a header of ${length} bytes, but the file has ${size} bytes (a header has at most ${MAX_HEADER_BYTES})`,
      );
    const header = Buffer.alloc(length);
    await readFully(handle, header, 8, file);
    return { file, ...parseSafetensorsHeader(header, size - 8 - length, file) };
  });
}

/** Reads one tensor, converted to 32-bit floats. */
export async function readTensor(source: SafetensorsFile, name: string): Promise<Float32Array> {
  const { file } = source;
  const tensor = source.tensors.get(name);
  if (tensor === undefined)
    throw new EngineError(`${file}: tensor ${name} is missing from the file`);
  const decode = DECODERS[tensor.dtype];
  if (decode === undefined)
    throw new EngineError(
      `${file}: tensor ${name} has dtype ${tensor.dtype}; expected ${Object.keys(DECODERS).join(", ")}`,
    );
  const result = new Float32Array(tensor.bytes / DTYPE_BYTES[tensor.dtype]!);
  await withFile(file, (handle) => decode(handle, tensor.start, result, `${file}: tensor ${name}`));
  return result;
}

type Decoder = (
  handle: FileHandle,
  start: number,
  target: Float32Array,
  what: string,
) => Promise<void>;

const DECODERS: Readonly<Record<string, Decoder>> = {
  // Typed arrays use the machine's byte order, which is the file's on every platform we support.
  F32: (handle, start, target, what) => readFully(handle, target, start, what),
  F16: halfDecoder(decodeFloat16),
  BF16: halfDecoder(decodeBfloat16),
};

function halfDecoder(decode: (source: Uint16Array, target: Float32Array) => void): Decoder {
  return async (handle, start, target, what) => {
    const chunk = new Uint16Array(Math.min(target.length, CHUNK_BYTES / 2));
    for (let done = 0; done < target.length; done += chunk.length) {
      const part = chunk.subarray(0, Math.min(chunk.length, target.length - done));
      await readFully(handle, part, start + 2 * done, what);
      decode(part, target.subarray(done, done + part.length));
    }
  };
}

/** A tensor to write. */
export interface TensorData {
  readonly shape: readonly number[];
  readonly data: Float32Array;
}

/** A tensor to write that is computed when its turn comes, so that not all are in memory at once. */
export interface TensorSource {
  readonly shape: readonly number[];
  read(): Promise<Float32Array>;
}

/** The formats in which tensors can be written. */
export type WeightsDtype = "F32" | "F16" | "BF16";

/** How to write a safetensors file. */
export interface WriteOptions {
  /** Default F32. */
  readonly dtype?: WeightsDtype;
  /** Default `{ format: "pt" }`, without which Hugging Face's transformers rejects the file. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** Writes tensors to a safetensors file, which appears complete or not at all. */
export async function writeSafetensors(
  file: string,
  tensors: ReadonlyMap<string, TensorData | TensorSource>,
  { dtype = "F32", metadata = { format: "pt" } }: WriteOptions = {},
): Promise<void> {
  const itemBytes = DTYPE_BYTES[dtype]!;
  let offset = 0;
  const checked = (name: string, shape: readonly number[], data: Float32Array): Float32Array => {
    const length = shape.reduce((product, size) => product * size, 1);
    if (length === data.length) return data;
    throw new EngineError(
      `${file}: tensor ${name} of shape [${shape.join(", ")}] needs ${length} numbers, but has ${data.length}`,
    );
  };
  const entries = [...tensors].map(([name, tensor]) => {
    const { shape } = tensor;
    if ("data" in tensor) checked(name, shape, tensor.data);
    const length = shape.reduce((product, size) => product * size, 1);
    if (name === "__metadata__")
      throw new EngineError(`${file}: a tensor cannot be called __metadata__; rename it`);
    const start = offset;
    offset += length * itemBytes;
    return [name, { dtype, shape, data_offsets: [start, offset] }];
  });
  const json = Buffer.from(
    JSON.stringify(Object.fromEntries([["__metadata__", metadata], ...entries])),
  );
  // Padding with spaces to a multiple of 8 aligns the tensors.
  const header = Buffer.alloc(8 + Math.ceil(json.length / 8) * 8, " ");
  header.writeBigUInt64LE(BigInt(header.length - 8));
  json.copy(header, 8);
  await writeFileAtomically(file, async (handle) => {
    await writeFully(handle, header);
    for (const [name, tensor] of tensors) {
      const data = "data" in tensor ? tensor.data : await tensor.read();
      await writeData(handle, checked(name, tensor.shape, data), dtype);
    }
  });
}

async function writeData(handle: FileHandle, data: Float32Array, dtype: WeightsDtype) {
  if (dtype === "F32") return writeFully(handle, data);
  const encode = dtype === "F16" ? encodeFloat16 : encodeBfloat16;
  const chunk = new Uint16Array(Math.min(data.length, CHUNK_BYTES / 2));
  for (let done = 0; done < data.length; done += chunk.length) {
    const part = data.subarray(done, done + chunk.length);
    encode(part, chunk);
    await writeFully(handle, chunk.subarray(0, part.length));
  }
}

async function withFile<T>(file: string, use: (handle: FileHandle) => Promise<T>): Promise<T> {
  let handle: FileHandle;
  try {
    handle = await openRegularHandle(file);
  } catch (error) {
    throw new EngineError(`${file}: cannot be opened: ${(error as Error).message}`, {
      cause: error,
    });
  }
  try {
    return await use(handle);
  } finally {
    await handle.close();
  }
}

async function readFully(
  handle: FileHandle,
  view: ArrayBufferView,
  position: number,
  what: string,
): Promise<void> {
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  for (let done = 0; done < bytes.length; ) {
    const length = Math.min(bytes.length - done, CHUNK_BYTES);
    const { bytesRead } = await handle.read(bytes, done, length, position + done);
    if (bytesRead === 0)
      throw new EngineError(
        `${what}: truncated: ${bytes.length - done} of ${bytes.length} bytes are missing`,
      );
    done += bytesRead;
  }
}
