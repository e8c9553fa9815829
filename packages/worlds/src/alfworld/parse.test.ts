/** What the two parsers report about broken games, and that they never fail in any other way. */

import { dose } from "@pawl/core/dose-testing.js";
import { EnvError } from "@pawl/core/envs/env.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { shedDomain, shedGame, shedGrammar, shedProblem } from "./fixtures/shed.js";
import { parseGame, startPlay } from "./game.js";
import { parseGrammar } from "./grammar.js";
import { parseDomain, parseProblem } from "./pddl.js";

const FILE = "shed.tw-pddl";
const domain = (text: string) => () => parseDomain({ file: FILE, part: "pddl_domain", text });
const problem = (text: string) => () =>
  parseProblem({ file: FILE, part: "pddl_problem", text }, domain(shedDomain)());
const grammar = (text: string) => () => parseGrammar({ file: FILE, part: "grammar", text });

/** The text with one occurrence replaced, which must exist. */
function changed(text: string, from: string, to: string): string {
  expect(text).toContain(from);
  return text.replace(from, () => to);
}

/** The line on which a text first has a word. */
function lineOf(text: string, word: string): number {
  return text.slice(0, text.indexOf(word)).split("\n").length;
}

describe("a broken domain", () => {
  it.each([
    ["(:action walk", "(:derived walk", "unknown construct `:derived` in a domain"],
    ["(opened ?r)))", "(opened ?r ?r)))", "`opened` takes 1 arguments, found 2"],
    ["(not (opened ?r))", "(not (ajar ?r))", "unknown construct or predicate `ajar`"],
    [
      "(opened ?r))\n  (:action lift",
      "(opened ?z))\n  (:action lift",
      "variable `?z` is not declared",
    ],
    [":precondition (lit)", ":duration (lit)", "unknown construct `:duration` in action `sun`"],
    [
      ":precondition (lit)",
      ":precondition lit",
      "expected a condition in parentheses, found `lit`",
    ],
    ["(imply (openable ?r)", "(imply (lit) (openable ?r)", "`imply` takes 2 parts, found 3"],
    ["(when (lit) (not (lit)))", "(when (lit))", "`when` takes 2 parts, found 1"],
    ["(increase (total-cost) 1)", "(decrease (total-cost) 1)", "predicate `decrease`"],
    [
      ":parameters (?k - keeper ?s",
      ":parameters (k - keeper ?s",
      "a variable such as `?x`, found `k`",
    ],
    ["(dry ?s - seedling)", "(dry ?s - )", "expected a type after `-`, found nothing"],
    ["    (lit))", "    (lit) (lit))", "the predicate `lit` is declared twice"],
  ])("with %j replaced by %j is reported", (from, to, message) => {
    const text = changed(shedDomain, from, to);
    expect(domain(text)).toThrow(EnvError);
    expect(domain(text)).toThrow(`${FILE}: pddl_domain, line ${lineOf(text, to.trim())}: `);
    expect(domain(text)).toThrow(message);
  });

  it("that is cut off is reported with the list that is left open", () => {
    const text = shedDomain.slice(0, shedDomain.indexOf(":action lift"));
    expect(domain(text)).toThrow("the text ends inside the list that line");
    expect(domain("")).toThrow("expected an expression, found nothing");
    expect(domain("define")).toThrow("expected `(`, found the word `define`");
    expect(domain("(define (domain x))) ")).toThrow("`)` closes nothing");
    expect(domain("(define (problem x))")).toThrow("expected `(define (domain …) …)`");
  });
});

describe("a broken problem", () => {
  it.each([
    ["(dry Fern_bar_1)", "(dry Moss)", "`moss` is not among the problem's objects"],
    ["(dry Fern_bar_1)", "(soggy Fern_bar_1)", "unknown construct or predicate `soggy`"],
    ["(dry Fern_bar_1)", "(dry (Fern_bar_1))", "expected an object, found `(fern_bar_1)`"],
    ["Can_bar_1 - can", "Can_bar_1 - pail", "the type `pail` of `can_bar_1` is not declared"],
    ["(:goal (exists", "(:goal () (exists", "`:goal` takes 1 condition, found 2"],
    ["(:metric", "(:constraints", "unknown construct `:constraints` in a problem"],
  ])("with %j replaced by %j is reported", (from, to, message) => {
    const text = changed(shedProblem, from, to);
    const load = () => parseGame(FILE, shedGame({ pddl_problem: text }));
    expect(load).toThrow(EnvError);
    expect(load).toThrow(`${FILE}: pddl_problem, line ${lineOf(text, to)}: `);
    expect(load).toThrow(message);
  });

  it("without a goal is reported", () => {
    expect(problem("(define (problem p) (:domain shed))")).toThrow("expected a `(:goal …)`");
  });
});

