import { chatClientOptions, createChatClient } from "@pawl/core/rollout/policies/chat-client.js";
import { expect, it } from "vitest";
import { says, startChatServer } from "../../../tests/helpers/chat-server.js";
import { fewShotModel } from "./few-shot.js";
import { fidelityReport, scoreTurns } from "./fidelity.js";
import { protocolOptions } from "./protocol.js";
import { someTrajectories } from "./testing.js";

it("shows a chat model examples and the dialogue so far, and scores its answers", async () => {
  const [example, asked] = await someTrajectories(["expert:2"]);
  const trajectory = asked!;
  const [first, second] = trajectory.turns;
  const server = await startChatServer(
    says(`<think>well</think> ${first!.observation}\n`),
    says(`${second!.observation} [SUCCESS]`),
    says(""),
  );
  try {
    const settings = { baseUrl: server.baseUrl, model: "m", concurrency: 1, retries: 0 };
    const model = fewShotModel(createChatClient(chatClientOptions.parse(settings)), {
      name: "m",
      examples: [example!],
      turns: 1,
      protocol: protocolOptions.parse({}),
    });
    const turns = await scoreTurns(model, [{ ...trajectory, turns: trajectory.turns.slice(0, 3) }]);
    expect(turns.map(({ exact }) => exact)).toEqual([true, false, false]);
    expect(turns.map(({ f1 }) => f1)).toEqual([1, 1, 0]);
    const { all, byDepth } = fidelityReport(turns);
    expect(all).toMatchObject({ turns: 3, exactMatch: 1 / 3, degenerate: { empty: 1 } });
    expect(Object.keys(byDepth)).toEqual(["1", "2–3"]);
    const messages = server.received[1]!.body.messages;
    expect(messages.map(({ role }) => role)).toEqual(["system", "user", "assistant", "user"]);
    expect(messages[0]!.content).toContain("Example 1\nGoal: ");
    expect(messages[0]!.content).toContain(`Initial state:\n${trajectory.context}`);
    expect(messages[2]!.content).toBe(first!.observation);
  } finally {
    await server.close();
  }
});
