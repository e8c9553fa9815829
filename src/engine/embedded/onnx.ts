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

/** Numbers of the fields that we write, by message and name as in onnx.proto. */
const MODEL = { irVersion: 1, producerName: 2, graph: 7, opsetImport: 8 } as const;
const OPSET = { domain: 1, version: 2 } as const;
const GRAPH = { node: 1, name: 2, initializer: 5, input: 11, output: 12 } as const;
const NODE = { input: 1, output: 2, name: 3, opType: 4, attribute: 5, domain: 7 } as const;
const ATTRIBUTE = { name: 1, f: 2, i: 3, s: 4, g: 6, ints: 8, type: 20 } as const;
const ATTRIBUTE_TYPE = { float: 1, int: 2, string: 3, graph: 5, ints: 7 } as const;
const TENSOR = { dims: 1, dataType: 2, name: 8, rawData: 9 } as const;
const VALUE = { name: 1, type: 2 } as const;
const TYPE = { tensorType: 1 } as const;
const TENSOR_TYPE = { elemType: 1, shape: 2 } as const;
const SHAPE = { dim: 1 } as const;
const DIMENSION = { value: 1, param: 2 } as const;

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
  writePart(to, MODEL.graph, graph, writeGraph);
  writePart(to, MODEL.producerName, "pawl", writeText);
  writeNumber(to, MODEL.irVersion, irVersion);
}

function writeDomain(to: Writer, domain: string, version: number): void {
  const end = to.at;
  writeNumber(to, OPSET.version, version);
  writePart(to, OPSET.domain, domain, writeText);
  writeHead(to, MODEL.opsetImport, end);
}

function writeGraph(to: Writer, graph: OnnxGraph): void {
  writeParts(to, GRAPH.output, graph.outputs, writeValue);
  writeParts(to, GRAPH.input, graph.inputs, writeValue);
  writeParts(to, GRAPH.initializer, graph.constants, writeConstant);
  writePart(to, GRAPH.name, graph.name, writeText);
  writeParts(to, GRAPH.node, graph.nodes, writeNode);
}

function writeNode(to: Writer, node: OnnxNode): void {
  writePart(to, NODE.domain, node.domain, writeText);
  writeParts(to, NODE.attribute, Object.entries(node.attributes), writeAttribute);
  writePart(to, NODE.opType, node.op, writeText);
  // The first output is unique in its graph, so it also names the operator in profiles and errors.
  writePart(to, NODE.name, node.outputs[0] ?? node.op, writeText);
  writeParts(to, NODE.output, node.outputs, writeText);
  writeParts(to, NODE.input, node.inputs, writeText);
}

function writeAttribute(to: Writer, [name, value]: readonly [string, Attribute]): void {
  const [kind] = Object.keys(value) as [keyof typeof ATTRIBUTE_TYPE];
  writeNumber(to, ATTRIBUTE.type, ATTRIBUTE_TYPE[kind]);
  if ("float" in value) writeFloat(to, ATTRIBUTE.f, value.float);
  else if ("int" in value) writeNumber(to, ATTRIBUTE.i, value.int);
  else if ("string" in value) writePart(to, ATTRIBUTE.s, value.string, writeText);
  else if ("graph" in value) writePart(to, ATTRIBUTE.g, value.graph, writeGraph);
  else writeNumbers(to, ATTRIBUTE.ints, value.ints);
  writePart(to, ATTRIBUTE.name, name, writeText);
}

function writeConstant(to: Writer, constant: OnnxConstant): void {
  writePart(to, TENSOR.rawData, constant.data, writeBytes);
  writePart(to, TENSOR.name, constant.name, writeText);
  writeNumber(to, TENSOR.dataType, elementCodes[constant.type]);
  writeNumbers(to, TENSOR.dims, constant.shape);
}

function writeValue(to: Writer, value: OnnxValue): void {
  writePart(to, VALUE.type, value, writeType);
  writePart(to, VALUE.name, value.name, writeText);
}

function writeType(to: Writer, value: OnnxValue): void {
  const end = to.at;
  if (value.shape !== undefined) writePart(to, TENSOR_TYPE.shape, value.shape, writeShape);
  writeNumber(to, TENSOR_TYPE.elemType, elementCodes[value.type]);
  writeHead(to, TYPE.tensorType, end);
}

function writeShape(to: Writer, shape: readonly (number | string)[]): void {
  writeParts(to, SHAPE.dim, shape, (_, size) => {
    if (typeof size === "number") writeNumber(to, DIMENSION.value, size);
    else writePart(to, DIMENSION.param, size, writeText);
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
