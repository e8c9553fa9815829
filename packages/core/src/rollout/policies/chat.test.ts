import { searchPrompt } from "@pawl/worlds/search/search.js";
import { afterEach, describe, expect, it } from "vitest";
import {
  type Behaviour,
  fails,
  says,
  startChatServer,
} from "../../../../../tests/helpers/chat-server.js";
import type { Env, Task } from "../../envs/env.js";
import { housePrompt } from "../../envs/household/prompt.js";
import { promptStyle, promptText } from "../../text/prompt.js";
import type { Episode, Step } from "../episode.js";
import type { Situation } from "../policy.js";
import { type ChatOptions, chatPolicy } from "./chat.js";

const style = promptStyle(housePrompt);
const task: Task = { id: "train/3", split: "train", type: "pick" };

function step(action: string, observation: string): Step {
  return {
    prompt: [],
    response: style.format(action, `I want to ${action}`),
    action,
    wellFormed: true,
    valid: true,
    observation,
    reward: 0,
  };
}

function situation(steps: readonly Step[], changes: Partial<Situation> = {}): Situation {
  const view = {
    goal: "find the plum",
    firstObservation: "A kitchen.",
    observation: steps.at(-1)?.observation ?? "A kitchen.",
    steps,
    admissible: ["look", "go to fridge 1"],
    index: steps.length,
  };
  return {
    ...view,
    task,
    group: 2,
    attempt: 0,
    seed: 11,
    env: {} as Env,
    prompt: style.render(view),
    format: (action) => style.format(action),
    ...changes,
  };
}

function episode(changes: Partial<Episode> = {}): Episode {
  return {
    task,
    group: 2,
    attempt: 0,
    seed: 4,
    policy: "x",
    goal: "find the plum",
    firstObservation: "A kitchen.",
    steps: [step("look", "Nothing.")],
    return: 0,
    success: false,
    stop: "step-limit",
    ...changes,
  };
}

let server: Awaited<ReturnType<typeof startChatServer>> | undefined;
afterEach(async () => {
  await server?.close();
});

async function setUp(prompting: ChatOptions["prompting"], ...behaviours: readonly Behaviour[]) {
  server = await startChatServer(...behaviours);
  const policy = chatPolicy(
    {
      baseUrl: server.baseUrl,
      model: "tiny",
      retries: 0,
      apiKeyVariable: "UNSET",
      ...(prompting && { prompting }),
    },
    style,
  );
  return { policy, received: server.received };
}

const answer = "<think>hm</think><action>look</action>";

describe("plain prompting", () => {
  it("sends the rendered prompt as one message", async () => {
    const { policy, received } = await setUp(undefined, says(answer));
    const now = situation([step("look", "Nothing.")]);
    expect(await policy.act([now])).toEqual([{ response: answer }]);
    expect(received[0]?.body.messages).toEqual([{ role: "user", content: promptText(now.prompt) }]);
    expect(received[0]?.body.messages[0]?.content).not.toContain("I want to");
    expect(received[0]?.body.seed).toBe(11);
    expect(JSON.parse(JSON.stringify(policy))).toEqual({
      name: "chat:tiny",
      batch: 1,
      sequential: false,
    });
  });

  it("passes errors on", async () => {
    const { policy } = await setUp(undefined, fails(404, "no such model"));
    await expect(policy.act([situation([])])).rejects.toThrow(/status 404: no such model/);
  });
});

describe("ReAct", () => {
  it("carries thoughts, actions and observations in the dialogue", async () => {
    const { policy, received } = await setUp("react", says(answer));
    const steps = [step("look", "A fridge 1."), step("go to fridge 1", "It is closed.")];
    const [reply] = await policy.act([situation(steps)]);
    const messages = received[0]?.body.messages ?? [];
    expect(messages.map((message) => message.role)).toEqual([
      "user",
      "assistant",
      "user",
      "assistant",
      "user",
    ]);
    expect(messages[0]?.content).toContain("find the plum");
    expect(messages[0]?.content).toContain("This is step 1. You now observe:\nA kitchen.");
    expect(messages[0]?.content).not.toContain("go to fridge 1");
    expect(messages[1]?.content).toBe("<think>I want to look</think><action>look</action>");
    expect(messages[2]?.content).toBe("A fridge 1.");
    expect(messages[4]?.content).toBe(
      "It is closed.\n\nActions you can take now:\nlook\ngo to fridge 1",
    );
    expect(policy.name).toBe("react:tiny");
    expect(reply?.prompt?.filter((piece) => piece.origin === "observation")).toEqual([
      { origin: "observation", text: "It is closed." },
    ]);
    expect(promptText(reply?.prompt ?? [])).toContain("\n\n[assistant]\n<think>I want to look");
  });

  it("puts search results into the tags the model was told to expect", async () => {
    server = await startChatServer(says("<think></think><answer>Ann</answer>"));
    const options = { baseUrl: server.baseUrl, model: "tiny", prompting: "react" } as const;
    const policy = chatPolicy(options, promptStyle(searchPrompt));
    const asked = step("<search>it</search>", "Ann wrote it.");
    await policy.act([situation([asked], { admissible: undefined })]);
    expect(server.received[0]?.body.messages.at(-1)?.content).toBe(
      "<information>Ann wrote it.</information>",
    );
  });

  it("starts with one message that contains everything", async () => {
    const { policy, received } = await setUp("react", says(answer));
    await policy.act([situation([])]);
    const messages = received[0]?.body.messages ?? [];
    expect(messages).toHaveLength(1);
    expect(messages[0]?.content).toMatch(/A kitchen\.[\s\S]*Actions you can take now:\nlook/);
  });
});

