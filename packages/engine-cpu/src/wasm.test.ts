import { createRandom } from "@pawl/core/random.js";
import { describe, expect, it } from "vitest";
import { randomFloats } from "./graph-testing.js";
import { add, compileLoop, div, mul, sqrt, sub } from "./wasm.js";

describe("a loop in WebAssembly", () => {
  const loop = compileLoop({
    arrays: ["x", "y"],
    scalars: ["a", "b"],
    body: (array, scalar, later) => {
      const root = later(sqrt(mul(array("x"), array("x"))));
      return [["x", sub(add(root, scalar("a")), div(root, scalar("b")))]];
    },
  });

  it.each([0, 1, 3, 4, 5, 2047, 2048, 2049, 5000])("computes %i numbers", (length) => {
    const f = Math.fround;
    const noise = createRandom(length).next;
    const [x, y] = [randomFloats([length], noise), randomFloats([length], noise)];
    const [changed, read] = [x.slice(), y.slice()];
    loop({ x: changed, y: read }, { a: 0.1, b: 3 });
    const expected = x.map((value) => {
      const root = f(Math.sqrt(f(value * value)));
      return f(f(root + f(0.1)) - f(root / 3));
    });
    expect(changed).toEqual(expected);
    expect(read).toEqual(y);
  });

  it("changes only the part of an array that it was given", () => {
    const x = Float32Array.of(1, 2, 3, 4, 5, 6, 7);
    const part = x.subarray(2, 5);
    loop({ x: part, y: new Float32Array(3) }, { a: 10, b: 1 });
    expect([...x]).toEqual([1, 2, 10, 10, 10, 6, 7]);
  });
});
