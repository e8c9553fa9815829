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
  readonly shape?: readonly (number | string)[];
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

const elementCodes: Readonly<Record<ElementType, number>> = {
  float32: 1,
  int32: 6,
  int64: 7,
  bool: 9,
};

const opset = 21;
const irVersion = 9;

/**
 * Encoded bytes in chunks, joined once at the end: weights stored in a model are copied only then.
 */
type Bytes = readonly Uint8Array[];

/** Encodes a graph as the bytes of an ONNX model file. */
export function encodeModel(graph: OnnxGraph): Uint8Array {
  const domains: readonly [string, number][] = [
    ["", opset],
    ["com.microsoft", 1],
  ];
  return Buffer.concat([
    ...varintField(1, irVersion),
    ...bytesField(2, text("pawl")),
    ...bytesField(7, encodeGraph(graph)),
    ...domains.flatMap(([domain, version]) =>
      bytesField(8, [...bytesField(1, text(domain)), ...varintField(2, version)]),
    ),
  ]);
}

function encodeGraph(graph: OnnxGraph): Bytes {
  return [
    ...graph.nodes.flatMap((node) => bytesField(1, encodeNode(node))),
    ...bytesField(2, text(graph.name)),
    ...graph.constants.flatMap((constant) => bytesField(5, encodeConstant(constant))),
    ...graph.inputs.flatMap((value) => bytesField(11, encodeValue(value))),
    ...graph.outputs.flatMap((value) => bytesField(12, encodeValue(value))),
  ];
}

function encodeNode(node: OnnxNode): Bytes {
  return [
    ...node.inputs.flatMap((name) => bytesField(1, text(name))),
    ...node.outputs.flatMap((name) => bytesField(2, text(name))),
    // The first output is unique in its graph, so it also names the operator in profiles and
    // errors.
    ...bytesField(3, text(node.outputs[0] ?? node.op)),
    ...bytesField(4, text(node.op)),
    ...Object.entries(node.attributes).flatMap(([name, value]) =>
      bytesField(5, [...bytesField(1, text(name)), ...encodeAttribute(value)]),
    ),
    ...bytesField(7, text(node.domain)),
  ];
}

function encodeAttribute(value: Attribute): Bytes {
  if ("float" in value) return [...floatField(2, value.float), ...varintField(20, 1)];
  if ("int" in value) return [...varintField(3, value.int), ...varintField(20, 2)];
  if ("string" in value) return [...bytesField(4, text(value.string)), ...varintField(20, 3)];
  if ("graph" in value) return [...bytesField(6, encodeGraph(value.graph)), ...varintField(20, 5)];
  return [...value.ints.flatMap((int) => varintField(8, int)), ...varintField(20, 7)];
}

function encodeConstant(constant: OnnxConstant): Bytes {
  return [
    ...constant.shape.flatMap((size) => varintField(1, size)),
    ...varintField(2, elementCodes[constant.type]),
    ...bytesField(8, text(constant.name)),
    ...bytesField(9, [constant.data]),
  ];
}

function encodeValue(value: OnnxValue): Bytes {
  const dimensions = value.shape?.flatMap((size) =>
    bytesField(1, typeof size === "number" ? varintField(1, size) : bytesField(2, text(size))),
  );
  const tensor = [
    ...varintField(1, elementCodes[value.type]),
    ...(dimensions === undefined ? [] : bytesField(2, dimensions)),
  ];
  return [...bytesField(1, text(value.name)), ...bytesField(2, bytesField(1, tensor))];
}

function text(value: string): Bytes {
  return [Buffer.from(value, "utf8")];
}

function bytesField(field: number, bytes: Bytes): Bytes {
  const length = bytes.reduce((sum, piece) => sum + piece.length, 0);
  return [varint(field * 8 + 2), varint(length), ...bytes];
}

function varintField(field: number, value: number): Bytes {
  return [varint(field * 8), varint(value)];
}

function floatField(field: number, value: number): Bytes {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return [varint(field * 8 + 5), bytes];
}

/** Nearly all numbers of a graph are small: field numbers and lengths. */
const SMALL = Array.from({ length: 128 }, (_, value) => Uint8Array.of(value));

function varint(value: number): Uint8Array {
  const small = SMALL[value];
  if (small !== undefined) return small;
  const bytes: number[] = [];
  // Negative numbers are written as 64-bit two's complement, as protobuf's int64 requires.
  let rest = BigInt.asUintN(64, BigInt(value));
  while (rest > 127n) {
    bytes.push(Number(rest & 127n) | 128);
    rest >>= 7n;
  }
  bytes.push(Number(rest));
  return Uint8Array.from(bytes);
}
