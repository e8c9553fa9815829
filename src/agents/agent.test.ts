import { describe, expect, it } from "vitest";
import { type Agent, isAgent, textsOf } from "./agent.js";
import type { AgentEnvironment } from "./agent-environment.js";
import { agentKind, isAgentKind } from "./agent-kind.js";

const agent: Agent = { tasks: { train: [{ id: "a" }, {}] }, run: () => "", reward: () => 0 };
const open = (changes: object = {}): AgentEnvironment =>
  agentKind({ ...agent, ...changes }, "mine").open({}) as AgentEnvironment;

describe("an agent", () => {
  it("is an environment with its tasks, and no world", () => {
    const environment = open({ maxReturn: 5, callLimit: 7 });
    expect(environment).toMatchObject({ name: "mine", maxReturn: 5, stepLimit: 7 });
    expect(environment.tasks("train").map(({ id }) => id)).toEqual(["train/a", "train/1"]);
    expect(environment.given(environment.task("train/1"))).toBe(agent.tasks.train![1]);
    const named = open({ tasks: { train: [{ id: "train/7" }] } });
    expect(named.tasks("train")).toEqual([{ id: "train/7", split: "train", type: "task" }]);
    expect(() => environment.tasks("test")).toThrow('no split "test"; its tasks are in: train');
    expect(() => environment.task("train/9")).toThrow('no task "train/9"; ids are such as train/0');
    expect(() => environment.create()).toThrow("asks the model itself");
    expect(isAgentKind(agentKind({ ...agent, name: "other" }, "mine"))).toBe(true);
    expect(agentKind({ ...agent, name: "other" }, "mine").name).toBe("other");
  });

  it("gives a model from scratch its texts, or those of its tasks", () => {
    expect(textsOf({ ...agent, texts: ["x"] })).toEqual(["x"]);
    expect(textsOf({ ...agent, tasks: { train: [{ id: "a", more: ["b"] } as object] } })).toEqual([
      "a",
      "b",
    ]);
  });

  it.each([
    [{ run: 3 }, /run is no function; expected \{ tasks/],
    [{ reward: undefined }, /reward is no function/],
    [{ filter: "all" }, /filter is no function/],
    [{ tasks: [] }, /tasks: expected a list for each split/],
    [{ tasks: { train: {} } }, /tasks: expected a list for each split/],
    [{ task: [] }, /an agent has no "task", only name, tasks/],
    [{ callLimit: 0 }, /callLimit: expected a number above 0, got 0/],
    [{ tasks: { train: [{ id: "a" }, { id: "a" }] } }, /two tasks of train are a/],
  ])("with %j is refused", (changes, message) => {
    expect(() => open(changes)).toThrow(message);
  });

  it("is known by its run or its reward", () => {
    expect([agent, { run: 1 }, { environments: [] }, undefined, 3].map(isAgent)).toEqual([
      ...[true, true, false, false, false],
    ]);
  });
});
