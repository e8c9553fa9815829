import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { protocolOptions } from "./protocol.js";
import { datasetInfo, exportChat, importChat } from "./sharegpt.js";
import { someTrajectories } from "./testing.js";
import { createProblems, type Trajectory } from "./trajectory.js";

const fail = createProblems(expect.unreachable);

describe("chat JSON", () => {
  it("exported and imported again is the same", async () => {
    const trajectories = await someTrajectories();
    expect(importChat(exportChat(trajectories), "data/train.json", fail)).toEqual(trajectories);
  });

  it("survives any text without surrounding blanks", () => {
    const text = fc.string({ unit: "grapheme", minLength: 1 }).map((some) => `a${some.trim()}z`);
    fc.assert(
      fc.property(text, text, text, fc.boolean(), (goal, action, observation, success) => {
        const trajectory: Trajectory = {
          env: "e",
          task: "t",
          split: "train",
          type: "any",
          policy: "p",
          goal,
          firstObservation: observation,
          turns: [{ action, observation, done: success, success }],
        };
        expect(importChat(exportChat([trajectory]), "x.json", fail)).toEqual([trajectory]);
      }),
    );
  });

  it("is described for LLaMA-Factory", () => {
    expect(JSON.parse(datasetInfo({ train: "train.json" }))).toMatchObject({
      train: {
        file_name: "train.json",
        formatting: "sharegpt",
        columns: { messages: "messages" },
        tags: { role_tag: "role", content_tag: "content" },
      },
    });
  });

  it("of Word-to-World is read: the system describes the world, the assistant is the world", () => {
    const record = {
      id: 7,
      messages: [
        { role: "system", content: "A house. The mug 1 is on the shelf 1." },
        { role: "user", content: "take mug 1 from shelf 1" },
        { role: "assistant", content: "You pick up the mug 1." },
        { role: "user", content: "put mug 1 on desk 1" },
        { role: "assistant", content: "You put it down. [SUCCESS]" },
        { role: "user", content: "never answered" },
      ],
    };
    const [read] = importChat(JSON.stringify([record]), "data/alfworld_train_7.json", fail);
    expect(read).toMatchObject({
      env: "alfworld",
      task: "7",
      context: "A house. The mug 1 is on the shelf 1.",
      turns: [
        { action: "take mug 1 from shelf 1", success: false },
        { observation: "You put it down.", success: true, done: true },
      ],
    });
    expect(read!.turns).toHaveLength(2);
  });

  it("of Word-to-World keeps its own system text, if the protocol says so", () => {
    const content = "  You simulate a house.\n\nThe mug 1 is on the shelf 1.\n";
    const messages = [
      { role: "system", content },
      { role: "user", content: "look" },
      { role: "assistant", content: "A shelf 1." },
    ];
    const systemAfter = (given: object) => {
      const protocol = protocolOptions.parse(given);
      const read = importChat(JSON.stringify([{ messages }]), "w.json", fail, protocol);
      return JSON.parse(exportChat(read, protocol))[0].messages[0].content;
    };
    expect(systemAfter({ system: "own" })).toBe(content);
    expect(systemAfter({})).toMatch(
      /^You are the environment[\s\S]*Initial state:\n {2}You simulate/,
    );
  });

  it("of agents is read: the assistant thinks and acts, users send observations", () => {
    const record = {
      item_id: "alfworld_3",
      reward: 1,
      conversations: [
        { from: "human", value: "Interact with a household." },
        { from: "gpt", value: "OK." },
        { from: "human", value: "You see desk 1.\nYour task is to: find a mug" },
        { from: "gpt", value: "Thought: look.\nAction: go to desk 1" },
        { from: "human", value: "You see mug 1." },
        { from: "gpt", value: "Thought: there.\nAction: take mug 1 from desk 1" },
        { from: "human", value: "Taken." },
      ],
    };
    const [read] = importChat(`${JSON.stringify(record)}\n`, "agents.jsonl", fail);
    expect(read).toMatchObject({
      task: "alfworld_3",
      goal: "find a mug",
      firstObservation: "You see desk 1.\nYour task is to: find a mug",
      turns: [
        { action: "go to desk 1", observation: "You see mug 1.", done: false },
        { action: "take mug 1 from desk 1", observation: "Taken.", done: true, success: true },
      ],
    });
  });

  it("that is damaged is reported record by record", () => {
    const user = { role: "user", content: "look" };
    const told: string[] = [];
    const problems = createProblems((message) => told.push(message));
    const records = [
      {},
      { messages: [{ role: "user" }] },
      { messages: [{ role: "robot", content: "beep" }] },
      { messages: [user, user] },
      { messages: [user] },
    ];
    expect(importChat(JSON.stringify(records), "bad.json", problems)).toEqual([]);
    expect(told.map((line) => /record \d/.exec(line)?.[0])).toEqual(
      [1, 2, 3, 4, 5].map((n) => `record ${n}`),
    );
    expect(told[0]).toContain("neither messages nor conversations");
    expect(told[2]).toContain('unknown role "robot"');
    expect(told[3]).toContain("two messages of the user in a row");
    expect(told[4]).toContain("no action with a response");
    expect(importChat("not json", "bad.json", problems)).toEqual([]);
    expect(told.at(-1)).toContain("not JSON");
  });
});
