import { dose } from "@pawl/core/dose-testing.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { shedDomain, shedGame, shedProblem } from "./fixtures/shed.js";
import { NOTHING_HAPPENS, type Play, parseGame, startPlay } from "./game.js";
import { chooseAll, holds, type View } from "./solve.js";
import { applicableActions, type State } from "./state.js";
import type { World } from "./world.js";

function play(...commands: readonly string[]): Play {
  const started = startPlay(parseGame("shed", shedGame()));
  for (const command of commands) expect(started.step(command).action, command).toBeDefined();
  return started;
}

const SOLUTION = [
  ...["walk to crate 2", "open crate 2", "lift can 1 from crate 2", "walk to table 1"],
  ...["water fern 2", "drop can 1 at table 1", "lift fern 2 from table 1", "walk to crate 1"],
  ...["drop fern 2 at crate 1", "walk to table 1", "lift fern 1 from table 1"],
  ...["walk to crate 1", "drop fern 1 at crate 1"],
];

describe("a game in play", () => {
  it("opens with banner, surroundings and task", () => {
    const { game } = play();
    expect(game.opening).toBe(
      "*** SHED ***\n\nThere is a crate 2 ahead.\n\nBefore dark: shut the watered ferns in a crate.",
    );
    expect(game.surroundings).toBe("There is a crate 2 ahead.");
    expect(game.task).toBe("Before dark: shut the watered ferns in a crate.");
  });

  it("offers every action that changes something, sorted", () => {
    expect(play().commands()).toEqual([
      ...["inspect fern 1", "inspect fern 2", "lift fern 1 from table 1"],
      ...["lift fern 2 from table 1", "switch", "walk to crate 1", "walk to crate 2"],
    ]);
  });

  it("answers with the first rule whose condition has an answer", () => {
    expect(play().step("walk to crate 1").text).toBe("You walk to crate 1. Nothing grows here.");
    const carrying = play("lift fern 1 from table 1", "walk to crate 1");
    expect(carrying.step("drop fern 1 at crate 1").text).toBe("You drop it. Inside: a fern 1.");
    expect(carrying.step("walk to table 1").text).toBe("You walk to table 1. fern 2 grow here.");
  });

  it("joins lists with the grammar's separators", () => {
    const away = play("walk to crate 1");
    expect(away.step("walk to table 1").text).toBe(
      "You walk to table 1. fern 2, and fern 1 grow here.",
    );
    // What an action binds stays bound in the queries of its response.
    const back = play("lift fern 2 from table 1");
    expect(back.step("drop fern 2 at table 1").text).toBe("You drop it. On it: a fern 2.");
    expect(play("walk to crate 2").step("open crate 2").text).toBe("Inside: no seedling.");
  });

  it("accepts commands with white space around them and nothing else", () => {
    const started = play();
    for (const command of ["", "walk", "walk to table 1", "open crate 2", "WALK TO CRATE 1"])
      expect(started.step(command)).toEqual({ text: NOTHING_HAPPENS, action: undefined });
    expect(started.step("  walk to crate 1\n").action?.schema.name).toBe("walk");
  });

  it("adds negated facts and all conditional effects to the view", () => {
    expect(
      play("walk to crate 2", "open crate 2", "lift can 1 from crate 2", "walk to table 1").step(
        "water fern 2",
      ).text,
    ).toBe("The fern 2 is wet now.");
    const lamp = play();
    expect(lamp.step("switch").text).toBe("Click: the view says lit.");
    expect(lamp.commands()).toContain("sun");
    // The true state is dark again; the view gets both effects.
    expect(lamp.step("switch").text).toBe("Click: the view says lit.");
    expect(lamp.commands()).not.toContain("sun");
  });

  it("applies quantified effects and conditions", () => {
    const soaked = play(...SOLUTION.slice(0, 5));
    expect(soaked.commands()).toContain("rest");
    soaked.step("switch");
    soaked.step("sun");
    expect(soaked.commands()).not.toContain("rest");
  });

  it("is won when the goal holds, and not before", () => {
    const before = play(...SOLUTION.slice(0, -1));
    expect(before.won).toBe(false);
    before.step(SOLUTION.at(-1)!);
    expect(before.won).toBe(true);
  });

  it("continues independently after a copy", () => {
    const first = play("walk to crate 2");
    const second = first.clone();
    first.step("open crate 2");
    expect(second.commands()).toContain("open crate 2");
    expect(first.commands()).not.toContain("open crate 2");
    expect(second.step("open crate 2").text).toBe("Inside: no seedling.");
    expect(second.commands()).toEqual(first.commands());
  });
});

