/** The JSON header of a safetensors file, with a check that every tensor lies where it says. */

import { EngineError } from "@pawl/core/engine/engine.js";
import { z } from "zod";

/** Where a tensor lies in its file. */
export interface StoredTensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  /** Position of its first byte in the file. */
  readonly start: number;
  readonly bytes: number;
}

/** Bytes of one number of each known dtype; not all of them can be read as floats. */
export const DTYPE_BYTES: Readonly<Record<string, number>> = {
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
export function parseSafetensorsHeader(
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
        `${what}: out of range: it ends at byte ${tensorEnd}, but the file has ${fileEnd} (is it truncated?)`,
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
