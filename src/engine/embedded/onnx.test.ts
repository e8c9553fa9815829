import { expect, it } from "vitest";
import { encodeModel, type OnnxGraph } from "./onnx.js";

const graph: OnnxGraph = {
  name: "g",
  nodes: [
    {
      op: "Op",
      domain: "",
      inputs: ["x", ""],
      outputs: ["y"],
      attributes: { axes: { ints: [-1, 300] }, scale: { float: 0.5 }, mode: { string: "é" } },
    },
  ],
  inputs: [{ name: "x", type: "float32", shape: ["n", 200] }],
  outputs: [{ name: "y", type: "bool", shape: undefined }],
  constants: [{ name: "c", type: "int32", shape: [1], data: Uint8Array.of(1, 2, 3, 4) }],
};

/** The fields of a message: its numbers, and its parts as bytes. */
function fieldsOf(bytes: Uint8Array): (readonly [field: number, value: bigint | Buffer])[] {
  const fields: (readonly [number, bigint | Buffer])[] = [];
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++]!;
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return BigInt.asIntN(64, value);
    }
  };
  while (at < bytes.length) {
    const head = Number(varint());
    if (head % 8 === 0) fields.push([head >> 3, varint()]);
    else {
      const length = head % 8 === 5 ? 4 : Number(varint());
      fields.push([head >> 3, Buffer.from(bytes.subarray(at, at + length))]);
      at += length;
    }
  }
  return fields;
}
const partsOf = (bytes: Uint8Array, field: number): readonly Buffer[] =>
  fieldsOf(bytes).flatMap(([found, value]) => (found === field ? [value as Buffer] : []));
const textOf = (bytes: Uint8Array, field: number) => partsOf(bytes, field).map(String);

it("writes what protobuf reads: texts, negative and large numbers, floats, shapes and bytes", () => {
  const [written] = partsOf(encodeModel(graph), 7);
  const [node] = partsOf(written!, 1);
  expect([1, 2, 3, 4, 7].map((field) => textOf(node!, field))).toEqual([
    ["x", ""],
    ["y"],
    ["y"],
    ["Op"],
    [""],
  ]);
  const [axes, scale, mode] = partsOf(node!, 5);
  expect(fieldsOf(axes!)).toEqual([
    [1, Buffer.from("axes")],
    [8, -1n],
    [8, 300n],
    [20, 7n],
  ]);
  expect(partsOf(scale!, 2)[0]!.readFloatLE()).toBe(0.5);
  expect(textOf(mode!, 4)).toEqual(["é"]);
  const type = (field: number) => partsOf(partsOf(partsOf(written!, field)[0]!, 2)[0]!, 1)[0]!;
  const dimensions = partsOf(partsOf(type(11), 2)[0]!, 1);
  expect(dimensions.map(fieldsOf)).toEqual([[[2, Buffer.from("n")]], [[1, 200n]]]);
  expect(fieldsOf(type(12))).toEqual([[1, 9n]]);
  expect(fieldsOf(partsOf(written!, 5)[0]!)).toEqual([
    [1, 1n],
    [2, 6n],
    [8, Buffer.from("c")],
    [9, Buffer.of(1, 2, 3, 4)],
  ]);
});
