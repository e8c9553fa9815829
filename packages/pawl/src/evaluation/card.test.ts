import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { createTally } from "@pawl/core/rollout/tally.js";
import { describe, expect, it } from "vitest";
import { type Card, collectOutcomes, makeCard } from "./card.js";
import { readCard, writeCard } from "./card-markdown.js";
import { compareCards } from "./compare.js";
import { taskListOf } from "./task-list.js";

const tasksOf = (count: number) =>
  Array.from({ length: count }, (_, at) => ({
    id: `valid_seen/${at}`,
    split: "valid_seen",
    type: at % 2 === 0 ? "pick" : "heat",
  }));

/** A card of an evaluation with these outcomes: by task, then by attempt; undefined is broken. */
function cardOf(
  outcomes: readonly (readonly (boolean | undefined)[])[],
  protocol: Record<string, unknown> = { temperature: 0 },
  goal = "Do it.",
): Card {
  const tasks = tasksOf(outcomes.length);
  const tally = createTally();
  const collected = collectOutcomes();
  for (const [group, attempts] of outcomes.entries())
    for (const [attempt, success] of attempts.entries()) {
      const episode: Episode = {
        ...{ task: tasks[group]!, group, attempt, seed: 0, policy: "p", goal },
        ...{ firstObservation: "", steps: [], return: success ? 10 : 0, success: success === true },
        stop: success === undefined ? "broken" : "done",
      };
      tally.add(episode);
      collected.add(episode);
    }
  const list = taskListOf({ name: "household" }, "valid_seen", tasks);
  const facts = { list, environment: "household", split: "valid_seen", player: "p" };
  return makeCard(
    { ...facts, protocol, command: "pawl eval" },
    tally,
    collected.outcomes([...tasks].reverse()),
  );
}

const many = (count: number, success: boolean) => Array.from({ length: count }, () => [success]);

it("has what was known of candidates, with a drawing beside it", () => {
  const bins = [{ from: 0.9, candidates: 2, predicted: 0.95, happened: 0.5 }];
  const known = { candidates: 2, refused: 0.5, recall: 1, falseAlarms: 1 };
  const knowledge = { ...known, brier: 0.4, brierOfShare: 0.25, bins, exact: 0.5, answers: bins };
  const card = { ...cardOf(many(1, true)), choosing: { beta: 1, steps: 3, knowledge } };
  const folder = mkdtempSync(join(tmpdir(), "pawl-card-"));
  writeCard(folder, card);
  expect(readCard(folder)).toEqual(card);
  const text = readFileSync(join(folder, "card.md"), "utf8");
  expect(text).toContain("Of 2 candidates 50.0 % would have been refused");
  expect(text).toContain("| 90.0 – 100.0 % | 2 | 95.0 % | 50.0 % |");
  expect(readFileSync(join(folder, "reliability.svg"), "utf8").match(/<polyline/g)).toHaveLength(2);
  const bare = mkdtempSync(join(tmpdir(), "pawl-card-"));
  writeCard(bare, cardOf(many(1, true)));
  expect(existsSync(join(bare, "reliability.svg"))).toBe(false);
});

describe("task lists", () => {
  const tasks = tasksOf(4);
  const household = { name: "household", rooms: 2 };

  it("are named by environment, options that matter, split and length", () => {
    expect(taskListOf(household, "valid_seen", tasks).name).toBe("household/valid_seen");
    expect(
      taskListOf({ ...household, rooms: 3 }, "valid_seen", tasks.slice(0, 2), { whole: 4 }).name,
    ).toBe("household(rooms=3)/valid_seen:2");
    const some = { whole: 4, shuffle: true };
    expect(taskListOf(household, "valid_seen", tasks.slice(0, 2), some).name).toBe(
      "household/valid_seen:2-shuffled",
    );
    expect(taskListOf(household, "valid_seen", tasks, some).name).toBe("household/valid_seen");
  });

  it("have another hash if a task, the order, an option or the environment differs", () => {
    const hashes = [
      taskListOf(household, "valid_seen", tasks),
      taskListOf(household, "valid_seen", tasks.slice(0, 3)),
      taskListOf(household, "valid_seen", [...tasks].reverse()),
      taskListOf(household, "valid_seen", [{ ...tasks[0]!, type: "cool" }, ...tasks.slice(1)]),
      taskListOf({ ...household, seed: 1 }, "valid_seen", tasks),
      taskListOf({ name: "desk" }, "valid_seen", tasks),
    ].map(({ sha256 }) => sha256);
    expect(new Set(hashes).size).toBe(hashes.length);
  });

  it("have the same hash wherever the data lies and whatever the limits are", () => {
    const here = taskListOf({ name: "alfworld", data: "/here/games" }, "train", tasks);
    const there = taskListOf(
      { name: "alfworld", data: "/there", limits: { stepSeconds: 5 } },
      "train",
      tasks,
    );
    expect(there).toEqual(here);
    expect(here.name).toBe("alfworld/train");
  });

  it("do not depend on the order in which a task's fields were written", () => {
    const turned = tasks.map(({ id, split, type }) => ({ type, split, id }));
    expect(taskListOf(household, "valid_seen", turned).sha256).toBe(
      taskListOf(household, "valid_seen", tasks).sha256,
    );
  });
});

