import { EnvError } from "@pawl/core/envs/env.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { callRequest, constructRequest, readAnswer, releaseRequest } from "./gateway-wire.js";

describe("requests", () => {
  it("are lines with a letter for each argument's type", () => {
    expect(callRequest({ id: "o0" }, "load", ["boil", 3, "", false])).toBe(
      "c\no0\nload\nsboil\ni3\ns\nbfalse\ne\n",
    );
    expect(callRequest("z:java.lang.System", "setOut", [{ id: "o1" }, null])).toBe(
      "c\nz:java.lang.System\nsetOut\nro1\nn\ne\n",
    );
    expect(constructRequest("java.io.PrintStream", ["/dev/null"])).toBe(
      "i\njava.io.PrintStream\ns/dev/null\ne\n",
    );
    expect(releaseRequest({ id: "o2" })).toBe("m\nd\no2\ne\n");
  });

  it("keep any text on its line, and answers give it back", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const lines = callRequest({ id: "o0" }, "step", [text]).split("\n");
        expect(lines).toHaveLength(6);
        expect(lines[3]).not.toContain("\r");
        expect(readAnswer(`!y${lines[3]}`)).toEqual({ value: text });
      }),
    );
  });
});

describe("answers", () => {
  it.each([
    ["!yv", undefined],
    ["!y", undefined],
    ["!yn", null],
    ["!ysa\\nb\\\\n\\r", "a\nb\\n\r"],
    ["!ybtrue", true],
    ["!yi-7", -7],
    ["!yd0.8333333333333333", 0.8333333333333333],
    ["!yd1.0E-5", 1e-5],
    ["!ydNaN", Number.NaN],
    ["!ylo12", { id: "o12" }],
    ["!yro3", { id: "o3" }],
  ])("%s", (line, value) => expect(readAnswer(line)).toEqual({ value }));

  it("say what was thrown", () => {
    expect(readAnswer("!xsno such method")).toEqual({ thrown: "no such method" });
    expect(readAnswer("!xro4")).toEqual({ thrown: { id: "o4" } });
  });

  it.each([
    "",
    "hello",
    "HTTP/1.1 400 Bad Request",
    "!",
    "!z",
    "!yq1",
    "!yi",
    "!yi1x",
    "!ybmaybe",
    "!yr",
    "!yro1 o2",
  ])("%j is none", (line) => expect(() => readAnswer(line)).toThrow(EnvError));

  it("never fail in another way", () => {
    const letters = fc.constantFrom(..."!yxsibdrlnvLo0123.eE-\\ ");
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.string({ unit: letters })), (line) => {
        try {
          readAnswer(line);
        } catch (error) {
          expect(error).toBeInstanceOf(EnvError);
        }
      }),
      { numRuns: 2000 },
    );
  });
});