describe("Reflexion", () => {
  it("notes what went wrong and reads its notes in the next attempt at the same task", async () => {
    const { policy, received } = await setUp(
      "reflexion",
      says("<think>so</think> Look in\nthe fridge. "),
      says(answer),
    );
    expect(policy.sequential).toBe(true);
    await policy.finished?.(episode());
    expect(received[0]?.body.messages[0]?.content).toMatch(
      /find the plum[\s\S]*You did:\nlook\nYou saw:\nNothing\./,
    );
    const [reply] = await policy.act([situation([], { attempt: 1 })]);
    expect(reply?.prompt).toContainEqual({ origin: "memory", text: "- Look in the fridge." });
    expect(received[1]?.body.messages[0]?.content).toContain("- Look in the fridge.");
    const others = [
      situation([], { group: 3 }),
      situation([], { task: { ...task, id: "train/4" } }),
    ];
    for (const other of await policy.act(others)) {
      expect(other.prompt?.some((piece) => piece.origin === "memory")).toBe(false);
    }
  });

  it("learns nothing from success or from broken episodes", async () => {
    const { policy, received } = await setUp("reflexion", says("note"));
    await policy.finished?.(episode({ success: true, stop: "done" }));
    await policy.finished?.(episode({ stop: "broken", error: "server died" }));
    expect(received).toHaveLength(0);
  });

  it("keeps only the latest notes, shortened", async () => {
    const notes = ["one", "two", "three", "four ".repeat(1000)];
    const { policy } = await setUp("reflexion", ...notes.map(says), says(answer));
    for (const _ of notes) await policy.finished?.(episode());
    const [reply] = await policy.act([situation([])]);
    const memory = reply?.prompt?.find((piece) => piece.origin === "memory")?.text ?? "";
    expect(memory).toMatch(/^- two\n- three\n- four four/);
    expect(memory.length).toBeLessThan(1050);
  });
});

it("a chat model is sent a conversation as its messages, tools in words", async () => {
  server = await startChatServer(says('{"name": "look", "arguments": {}}'));
  const chat = promptStyle({ instructions: "Act." }, { style: "chat" });
  const tools = [{ name: "look", description: "Look.", parameters: { type: "object" } }];
  const past = [step("look", "A fridge.")].map((one) => ({ ...one, response: "look" }));
  const view = { ...situation(past), tools };
  const policy = chatPolicy({ baseUrl: server.baseUrl, model: "tiny" }, chat);
  await policy.act([{ ...view, prompt: chat.render(view) }]);
  const { messages } = server.received[0]!.body;
  expect(messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "user"]);
  expect(messages[0]!.content).toMatch(/^Act\.\n\nThe tools you can call[\s\S]*"name":"look"/);
  expect(messages[3]!.content).toBe("A fridge.");
  const limited = promptStyle({}, { style: "chat", maxTokens: 100 });
  expect(() => chatPolicy({ baseUrl: "http://x/v1", model: "tiny" }, limited)).toThrow(
    /prompt\.maxTokens counts tokens/,
  );
});

it("a chat model rejects the markers of small models, and unknown options", () => {
  const compact = promptStyle(housePrompt, { style: "compact" });
  const options = { baseUrl: "http://localhost/v1", model: "tiny" };
  expect(() => chatPolicy(options, compact)).toThrow(/cannot read the prompt style compact/);
  expect(() => chatPolicy({ ...options, apiKey: "x" } as ChatOptions, style)).toThrow(/apiKey/);
});
