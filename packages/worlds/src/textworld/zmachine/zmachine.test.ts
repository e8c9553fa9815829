import { dose } from "@pawl/core/dose-testing.js";
import { EnvError } from "@pawl/core/envs/env.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Line, PARSE, ROUTINE, storyOf, TEXT, v } from "../fixtures/assemble.js";
import { createPlayer } from "./compiled.js";
import { feedLine, startStory } from "./interpreter.js";
import { createMachine, type Machine, restoreSnapshot, takeSnapshot } from "./machine.js";
import { readStory } from "./story.js";
import { decodeText, encodeWord } from "./text.js";

const CALLS = 120;

/** Reads lines for ever; after each, calls the routine often and prints the sum of its results. */
const main: readonly Line[] = [
  "line",
  { op: "aread", operands: [TEXT, PARSE], store: 20 },
  { op: "store", operands: [21, CALLS] },
  "again",
  { op: "call_vs", operands: [ROUTINE, v(21), v(22), 7], store: 23 },
  { op: "add", operands: [v(22), v(23)], store: 22 },
  { op: "dec_chk", operands: [21, 1], branch: { to: "again", unless: true } },
  { op: "print_num", operands: [v(22)] },
  { op: "jump", jump: "line" },
];

function started(image: Uint8Array, limit?: number): Machine {
  const machine = createMachine(readStory("test.z8", image), limit);
  startStory(machine);
  return machine;
}

/** What a story prints in a few turns, interpreted or with compiled routines. */
function outputs(image: Uint8Array, compiled: boolean, limit?: number): readonly string[] {
  const machine = started(image, limit);
  const player = createPlayer(machine, 0);
  let snapshot = takeSnapshot(machine);
  return [1, 2, 3].map(() => {
    try {
      if (compiled) player.turn(snapshot, [65]);
      else {
        restoreSnapshot(machine, snapshot);
        feedLine(machine, [65]);
      }
    } catch (error) {
      if (!(error instanceof EnvError)) throw error;
      return error.message;
    }
    const { transcript } = machine;
    snapshot = takeSnapshot(machine);
    return transcript;
  });
}

const local = fc.integer({ min: 1, max: 4 });
const operand = fc.oneof(
  fc.integer({ min: 0, max: 9 }),
  fc.constantFrom(0x7fff, 0x8000, 0xffff, 300),
  local.map(v),
  fc.integer({ min: 24, max: 26 }).map(v),
);
const target = fc.oneof(local, fc.integer({ min: 24, max: 26 }));
/** Forwards by some parts; only counted loops go back, so that programs end. */
const label = fc.integer({ min: 1, max: 4 }).map((parts) => `+${parts}`);
const COUNTER = 5;
const branch = fc.record({
  to: fc.oneof(label, fc.constantFrom(0 as const, 1 as const)),
  unless: fc.boolean(),
});

