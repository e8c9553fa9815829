import { dose, some } from "@pawl/core/dose-testing.js";
import type { Env, StepResult } from "@pawl/core/envs/env.js";
import { describe, expect, it } from "vitest";
import { bm25Retriever } from "../retrieval/retriever-bm25.js";
import { madeUpCorpus, search } from "./search.js";
import type { SearchEnv } from "./search-env.js";
import { makeWorld, wordsFor } from "./world.js";

const open = (options: Record<string, unknown> = {}) =>
  search.open(search.options.parse({ data: "made-up", ...options }));

describe("the made-up world", () => {
  it("is the same for the same seed, and different for another", () => {
    expect(makeWorld({ size: 100, seed: 1 }).passages).toEqual(
      makeWorld({ size: 100, seed: 1 }).passages,
    );
    expect(makeWorld({ size: 100, seed: 1 }).passages).not.toEqual(
      makeWorld({ size: 100, seed: 2 }).passages,
    );
  });

  it("has distinct names, complete facts, and states each fact in its entity's passage", () => {
    const { things, passages } = makeWorld({ size: 2000, seed: 3 });
    expect(new Set(things.map(({ name }) => name)).size).toBe(things.length);
    expect(things.length).toBe(2000);
    const text = new Map(passages.map(({ id, contents }) => [id, contents]));
    expect(text.size).toBe(passages.length);
    for (const { name, passage, facts } of things) {
      expect(text.get(passage)!.split("\n")[0]).toBe(name);
      expect(facts.size).toBeGreaterThanOrEqual(3);
      for (const value of facts.values()) expect(text.get(passage)).toContain(wordsFor(value));
    }
  });

  it("shares words among names, and has passages without facts that are asked for", () => {
    const { things, passages } = makeWorld({ size: 400, seed: 1 });
    const families = things
      .filter(({ kind }) => kind === "person")
      .map(({ name }) => name.split(" ")[1]);
    expect(new Set(families).size).toBeLessThan(families.length / 4);
    expect(passages.length - things.length).toBe(100);
    // A single word of a name is not enough to find its passage.
    const retriever = bm25Retriever(madeUpCorpus({ size: 400, seed: 1 }));
    const [first] = families;
    const titles = retriever
      .search(first!, 3)
      .map(({ passage }) => passage.contents.split("\n")[0]);
    expect(titles.filter((title) => title!.endsWith(first!)).length).toBeGreaterThan(1);
  });
});

describe("a world whose names share words", () => {
  it("still has distinct names, of far fewer words", () => {
    const wordsOf = (naming: "own" | "shared") => {
      const { things, passages } = makeWorld({ size: 2000, seed: 3, names: naming });
      expect(new Set(things.map(({ name }) => name)).size).toBe(things.length);
      return new Set(passages.flatMap(({ contents }) => contents.match(/\p{L}+/gu) ?? [])).size;
    };
    expect(wordsOf("shared")).toBeLessThan(0.65 * wordsOf("own"));
  });

  it("exists in every size", () => {
    for (const size of [40, 300, dose(10_000)])
      expect(makeWorld({ size, seed: 1, names: "shared" }).things).toHaveLength(Math.max(40, size));
  });

  it("is searched with its own passages", () => {
    const contents = (names: "own" | "shared") =>
      madeUpCorpus({ size: 60, seed: 1, names }).passage(0).contents;
    expect(contents("shared")).not.toBe(contents("own"));
  });
});

describe("its questions", () => {
  it("ask for the relations that were chosen, and passages state no others", () => {
    const relations = ["profession", "birthplace", "river"];
    const environment = open({ relations });
    const env = environment.create() as SearchEnv;
    for (const split of environment.splits) {
      for (const task of environment.tasks(split))
        expect(env.reset(task)).toMatch(/profession|work as|born|[Ww]hich river/);
    }
    const { things, passages } = makeWorld({ size: 60, seed: 1, relations });
    const facts = new Set(things.flatMap((thing) => [...thing.facts.keys()]));
    expect([...facts].sort()).toEqual([...relations].sort());
    expect(passages.some(({ contents }) => /teacher|Lessons|capital/.test(contents))).toBe(false);
    expect(() => open({ relations: ["colour"] })).toThrow(/relations|Invalid option/);
  });

  it("keep what valid_unseen asks about out of every other split", () => {
    const environment = open();
    const env = environment.create() as SearchEnv;
    const trailOf = (split: string) =>
      environment.tasks(split).map((task) => {
        env.reset(task);
        return env.state.question.trail!.map(({ query }) => query);
      });
    const apart = new Set(trailOf("valid_unseen").map(([subject]) => subject!));
    for (const split of ["train", "valid_seen"]) {
      for (const trail of trailOf(split))
        expect(trail.filter((name) => apart.has(name))).toEqual([]);
    }
    expect(apart.size).toBeGreaterThan(40);
  });

  it("never contain their answer, and differ by their hops", () => {
    for (const [hops, types] of [
      ["one", ["one-hop"]],
      ["two", ["two-hop"]],
      ["both", ["one-hop", "two-hop"]],
    ] as const) {
      const environment = open({ hops, size: 60 });
      const env = environment.create() as SearchEnv;
      const tasks = environment.splits.flatMap((split) => environment.tasks(split));
      expect([...new Set(tasks.map(({ type }) => type))].sort()).toEqual(types);
      for (const task of tasks) {
        const text = env.reset(task);
        expect(text).not.toContain(env.state.question.answers[0]);
        expect(text).toContain(env.state.question.trail![0]!.query);
        expect(env.state.question.trail).toHaveLength(task.type === "one-hop" ? 1 : 2);
      }
    }
  });
});

describe("the expert", () => {
  it.each([
    { size: 40, seed: 1 },
    { size: 41, seed: 9, topk: 1 },
    { size: 150, seed: 2, hops: "two" },
    { size: 300, seed: 3 },
    { size: 1000, seed: 4, hops: "one" },
    { size: 500, seed: 5, names: "shared" },
  ])("answers every question with at most one search per hop: %j", (options) => {
    const environment = open(options);
    const env = environment.create() as Env;
    const tasks = environment.splits.flatMap((split) => some(environment.tasks(split), 6));
    let steps = 0;
    let hops = 0;
    for (const task of tasks) {
      env.reset(task);
      const before = steps;
      let last: StepResult;
      do {
        last = env.step(environment.expert!(env));
        steps++;
      } while (!last.done && steps - before < environment.stepLimit);
      expect([task.id, env.goal, last.reward]).toEqual([task.id, env.goal, 1]);
      const most = task.type === "one-hop" ? 2 : 3;
      expect(steps - before).toBeLessThanOrEqual(most);
      hops += most;
    }
    // The first search may happen to find the second passage too, but rarely does.
    expect(steps / hops).toBeGreaterThan(0.9);
  });
});