describe("a broken grammar", () => {
  it.each([
    ["action sun {", "deed sun {", "expected `grammar` or `action`, found `deed`"],
    ['action sun { template :: "sun";', 'action sun { tempo :: "sun";', "a field of action `sun`"],
    ['action sun { template :: "sun";', "action sun {", "action `sun` has no `template`"],
    [
      'action rest { template :: "rest"',
      "action rest { template :: rest",
      'a text that starts with "',
    ],
    ["{k.name}!", "{k.colour}!", "unknown attribute `colour`"],
    ["{k.name}!", "{k.name!", "an expression is not closed by `}`"],
    ["{k.name}!", "#k.name!", "a symbol is not closed by `#`"],
    ["{k.name}!", "[{k.name}!", "a list is not closed by `}]`"],
    [
      "{k.name}!",
      "{k.name +}!",
      "expected `variable.attribute` or a text in quotes, found nothing",
    ],
    ["{k.name}!", "{k.name k.id}!", "expected `+`, `or` or the end, found `k.id`"],
    [
      '"condition": "lit()"',
      '"condition": "lit"',
      "expected `predicate(name:type, …)`, found `lit`",
    ],
    ['"rhs": "dark"', '"lhs": "dark"', 'symbol `lamp`: expected a rule with a text `"rhs"`'],
    ['"spare": [', '"spare": {[', "this is not valid JSON: "],
  ])("with %j replaced by %j is reported", (from, to, message) => {
    const text = changed(shedGrammar, from, to);
    expect(grammar(text)).toThrow(EnvError);
    expect(grammar(text)).toThrow(message);
    const named = Number(/grammar, line (\d+): /.exec(caught(grammar(text)))?.[1]);
    expect(Math.abs(named - lineOf(text, to))).toBeLessThanOrEqual(1);
  });

  it("that never ends is an error when it is expanded", () => {
    const endless = changed(shedGrammar, '"rhs": "dark"', '"rhs": "#lamp##lamp#"');
    const lit = changed(endless, '"lit()"', '"rested(k:keeper)"');
    const started = startPlay(parseGame(FILE, shedGame({ grammar: lit })));
    expect(() => started.step("switch")).toThrow("the symbol `lamp` expands without end");
  });

  it("without words for an action is an error when the action is offered", () => {
    const silent = changed(shedGrammar, "action switch", "action twitch");
    const started = startPlay(parseGame(FILE, shedGame({ grammar: silent })));
    expect(() => started.commands()).toThrow(`${FILE}: grammar: there is no \`action switch {`);
  });
});

function caught(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return (error as Error).message;
  }
  return "";
}

describe("a broken game file", () => {
  it("is reported with the line at which its JSON breaks", () => {
    const text = JSON.stringify(JSON.parse(shedGame()), undefined, 1);
    expect(() => parseGame(FILE, text.slice(0, -40))).toThrow(
      /^shed\.tw-pddl: game file, line \d+: this is not valid JSON/,
    );
    expect(() => parseGame(FILE, '{\n"grammar": oops}')).toThrow("game file, line 2");
    expect(() => parseGame(FILE, "[]")).toThrow("expected a JSON object with a game");
    expect(() => parseGame(FILE, "{}")).toThrow("expected a text `pddl_domain`");
  });

  it("that is marked as unsolvable is rejected", () => {
    expect(() => parseGame(FILE, shedGame({ solvable: false }))).toThrow("it cannot be solved");
  });
});

/** Cuts, duplicates, swaps and inserts tokens of the language into a text. */
function mutations(text: string, marks: readonly string[]): fc.Arbitrary<string> {
  const place = fc.nat(text.length);
  const edit = fc.record({ from: place, length: fc.nat(30), mark: fc.constantFrom(...marks, "") });
  return fc.array(edit, { minLength: 1, maxLength: 4 }).map((edits) =>
    edits.reduce((result, { from, length, mark }) => {
      const at = from % (result.length + 1);
      return result.slice(0, at) + mark + result.slice(at + length);
    }, text),
  );
}

/** Runs a parser on a text; anything but success or the expected error fails the test. */
function survives(run: () => unknown): void {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(EnvError);
    expect((error as Error).message).toMatch(/^fuzzed: /);
  }
}

const PDDL_MARKS = [
  "(",
  ")",
  "?x",
  "-",
  ";",
  "and",
  "not",
  "exists",
  "forall",
  "when",
  "\n",
  "é",
  "=",
  "()",
];
const GRAMMAR_MARKS = [
  "{",
  "}",
  "[",
  "]",
  "#",
  '"',
  '"""',
  "::",
  ";",
  "|",
  "&",
  "'",
  "\\",
  "\n",
  "or",
  "+",
  ":",
];
const RUNS = { numRuns: dose(400) };

describe("mutated games", () => {
  const plays = (text: string) => () => {
    const started = startPlay(parseGame("fuzzed", text));
    for (const command of started.commands().slice(0, 4)) started.clone().step(command);
  };
  it.each([
    ["domains", PDDL_MARKS, shedDomain, "pddl_domain"],
    ["problems", PDDL_MARKS, shedProblem, "pddl_problem"],
    ["grammars", GRAMMAR_MARKS, shedGrammar, "grammar"],
  ] as const)("%s give the expected error or play", (_, marks, text, part) => {
    fc.assert(
      fc.property(mutations(text, marks), (mutated) => {
        survives(plays(shedGame({ [part]: mutated })));
      }),
      RUNS,
    );
  });

  it("and any text at all gives the expected error or parses", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => {
        survives(() => parseDomain({ file: "fuzzed", part: "pddl_domain", text }));
        survives(() => parseGrammar({ file: "fuzzed", part: "grammar", text }));
        survives(() => parseGame("fuzzed", text));
      }),
      RUNS,
    );
  });

  it("and endless nesting is rejected", () => {
    const deep = "(".repeat(100_000);
    expect(domain(deep)).toThrow("nested more than 200 deep");
    expect(() => parseGame(FILE, "[".repeat(100_000))).toThrow("this is not valid JSON");
  });
});