describe("a result card", () => {
  it("has Wilson's interval for one attempt, and survives writing and reading", () => {
    const card = cardOf([...many(5, true), ...many(3, false), [undefined]]);
    expect(card.results).toMatchObject({ episodes: 8, broken: 1, success: 5 / 8 });
    expect(card.intervals).toMatch(/Wilson/);
    expect(card.results.interval![0]).toBeCloseTo(0.3057, 3);
    expect(card.outcomes[0]).toMatchObject({ task: "valid_seen/8", success: [null] });
    const folder = mkdtempSync(join(tmpdir(), "pawl-card-"));
    writeCard(folder, card);
    expect(readCard(folder)).toEqual(card);
    const markdown = readFileSync(join(folder, "card.md"), "utf8");
    expect(markdown).toContain(
      "# household/valid_seen: 62.5 % success (95 % interval 30.6 – 86.3 %)",
    );
    expect(markdown).toContain(card.tasks.sha256);
    expect(markdown).toMatch(/\| heat \| 4 \|/);
    writeFileSync(join(folder, "card.json"), '{"schema": 2}');
    expect(() => readCard(folder)).toThrow(/card\.json is no result card of this version: schema/);
  });

  it("draws tasks, not attempts, where there are several", () => {
    // All attempts at a task agree: three times the attempts say nothing more.
    const card = cardOf([...Array(10)].map((_, at) => Array(3).fill(at < 5)));
    expect(card.intervals).toMatch(/bootstrap over tasks/);
    const [low, high] = card.results.interval!;
    expect(high - low).toBeGreaterThan(0.5);
    expect(card.results.passAll).toEqual([0.5, 0.5, 0.5]);
  });
});

describe("comparing cards", () => {
  it("pairs tasks, and says which is better", () => {
    const a = cardOf([...many(10, false), ...many(10, true)]);
    const b = cardOf([...many(9, true), ...many(1, false), ...many(9, true), ...many(1, false)]);
    const compared = compareCards(a, b);
    expect(compared).toMatchObject({ tasks: 20, better: 9, worse: 1, verdict: "better" });
    expect(compared.difference).toBeCloseTo(0.4, 12);
    expect(compared.interval[0]).toBeGreaterThan(0);
    expect(compared.test).toBe("McNemar's exact test");
    expect(compareCards(b, a)).toMatchObject({ verdict: "worse", better: 1, worse: 9 });
    expect(compared.byType.pick!.tasks).toBe(10);
  });

  it("leaves out tasks that broke in either, and decides nothing without evidence", () => {
    const a = cardOf([[true], [undefined], [false], [true]]);
    const b = cardOf([[true], [true], [true], [undefined]]);
    expect(compareCards(a, b)).toMatchObject({
      tasks: 2,
      leftOut: 2,
      better: 1,
      verdict: "undecided",
    });
  });

  it("refuses other lists and other goals, and names other settings", () => {
    const a = cardOf(many(4, true));
    expect(() => compareCards(a, cardOf(many(3, true)))).toThrow(
      /cannot be compared: one is of household\/valid_seen \(4 tasks.*\(3 tasks/,
    );
    expect(() => compareCards(a, cardOf(many(4, true), {}, "Other."))).toThrow(
      /task valid_seen\/3 had another goal/,
    );
    expect(compareCards(a, cardOf(many(4, true), { temperature: 1, policy: 1 })).caveats).toEqual([
      "temperature: 0 and 1",
    ]);
  });

  it("uses the means of several attempts", () => {
    const a = cardOf([
      [true, false],
      [false, false],
    ]);
    const b = cardOf([
      [true, true],
      [true, false],
    ]);
    expect(compareCards(a, b)).toMatchObject({
      success: [0.25, 0.75],
      better: 2,
      test: "exact sign test over tasks",
    });
  });
});
