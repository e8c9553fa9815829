/**
 * Writes ONNX models: the few protobuf messages a graph needs, and nothing else of protobuf.
 *
 * Field numbers are those of onnx.proto (IR version 9, the ai.onnx and com.microsoft operator
 * sets).
 */

/** Element types of tensors. */
export type ElementType = "float32" | "int32" | "int64" | "bool";

/** Possible values of an operator's attribute. */
export type Attribute =
  | { readonly float: number }
  | { readonly int: number }
  | { readonly ints: readonly number[] }
  | { readonly string: string }
  | { readonly graph: OnnxGraph };

/** One operator: named inputs (an empty name leaves an optional one out) to named outputs. */
export interface OnnxNode {
  readonly op: string;
  readonly domain: "" | "com.microsoft";
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: Readonly<Record<string, Attribute>>;
}

/** A named tensor type; a dimension given as text is known only when the graph runs. */
export interface OnnxValue {
  readonly name: string;
  readonly type: ElementType;
  /** Left out if even the number of dimensions is to be found out when the graph runs. */
  readonly shape: readonly (number | string)[] | undefined;
}

/** A constant stored in the model. */
export interface OnnxConstant {
  readonly name: string;
  readonly type: ElementType;
  readonly shape: readonly number[];
  readonly data: Uint8Array;
}

/** A graph, or the body of a loop. */
export interface OnnxGraph {
  readonly name: string;
  readonly nodes: readonly OnnxNode[];
  readonly inputs: readonly OnnxValue[];
  readonly outputs: readonly OnnxValue[];
  readonly constants: readonly OnnxConstant[];
}

/** The standard's numbers of element types. */
export const elementCodes: Readonly<Record<ElementType, number>> = {
  float32: 1,
  int32: 6,
  int64: 7,
  bool: 9,
};

const opset = 21;
const irVersion = 9;

/**
 * Where a message is written, from its end to its beginning: the length of a part, which stands before
 * it, is then known. Without bytes it only counts, so that the second time everything fits exactly.
 */
interface Writer {
  readonly bytes: Buffer | undefined;
  /** Where what has been written begins. */
  at: number;
}

/** Encodes a graph as the bytes of an ONNX model file. */
export function encodeModel(graph: OnnxGraph): Uint8Array {
  const size = { bytes: undefined, at: 0 };
  writeModel(size, graph);
  const bytes = Buffer.allocUnsafeSlow(-size.at);
  writeModel({ bytes, at: bytes.length }, graph);
  return bytes;
}

function writeModel(to: Writer, graph: OnnxGraph): void {
  writeDomain(to, "com.microsoft", 1);
  writeDomain(to, "", opset);
  writePart(to, 7, graph, writeGraph);
  writePart(to, 2, "pawl", writeText);
  writeNumber(to, 1, irVersion);
}

function writeDomain(to: Writer, domain: string, version: number): void {
  const end = to.at;
  writeNumber(to, 2, version);
  writePart(to, 1, domain, writeText);
  writeHead(to, 8, end);
}

function writeGraph(to: Writer, graph: OnnxGraph): void {
  writeParts(to, 12, graph.outputs, writeValue);
  writeParts(to, 11, graph.inputs, writeValue);
  writeParts(to, 5, graph.constants, writeConstant);
  writePart(to, 2, graph.name, writeText);
  writeParts(to, 1, graph.nodes, writeNode);
}

function writeNode(to: Writer, node: OnnxNode): void {
  writePart(to, 7, node.domain, writeText);
  writeParts(to, 5, Object.entries(node.attributes), writeAttribute);
  writePart(to, 4, node.op, writeText);
  // The first output is unique in its graph, so it also names the operator in profiles and errors.
  writePart(to, 3, node.outputs[0] ?? node.op, writeText);
  writeParts(to, 2, node.outputs, writeText);
  writeParts(to, 1, node.inputs, writeText);
}

