/**
 * The GGUF file format of llama.cpp: metadata, a table of tensors, and their data.
 *
 * Only the metadata and the table are read when a file is opened; tensors are read one at a time. A
 * file may come from anywhere, so everything in it is checked before it is used.
 */
import { closeSync, fstatSync } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { EngineError } from "@pawl/core/engine/engine.js";
import { openRegular, openRegularHandle } from "@pawl/core/files/regular-file.js";
import { BLOCK_FORMATS, type BlockFormat, formatName } from "./gguf-blocks.js";
import { GgufBytes } from "./gguf-bytes.js";

/** A value of the metadata. */
type GgufValue = number | string | boolean | GgufArray;
/** A list in the metadata: all its items have one type. */
type GgufArray = readonly string[] | ArrayLike<number>;

/** A tensor of the table. */
export interface GgufTensor {
  readonly name: string;
  /** Outermost dimension first, as everywhere else; the file has them the other way round. */
  readonly shape: readonly number[];
  readonly format: BlockFormat;
  /** Where its data starts in the file, and its length. */
  readonly start: number;
  readonly bytes: number;
}

/** A file whose metadata and tensor table have been read and checked. */
export interface GgufFile {
  readonly file: string;
  readonly size: number;
  readonly metadata: ReadonlyMap<string, GgufValue>;
  readonly tensors: ReadonlyMap<string, GgufTensor>;
}

const MAGIC = 0x46554747;
/** Of tensors, and of metadata values: real models have some thousands. */
const MAX_ENTRIES = 100_000;
const MAX_KEY = 65_535;
const MAX_TENSOR_NAME = 256;
const MAX_DIMENSIONS = 4;
/** Bytes of tensor data read at once. */
const CHUNK_BYTES = 1 << 22;

/** Whether a name is that of a GGUF file. */
export const isGgufName = (name: string): boolean => /\.gguf$/i.test(name);

/** Reads and checks the metadata and the tensor table of a GGUF file. */
export function openGguf(file: string): GgufFile {
  let descriptor: number;
  try {
    descriptor = openRegular(file);
  } catch (error) {
    throw new EngineError(`${file}: cannot be opened: ${(error as Error).message}`, {
      cause: error,
    });
  }
  try {
    const stats = fstatSync(descriptor);
    if (!stats.isFile()) throw new EngineError(`${file}: not a file`);
    const { size } = stats;
    const bytes = new GgufBytes(file, descriptor, size);
    const { tensorCount, valueCount } = readCounts(bytes);
    const metadata = readMetadata(bytes, valueCount);
    refuseSplit(metadata, file);
    const tensors = readTable(bytes, tensorCount, alignmentOf(metadata, bytes));
    return { file, size, metadata, tensors };
  } finally {
    closeSync(descriptor);
  }
}

function readCounts(bytes: GgufBytes) {
  const { file } = bytes;
  const magic = bytes.size < 24 ? undefined : bytes.u32();
  if (magic !== MAGIC)
    throw new EngineError(`${file}: not a GGUF file: it does not begin with the letters GGUF`);
  const version = bytes.u32();
  if (version !== 2 && version !== 3) {
    const swapped = version % 2 ** 16 === 0 ? " (it may be in big-endian byte order)" : "";
    throw new EngineError(
      `${file}: GGUF version ${version} is not supported${swapped}; expected 2 or 3: convert the model again with a current llama.cpp`,
    );
  }
  const tensorCount = bytes.u64();
  const valueCount = bytes.u64();
  // The shortest entries: a name's length, dimensions, type, offset; a key's length, type, a byte.
  bytes.checkCount(tensorCount, 24, "tensors");
  bytes.checkCount(valueCount, 13, "metadata values");
  if (Math.max(tensorCount, valueCount) > MAX_ENTRIES)
    throw bytes.error(
      `it announces ${tensorCount} tensors and ${valueCount} metadata values; expected at most ${MAX_ENTRIES} of each`,
    );
  return { tensorCount, valueCount };
}

const STRING_TYPE = 8;
const ARRAY_TYPE = 9;

/** The types of numbers by their number in the file, with their bytes and arrays to hold them. */
const NUMBER_TYPES: Readonly<
  Record<
    number,
    {
      readonly bytes: number;
      readonly array: new (length: number) => { [index: number]: number; readonly length: number };
      read(bytes: GgufBytes): number;
    }
  >
