import { trainedSpecs } from "@pawl/models/weights/lora.js";
import { tensorSpecs, VALUE_HEAD } from "@pawl/models/weights/tensor-names.js";
import { expect, it } from "vitest";
import { flatTensors } from "./flat-tensors.js";
import { presetConfig } from "./init.js";

const config = { ...presetConfig("tiny", 20), qkvBias: true };
const shapes = new Map(tensorSpecs(config).map(({ name, shape }) => [name, shape]));
const beginOf = (array: Float32Array) => array.byteOffset / 4;

it("lays out the value head, then matrices, then vectors, without gaps", () => {
  const flat = flatTensors(trainedSpecs(config, true));
  const byPlace = [...flat.tensors].sort(([, a], [, b]) => beginOf(a) - beginOf(b));
  let end = 0;
  for (const [name, array] of byPlace) {
    const shape = shapes.get(name)!;
    expect([name, beginOf(array)]).toEqual([name, end]);
    expect(array.length).toBe(shape.reduce((product, size) => product * size, 1));
    expect(shape.length > 1).toBe(end < flat.matrixSize);
    end += array.length;
  }
  expect(end).toBe(flat.data.length);
  expect(byPlace[0]![0]).toBe(VALUE_HEAD);
  expect(flat.valueHeadSize).toBe(config.hiddenSize);
  expect([...flat.tensors.keys()]).toEqual([...shapes.keys()]);
});

it("views the given data, and rejects data of another size", () => {
  const { data, valueHeadSize } = flatTensors(trainedSpecs(config, false));
  const again = flatTensors(trainedSpecs(config, false), data.fill(7));
  expect(again.tensors.get("model.norm.weight")![0]).toBe(7);
  expect(valueHeadSize).toBe(0);
  expect(() => flatTensors(trainedSpecs(config, true), data)).toThrow(/numbers, but/);
});