function writeAttribute(to: Writer, [name, value]: readonly [string, Attribute]): void {
  if ("float" in value) {
    writeNumber(to, 20, 1);
    writeFloat(to, 2, value.float);
  } else if ("int" in value) {
    writeNumber(to, 20, 2);
    writeNumber(to, 3, value.int);
  } else if ("string" in value) {
    writeNumber(to, 20, 3);
    writePart(to, 4, value.string, writeText);
  } else if ("graph" in value) {
    writeNumber(to, 20, 5);
    writePart(to, 6, value.graph, writeGraph);
  } else {
    writeNumber(to, 20, 7);
    writeNumbers(to, 8, value.ints);
  }
  writePart(to, 1, name, writeText);
}

function writeConstant(to: Writer, constant: OnnxConstant): void {
  writePart(to, 9, constant.data, writeBytes);
  writePart(to, 8, constant.name, writeText);
  writeNumber(to, 2, elementCodes[constant.type]);
  writeNumbers(to, 1, constant.shape);
}

function writeValue(to: Writer, value: OnnxValue): void {
  writePart(to, 2, value, writeType);
  writePart(to, 1, value.name, writeText);
}

function writeType(to: Writer, value: OnnxValue): void {
  const end = to.at;
  if (value.shape !== undefined) writePart(to, 2, value.shape, writeShape);
  writeNumber(to, 1, elementCodes[value.type]);
  writeHead(to, 1, end);
}

function writeShape(to: Writer, shape: readonly (number | string)[]): void {
  writeParts(to, 1, shape, (_, size) => {
    if (typeof size === "number") writeNumber(to, 1, size);
    else writePart(to, 2, size, writeText);
  });
}

/** A field of several parts; the first comes to stand first. */
function writeParts<T>(
  to: Writer,
  field: number,
  parts: readonly T[],
  write: (to: Writer, part: T) => void,
): void {
  for (let i = parts.length - 1; i >= 0; i--) writePart(to, field, parts[i]!, write);
}

function writePart<T>(
  to: Writer,
  field: number,
  part: T,
  write: (to: Writer, part: T) => void,
): void {
  const end = to.at;
  write(to, part);
  writeHead(to, field, end);
}

/** What stands before a part that ends there: its field and its length. */
function writeHead(to: Writer, field: number, end: number): void {
  writeVarint(to, end - to.at);
  writeVarint(to, field * 8 + 2);
}

function writeText(to: Writer, text: string): void {
  to.at -= Buffer.byteLength(text);
  to.bytes?.write(text, to.at);
}

function writeBytes(to: Writer, bytes: Uint8Array): void {
  to.at -= bytes.length;
  to.bytes?.set(bytes, to.at);
}

function writeNumbers(to: Writer, field: number, values: readonly number[]): void {
  for (let i = values.length - 1; i >= 0; i--) writeNumber(to, field, values[i]!);
}

function writeNumber(to: Writer, field: number, value: number): void {
  writeVarint(to, value);
  writeVarint(to, field * 8);
}

function writeFloat(to: Writer, field: number, value: number): void {
  to.at -= 4;
  to.bytes?.writeFloatLE(value, to.at);
  writeVarint(to, field * 8 + 5);
}

function writeVarint(to: Writer, value: number): void {
  // Nearly all numbers of a graph are small: field numbers and lengths.
  if (value >= 0 && value < 128) {
    to.at -= 1;
    if (to.bytes !== undefined) to.bytes[to.at] = value;
    return;
  }
  const bytes: number[] = [];
  // Negative numbers are written as 64-bit two's complement, as protobuf's int64 requires.
  let rest = BigInt.asUintN(64, BigInt(value));
  while (rest > 127n) {
    bytes.push(Number(rest & 127n) | 128);
    rest >>= 7n;
  }
  bytes.push(Number(rest));
  writeBytes(to, Uint8Array.from(bytes));
}