/** One or two instructions that leave the stack as it was. */
const lines: fc.Arbitrary<readonly Line[]> = fc.oneof(
  fc
    .record({
      op: fc.constantFrom("add", "sub", "mul"),
      operands: fc.tuple(operand, operand),
      store: target,
    })
    .map((one) => [one]),
  fc
    .record({
      op: fc.constantFrom("or", "and", "loadw", "loadb", "add", "sub", "mul"),
      operands: fc.tuple(operand, operand),
      store: target,
    })
    .map((one) => [one]),
  fc
    .record({
      op: fc.constantFrom("je", "jl", "jg", "test"),
      operands: fc.tuple(operand, operand),
      branch,
    })
    .map((one) => [one]),
  fc
    .record({
      op: fc.constantFrom("dec_chk", "inc_chk"),
      operands: fc.tuple(target, operand),
      branch,
    })
    .map((one) => [one]),
  fc.record({ op: fc.constantFrom("inc", "dec"), operands: fc.tuple(target) }).map((one) => [one]),
  fc.record({ op: fc.constant("jz"), operands: fc.tuple(operand), branch }).map((one) => [one]),
  fc
    .record({
      op: fc.constantFrom("set_attr", "clear_attr", "insert_obj"),
      operands: fc.tuple(fc.constantFrom(1, 2), fc.constantFrom(1, 2)),
    })
    .map((one) => [one]),
  fc
    .record({
      op: fc.constantFrom("storew", "storeb"),
      operands: fc.tuple(fc.constant(TEXT), fc.integer({ min: 2, max: 20 }), operand),
    })
    .map((one) => [one]),
  label.map((jump) => [{ op: "jump", jump }]),
  fc
    .integer({ min: 1, max: 6 })
    .map((parts) => [
      { op: "dec_chk", operands: [COUNTER, 1], branch: { to: `-${parts}`, unless: true } },
    ]),
  fc
    .record({
      op: fc.constantFrom("get_prop", "get_prop_addr"),
      operands: fc.tuple(fc.constantFrom(1, 2), fc.constantFrom(4, 5)),
      store: target,
    })
    .map((one) => [one]),
  fc.tuple(operand, operand, target).map(([a, b, to]) => [
    { op: "add", operands: [a, b], store: 0 },
    { op: "store", operands: [to, v(0)] },
  ]),
  fc.tuple(operand, target).map(([a, to]) => [
    { op: "push", operands: [a] },
    { op: "pull", operands: [to] },
  ]),
  operand.map((one) => [{ op: "print_char", operands: [one] }]),
);

describe("compiled routines", () => {
  it("print what the interpreter prints, whatever the program", () => {
    fc.assert(
      fc.property(fc.array(lines, { minLength: 8, maxLength: 24 }), (parts) => {
        const at = (index: number): string => `L${Math.max(0, Math.min(parts.length, index))}`;
        const placed = (line: Line, index: number): Line => {
          if (typeof line === "string") return line;
          const { jump, branch: way } = line;
          if (jump !== undefined) return { ...line, jump: at(index + Number(jump)) };
          if (way === undefined || typeof way.to === "number") return line;
          return { ...line, branch: { ...way, to: at(index + Number(way.to)) } };
        };
        const body = parts.flatMap((part, index) => [
          `L${index}`,
          ...part.map((line) => placed(line, index)),
        ]);
        const image = storyOf(
          main,
          [
            { op: "store", operands: [COUNTER, 6] },
            ...body,
            `L${parts.length}`,
            // Whatever was computed shows in the result.
            ...[2, 3, 4, 24, 25, 26].map((from) => ({
              op: "add",
              operands: [v(1), v(from)],
              store: 1,
            })),
            { op: "ret", operands: [v(1)] },
          ],
          COUNTER,
        );
        const expected = outputs(image, false);
        expect(outputs(image, true)).toEqual(expected);
        // Programs that only fail would say nothing.
        expect(expected[2]).toMatch(/-?\d+$/);
      }),
      { numRuns: dose(100) },
    );
  });

  it("run loops that are entered in the middle", () => {
    const image = storyOf(main, [
      { op: "store", operands: [2, 5] },
      { op: "jump", jump: "test" },
      "next",
      { op: "add", operands: [v(1), v(2)], store: 1 },
      { op: "dec", operands: [2] },
      "test",
      { op: "jg", operands: [v(2), 0], branch: { to: "next" } },
      { op: "ret", operands: [v(1)] },
    ]);
    const sum = (CALLS * (CALLS + 1)) / 2 + CALLS * 15;
    expect(outputs(image, true)[0]).toBe(`\n${sum}`);
    expect(outputs(image, true)).toEqual(outputs(image, false));
  });
});