> = {
  0: { bytes: 1, array: Uint8Array, read: (bytes) => bytes.u8() },
  1: { bytes: 1, array: Int8Array, read: (bytes) => bytes.i8() },
  2: { bytes: 2, array: Uint16Array, read: (bytes) => bytes.u16() },
  3: { bytes: 2, array: Int16Array, read: (bytes) => bytes.i16() },
  4: { bytes: 4, array: Uint32Array, read: (bytes) => bytes.u32() },
  5: { bytes: 4, array: Int32Array, read: (bytes) => bytes.i32() },
  6: { bytes: 4, array: Float32Array, read: (bytes) => bytes.f32() },
  7: { bytes: 1, array: Uint8Array, read: readBit },
  10: { bytes: 8, array: Float64Array, read: (bytes) => bytes.u64() },
  11: { bytes: 8, array: Float64Array, read: (bytes) => bytes.i64() },
  12: { bytes: 8, array: Float64Array, read: (bytes) => bytes.f64() },
};
const BOOLEAN_TYPE = 7;

function readBit(bytes: GgufBytes): number {
  const value = bytes.u8();
  if (value > 1) throw bytes.error(`a truth value is ${value}; expected 0 or 1`);
  return value;
}

function readMetadata(bytes: GgufBytes, count: number): ReadonlyMap<string, GgufValue> {
  const metadata = new Map<string, GgufValue>();
  for (let i = 0; i < count; i++) {
    const key = bytes.string("a metadata key");
    if (key === "" || key.length > MAX_KEY)
      throw bytes.error(`a metadata key has ${key.length} characters; expected 1 to ${MAX_KEY}`);
    if (metadata.has(key)) throw bytes.error(`metadata ${show(key)} is there twice`);
    metadata.set(key, readValue(bytes, bytes.u32(), `metadata ${show(key)}`));
  }
  return metadata;
}

function readValue(bytes: GgufBytes, type: number, what: string): GgufValue {
  if (type === STRING_TYPE) return bytes.string(what);
  if (type === ARRAY_TYPE) return readArray(bytes, what);
  const number = NUMBER_TYPES[type];
  if (number === undefined) throw bytes.error(`${what} has the unknown type ${type}`);
  const value = number.read(bytes);
  return type === BOOLEAN_TYPE ? value === 1 : value;
}

function readArray(bytes: GgufBytes, what: string): GgufArray {
  const type = bytes.u32();
  const length = bytes.u64();
  if (type === STRING_TYPE) {
    bytes.checkCount(length, 8, `strings in ${what}`);
    const strings: string[] = [];
    for (let i = 0; i < length; i++) strings.push(bytes.string(`an item of ${what}`));
    return strings;
  }
  const number = NUMBER_TYPES[type];
  if (number === undefined)
    throw bytes.error(`${what} is a list of type ${type}; expected numbers or strings`);
  bytes.checkCount(length, number.bytes, `numbers in ${what}`);
  const values = new number.array(length);
  for (let i = 0; i < length; i++) values[i] = number.read(bytes);
  return values;
}

function alignmentOf(metadata: ReadonlyMap<string, GgufValue>, bytes: GgufBytes): number {
  const alignment = metadata.get("general.alignment") ?? 32;
  if (
    typeof alignment !== "number" ||
    !(alignment >= 8 && alignment <= 2 ** 20) ||
    !Number.isInteger(Math.log2(alignment))
  )
    throw bytes.error(
      `general.alignment is ${String(alignment)}; expected a power of two from 8 to ${2 ** 20}`,
    );
  return alignment;
}

function refuseSplit(metadata: ReadonlyMap<string, GgufValue>, file: string): void {
  const parts = metadata.get("split.count");
  if (typeof parts === "number" && parts > 1)
    throw new EngineError(
      `${file} is one of ${parts} parts of a model; join them first with llama.cpp's llama-gguf-split --merge`,
    );
}