/** All groundings of all schemas, each tested on its own: what the engine must never need. */
function bruteForce(world: World, state: State): readonly string[] {
  const view: View = { setting: world, facts: state.facts, optimistic: false };
  return world.schemas.flatMap((schema) => {
    const bindings = new Int32Array(schema.slots);
    const precondition = schema.precondition();
    const found: string[] = [];
    chooseAll(schema.choices, 0, bindings, () => {
      const values = [...bindings.slice(0, schema.parameters.length)];
      const idle = schema.name === "walk" && values[1] === values[2];
      if (holds(view, precondition, bindings) && !idle) found.push(`${schema.name} ${values}`);
      return false;
    });
    return found.sort();
  });
}

function offered(world: World, state: State): readonly string[] {
  return applicableActions(world, state).flatMap((actions) =>
    actions.map(({ schema, arguments: values }) => `${schema.name} ${values}`).sort(),
  );
}

describe("applicable actions", () => {
  it("are those that a test of every grounding finds, along any walk", () => {
    const game = parseGame("shed", shedGame());
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 40 }), (choices) => {
        const walk = startPlay(game);
        for (const choice of choices) {
          const commands = walk.commands();
          walk.step(commands[choice % commands.length]!);
          expect(offered(game.world, walk.state)).toEqual(bruteForce(game.world, walk.state));
        }
      }),
      { numRuns: dose(60) },
    );
  });

  it("follow the definitions, including a type without objects", () => {
    const typo = shedDomain.replace("(exists (?r - receptacle)\n", "(exists (?r - receptacle,)\n");
    const started = startPlay(parseGame("shed", shedGame({ pddl_domain: typo })));
    expect(started.commands()).not.toContain("inspect fern 1");
    started.step("lift fern 1 from table 1");
    expect(started.commands()).toContain("inspect fern 1");
  });

  it("leave out what changes nothing", () => {
    const idle = shedDomain.replace(":effect (seen ?t)", ":effect ()");
    const started = startPlay(parseGame("shed", shedGame({ pddl_domain: idle })));
    expect(started.commands().filter((command) => command.startsWith("inspect"))).toEqual([]);
  });

  it("may use constants of the domain that a problem lacks", () => {
    const domain = shedDomain.replace(
      "(and (near ?k ?r) (openable ?r)",
      "(and (near ?k ?r) (openable ?r) (or (near ?k ?r) (near ?k gate))",
    );
    const started = startPlay(parseGame("shed", shedGame({ pddl_domain: domain })));
    started.step("walk to crate 2");
    expect(started.commands()).toContain("open crate 2");
  });
});

describe("the goal", () => {
  it.each([
    ["(and)", true],
    ["(or)", false],
    ["(near anna table_bar_1)", true],
    ["(not (near anna table_bar_1))", false],
    ["(near anna nowhere)", false],
    ["(= anna anna)", true],
    ["(exists (?s - seedling) (and (dry ?s) (not (= ?s fern_bar_2))))", true],
    ["(forall (?s - seedling) (dry ?s))", false],
    ["(not (forall (?s - seedling) (dry ?s)))", true],
    ["(exists (?a - thing ?b - thing) (and (not (= ?a ?b)) (dry ?a) (dry ?b)))", false],
    ["(imply (lit) (near anna crate_bar_1))", true],
    ["(exists (?g - ghost) (and))", false],
    ["(forall (?g - ghost) (or))", true],
    ["(exists (?x - object) (near ?x table_bar_1))", true],
  ])("%s is %s at the start", (goal, reached) => {
    const from = shedProblem.indexOf("(:goal");
    const problem = `${shedProblem.slice(0, from)}(:goal ${goal}))`;
    expect(startPlay(parseGame("shed", shedGame({ pddl_problem: problem }))).won).toBe(reached);
  });
});