describe("a story that is wrong", () => {
  const image = storyOf(main, [{ op: "ret", operands: [1] }]);

  it.each([
    ["no header", image.slice(0, 40), /40 bytes, and a header takes 64/],
    [
      "another version",
      Uint8Array.from(image, (byte, at) => (at === 0 ? 5 : byte)),
      /version 5, expected 8/,
    ],
    [
      "a file that is cut",
      image.slice(0, 0x5000),
      /cut: its header promises 69632 bytes, it has 20480/,
    ],
    [
      "globals outside memory",
      Uint8Array.from(image, (byte, at) => (at === 0x0c ? 0xff : byte)),
      /global variables at/,
    ],
  ])("is refused with %s", (_, bytes, message) => {
    expect(() => readStory("x.z8", bytes)).toThrow(message);
  });

  it.each<[string, readonly Line[], RegExp]>([
    ["an endless loop", ["top", { op: "jump", jump: "top" }], /more than 10,000 instructions/],
    [
      "a routine that calls itself",
      [{ op: "call_vs", operands: [ROUTINE], store: 1 }],
      /call each other without end|more than 10,000/,
    ],
    [
      "a call outside memory",
      [{ op: "call_vs", operands: [0xfff0], store: 1 }],
      /outside the memory for programs/,
    ],
    [
      "a call into data",
      [{ op: "call_vs", operands: [1], store: 1 }],
      /outside the memory for programs/,
    ],
    ["a write into the program", [{ op: "storeb", operands: [0x800, 0, 1] }], /never changes/],
    ["an object that is not there", [{ op: "set_attr", operands: [9999, 1] }], /no object 9999/],
    ["a division by zero", [{ op: "div", operands: [1, 0], store: 1 }], /division by zero/],
    ["an empty stack", [{ op: "ret", operands: [v(0)] }], /empty stack/],
    [
      "a local variable that is not there",
      [
        { op: "add", operands: [v(9), 1], store: 9 },
        { op: "ret", operands: [v(9)] },
      ],
      /a routine of 4 local variables names number 9/,
    ],
    ["a wait for a key", [{ op: "read_char", operands: [1], store: 1 }], /single key/],
    ["an instruction that is not there", [{ op: 127 }], /there is no instruction 127/],
    ["a quit", [{ op: "quit" }], /told to quit/],
  ])("breaks the episode with %s", (_, routine, message) => {
    for (const compiled of [false, true])
      expect(outputs(storyOf(main, routine), compiled, 10_000)[0]).toMatch(message);
  });

  it("is an error or plays, whatever its bytes are", () => {
    const bytes = fc.array(
      fc.tuple(fc.integer({ min: 0, max: 0x860 }), fc.integer({ min: 0, max: 255 })),
      { minLength: 1, maxLength: 12 },
    );
    fc.assert(
      fc.property(bytes, (changes) => {
        const damaged = image.slice();
        for (const [at, byte] of changes) damaged[at] = byte;
        try {
          outputs(damaged, true, 20_000);
        } catch (error) {
          expect(error).toBeInstanceOf(EnvError);
        }
      }),
      { numRuns: dose(300) },
    );
  });
});

it("copies of a state are independent", () => {
  const machine = started(storyOf(main, [{ op: "ret", operands: [v(1)] }]));
  const start = takeSnapshot(machine);
  feedLine(machine, [65]);
  const first = machine.transcript;
  const later = takeSnapshot(machine);
  feedLine(machine, [65]);
  restoreSnapshot(machine, start);
  feedLine(machine, [65]);
  expect(machine.transcript).toBe(first);
  restoreSnapshot(machine, later);
  feedLine(machine, [65]);
  expect(machine.transcript).not.toBe(first);
});

it("encodes words as it decodes them, nine characters of each", () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z0-9.,!?]{1,4}$/), (word) => {
      const image = storyOf(main);
      image.set(encodeWord([...word].map((letter) => letter.charCodeAt(0))), 0x5000);
      expect(decodeText(readStory("x.z8", image), image, 0x5000).text).toBe(word);
    }),
  );
});