function readTable(
  bytes: GgufBytes,
  count: number,
  alignment: number,
): ReadonlyMap<string, GgufTensor> {
  const listed = Array.from({ length: count }, () => readEntry(bytes));
  const dataStart = Math.ceil(bytes.position / alignment) * alignment;
  const tensors = new Map<string, GgufTensor>();
  for (const { offset, ...entry } of listed) {
    const what = `${bytes.file}: tensor ${show(entry.name)}`;
    if (tensors.has(entry.name)) throw new EngineError(`${what} is there twice`);
    if (offset % alignment !== 0)
      throw new EngineError(`${what} starts at ${offset}, which is not a multiple of ${alignment}`);
    const start = dataStart + offset;
    if (start + entry.bytes > bytes.size)
      throw new EngineError(
        `${what} ends at byte ${start + entry.bytes}, but the file has ${bytes.size}; it is truncated or damaged: fetch or copy it again`,
      );
    tensors.set(entry.name, { ...entry, start });
  }
  refuseOverlaps([...tensors.values()], bytes.file);
  return tensors;
}

function readEntry(bytes: GgufBytes) {
  const name = bytes.string("a tensor's name");
  if (name === "" || name.length > MAX_TENSOR_NAME)
    throw bytes.error(
      `a tensor's name has ${name.length} characters; expected 1 to ${MAX_TENSOR_NAME}`,
    );
  const what = `tensor ${show(name)}`;
  const dimensions = bytes.u32();
  if (dimensions < 1 || dimensions > MAX_DIMENSIONS)
    throw bytes.error(`${what} has ${dimensions} dimensions; expected 1 to ${MAX_DIMENSIONS}`);
  const innermostFirst = Array.from({ length: dimensions }, () => bytes.u64());
  const weights = innermostFirst.reduce((product, size) => product * size, 1);
  if (!(weights >= 1 && weights <= Number.MAX_SAFE_INTEGER))
    throw bytes.error(`${what} has the impossible dimensions ${innermostFirst.join(" × ")}`);
  const type = bytes.u32();
  const format = BLOCK_FORMATS.get(type);
  if (format === undefined)
    throw bytes.error(
      `${what} has the format ${formatName(type)}, which is not supported; supported: ${[...BLOCK_FORMATS.values()].map((one) => one.name).join(", ")}`,
    );
  if (innermostFirst[0]! % format.weights !== 0)
    throw bytes.error(
      `${what} has rows of ${innermostFirst[0]} weights; ${format.name} needs a multiple of ${format.weights}`,
    );
  return {
    name,
    shape: innermostFirst.reverse(),
    format,
    bytes: (weights / format.weights) * format.bytes,
    offset: bytes.u64(),
  };
}

function refuseOverlaps(tensors: readonly GgufTensor[], file: string): void {
  const inOrder = [...tensors].sort((a, b) => a.start - b.start);
  for (const [i, tensor] of inOrder.entries()) {
    const next = inOrder[i + 1];
    if (next !== undefined && tensor.start + tensor.bytes > next.start)
      throw new EngineError(
        `${file}: tensors ${show(tensor.name)} and ${show(next.name)} overlap; the file is damaged`,
      );
  }
}

/** Reads one tensor as 32-bit floats. */
export async function readGgufTensor(
  { file }: GgufFile,
  { name, format, start, bytes }: GgufTensor,
): Promise<Float32Array> {
  const weights = (bytes / format.bytes) * format.weights;
  const result = new Float32Array(weights);
  const blocksAtOnce = Math.floor(CHUNK_BYTES / format.bytes);
  const handle = await openRegularHandle(file);
  try {
    for (let done = 0; done < bytes; done += blocksAtOnce * format.bytes) {
      const part = Buffer.alloc(Math.min(blocksAtOnce * format.bytes, bytes - done));
      await readFully(handle, part, start + done, `${file}: tensor ${show(name)}`);
      const from = (done / format.bytes) * format.weights;
      const to = from + (part.length / format.bytes) * format.weights;
      format.decode(part, result.subarray(from, to));
    }
  } finally {
    await handle.close();
  }
  return result;
}

async function readFully(handle: FileHandle, bytes: Buffer, position: number, what: string) {
  for (let done = 0; done < bytes.length; ) {
    const { bytesRead } = await handle.read(bytes, done, bytes.length - done, position + done);
    if (bytesRead === 0) throw new EngineError(`${what}: the file is truncated`);
    done += bytesRead;
  }
}

function show(name: string): string {
  return /^[\w.-]{1,100}$/.test(name) ? name : JSON.stringify(name.slice(0, 100));
}
