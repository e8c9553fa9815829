/** The safetensors file format: tensors in 32- or 16-bit floats, read one at a time. */
import type { FileHandle } from "node:fs/promises";
import { EngineError } from "@pawl/core/engine/engine.js";
import { writeFileAtomically, writeFully } from "@pawl/core/files/atomic-file.js";
import { openRegularHandle } from "@pawl/core/files/regular-file.js";
import { z } from "zod";
import { decodeBfloat16, decodeFloat16, encodeBfloat16, encodeFloat16 } from "./half-precision.js";

/** Where a tensor lies in its file. */
interface StoredTensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  /** Position of its first byte in the file. */
  readonly start: number;
  readonly bytes: number;
}

/** Bytes of one number of each known dtype; not all of them can be read as floats. */
const DTYPE_BYTES: Readonly<Record<string, number>> = {
  F64: 8,
  F32: 4,
  F16: 2,
  BF16: 2,
  F8_E4M3: 1,
  F8_E5M2: 1,
  I64: 8,
  I32: 4,
  I16: 2,
  I8: 1,
  U64: 8,
  U32: 4,
  U16: 2,
  U8: 1,
  BOOL: 1,
};

const count = z.int().nonnegative();
const tensorSchema = z.object({
  dtype: z.string(),
  shape: z.array(count),
  data_offsets: z.tuple([count, count]),
});
const metadataSchema = z.record(z.string(), z.string());

/** Reads a header; `dataBytes` is what follows it in the file, which the tensors must fill exactly. */
function parseSafetensorsHeader(
  header: Uint8Array,
  dataBytes: number,
  file: string,
): {
  readonly tensors: ReadonlyMap<string, StoredTensor>;
  readonly metadata: Readonly<Record<string, string>>;
} {
  const json = parseJson(header, file);
  const tensors = new Map<string, StoredTensor>();
  let metadata: Readonly<Record<string, string>> = {};
  for (const [name, entry] of Object.entries(json)) {
    if (name !== "__metadata__") {
      tensors.set(name, parseEntry(entry, 8 + header.length, `${file}: tensor ${show(name)}`));
      continue;
    }
    const parsed = metadataSchema.safeParse(entry);
    if (!parsed.success)
      throw new EngineError(`${file}: __metadata__ must be an object of strings`);
    metadata = parsed.data;
  }
  checkLayout(tensors, 8 + header.length, dataBytes, file);
  return { tensors, metadata };
}

function parseJson(header: Uint8Array, file: string): object {
  let json: unknown;
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(header);
    json = JSON.parse(text);
  } catch (error) {
    throw new EngineError(`${file}: the header is not JSON: ${(error as Error).message}`, {
      cause: error,
    });
  }
  if (typeof json !== "object" || json === null || Array.isArray(json))
    throw new EngineError(`${file}: the header must be a JSON object`);
  const duplicate = findDuplicateKey(text);
  if (duplicate !== undefined)
    throw new EngineError(`${file}: the header has the key ${show(duplicate)} twice`);
  return json;
}

function parseEntry(entry: unknown, dataStart: number, what: string): StoredTensor {
  const parsed = tensorSchema.safeParse(entry);
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!;
    throw new EngineError(`${what}: ${["header", ...issue.path].join(".")}: ${issue.message}`);
  }
  const { dtype, shape, data_offsets: offsets } = parsed.data;
  const itemBytes = Object.hasOwn(DTYPE_BYTES, dtype) ? DTYPE_BYTES[dtype] : undefined;
  if (itemBytes === undefined)
    throw new EngineError(
      `${what}: unknown dtype ${show(dtype)}; known: ${Object.keys(DTYPE_BYTES).join(", ")}`,
    );
  const expected = shape.reduce((product, size) => product * size, itemBytes);
  const bytes = offsets[1] - offsets[0];
  if (bytes !== expected)
    throw new EngineError(
      `${what}: ${dtype} of shape [${shape.join(", ")}] needs ${expected} bytes, but its offsets ${offsets[0]} to ${offsets[1]} hold ${bytes}`,
    );
  return { dtype, shape, start: dataStart + offsets[0], bytes };
}

/** The format allows neither overlaps nor holes, so that a file has no hidden content. */
function checkLayout(
  tensors: ReadonlyMap<string, StoredTensor>,
  dataStart: number,
  dataBytes: number,
  file: string,
): void {
  const fileEnd = dataStart + dataBytes;
  // Among tensors with the same start, empty ones come first: they take no space.
  const inOrder = [...tensors].sort(([, a], [, b]) => a.start - b.start || a.bytes - b.bytes);
  let end = dataStart;
  let previous = "the header";
  for (const [name, tensor] of inOrder) {
    const what = `${file}: tensor ${show(name)}`;
    const tensorEnd = tensor.start + tensor.bytes;
    if (tensorEnd > fileEnd)
      throw new EngineError(
        `${what}: out of range: it ends at byte ${tensorEnd}, but the file has ${fileEnd}; if it is truncated, fetch or copy it again`,
      );
    if (tensor.start < end)
      throw new EngineError(`${what}: overlaps with ${previous}: it starts before byte ${end}`);
    if (tensor.start > end)
      throw new EngineError(
        `${what}: a hole of ${tensor.start - end} bytes between ${previous} and it`,
      );
    end = tensorEnd;
    previous = `tensor ${show(name)}`;
  }
  if (end !== fileEnd)
    throw new EngineError(`${file}: ${fileEnd - end} bytes follow ${previous}, the last tensor`);
}

/**
 * A key that an object in valid JSON text has twice; JSON.parse would silently keep the last one.
 */
function findDuplicateKey(text: string): string | undefined {
  const open: Set<string>[] = [];
  // By hand: a regular expression runs out of stack on strings of several megabytes.
  for (let i = 0; i < text.length; i++) {
    if (text[i] === "{") open.push(new Set());
    else if (text[i] === "}") open.pop();
    else if (text[i] === '"') {
      const end = endOfString(text, i);
      let next = end;
      while (" \t\r\n".includes(text[next] ?? ":")) next++;
      if (text[next] === ":") {
        const key: string = JSON.parse(text.slice(i, end));
        if (open.at(-1)!.has(key)) return key;
        open.at(-1)!.add(key);
      }
      i = end - 1;
    }
  }
  return undefined;
}

function endOfString(text: string, start: number): number {
  let i = start + 1;
  while (text[i] !== '"') i += text[i] === "\\" ? 2 : 1;
  return i + 1;
}

function show(name: string): string {
  const plain = /^[\w.-]{1,200}$/.test(name);
  return plain ? name : JSON.stringify(name.slice(0, 200));
}

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
