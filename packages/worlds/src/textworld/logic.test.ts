import { EnvError } from "@pawl/core/envs/env.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { collectFacts, fact, parseLogic } from "./logic.js";
import { createTracker } from "./tracker.js";

const LOGIC = `
# a comment with "quotes" and {braces}
type thing { rules { look :: at(P, room) -> at(P, room); } inform7 { commands { look :: "look" :: "looking"; } } }
type fruit : thing { }
type P { }
type I { }
type room {
  predicates { behind(room, room') = before(room', room); before(room, room); }
  rules {
    go :: at(P, room) & $behind(room', room) -> at(P, room');
    take :: $at(P, room) & at(fruit, room) -> in(fruit, I);
    pair :: $at(P, room) & $at(x: fruit, room) & $at(y: fruit, room) -> paired(x, y);
  }
  constraints { c :: at(P, room) & at(P, room') -> fail(); }
  inform7 {
    type { kind :: "room"; }
    commands {
      go :: "go on" :: "going on";
      take :: "take {fruit}" :: "taking the {fruit}";
      pair :: "pair {x} with {y}" :: "pairing {x} with {y}";
    }
    code :: """ Understand "{this}" as; nothing. """;
  }
}`;

const entities = new Map([
  ["P", { type: "P", name: "P" }],
  ["I", { type: "I", name: "I" }],
  ["r_0", { type: "room", name: "hall" }],
  ["r_1", { type: "room", name: "attic" }],
  ["f_0", { type: "fruit", name: "plum" }],
  ["f_1", { type: "fruit", name: "fig" }],
]);
const start = collectFacts([
  fact("at", ["P", "r_0"]),
  fact("at", ["f_0", "r_0"]),
  fact("at", ["f_1", "r_0"]),
  fact("before", ["r_0", "r_1"]),
]);

describe("the tracker", () => {
  const tracker = createTracker(parseLogic("x.json", LOGIC), entities);

  it("lists what the facts allow, never with one entity twice", () => {
    expect(tracker.commands(start)).toEqual([
      "go on",
      "look",
      "pair fig with plum",
      "pair plum with fig",
      "take fig",
      "take plum",
    ]);
  });

  it("follows events, whatever their case, and ignores others", () => {
    const taken = tracker.apply(start, "Taking the FIG")!;
    expect(tracker.readable(taken)).toEqual([
      "at(P, hall)",
      "at(plum, hall)",
      "before(hall, attic)",
      "in(fig, I)",
    ]);
    expect(tracker.commands(taken)).toEqual(["go on", "look", "take plum"]);
    expect(tracker.apply(taken, "taking the fig")).toBeUndefined();
    const gone = tracker.apply(taken, "going on")!;
    expect(tracker.commands(gone)).toEqual(["look"]);
    expect(tracker.commands(start)).toContain("take fig");
  });

  it("shares the facts if an event changes none", () => {
    expect(tracker.apply(start, "looking")).toBe(start);
  });
});

describe("the logic language", () => {
  it.each([
    ["type t { rules { r :: a(t) b(t); } }", /line 1: expected ->, found "b"/],
    ["type t {\n rules { r ::", /at the end: expected a predicate, found nothing/],
    ["type t { @ }", /expected a name, a text in quotes or a sign, found "@ }"/],
    ["type t { predicates { a(t) = a(t); } rules { r :: a(t) -> a(t); } }", /stands for itself/],
    [
      'type t { rules { r :: a(t) -> a(t); } inform7 { commands { r :: "do {u}" :: "x"; } } }',
      /names u/,
    ],
  ])("says what is wrong with %j", (text, message) => {
    expect(() => parseLogic("x.json", text)).toThrow(message);
    expect(() => parseLogic("x.json", text)).toThrow(EnvError);
  });

  it("is parsed or refused, whatever the text", () => {
    const pieces = LOGIC.split(/(\s+|[{}();])/);
    const text = fc.oneof(
      fc.array(fc.constantFrom(...pieces), { maxLength: 60 }).map((list) => list.join("")),
      fc
        .tuple(fc.nat(LOGIC.length), fc.nat(LOGIC.length))
        .map(([a, b]) => LOGIC.slice(0, a) + LOGIC.slice(b)),
    );
    fc.assert(
      fc.property(text, (one) => {
        try {
          parseLogic("x.json", one);
        } catch (error) {
          expect(error).toBeInstanceOf(EnvError);
        }
      }),
    );
  });
});
