import type { Engine } from "@pawl/core/engine/engine.js";
import type { Episode, Fork } from "@pawl/core/rollout/episode.js";
import { rollout } from "@pawl/core/rollout/rollout.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { generateText } from "ai";
import { expect, it } from "vitest";
import type { Agent } from "./agent.js";
import type { AgentEnvironment } from "./agent-environment.js";
import { agentKind } from "./agent-kind.js";
import { agentPolicy } from "./agent-policy.js";
import { hermes, scripted } from "./testing.js";

/** What a program says after each answer; the last one ends it. */
type Said = (turn: number, text: string) => string | undefined;

/** Plays a program that says these things, from the start or from a fork; and what the model was asked. */
async function played(says: Said, answers: readonly string[], fork?: Fork) {
  const sampler = scripted(hermes, answers);
  const engine = {
    capabilities: { maxContext: 512, vocabularySize: hermes.vocabularySize },
    sample: (requests: readonly Parameters<typeof sampler.sample>[0][]) =>
      Promise.all(requests.map(async (request) => [await sampler.sample(request)])),
  } as unknown as Engine;
  const agent: Agent<{ readonly prompt: string }> = {
    tasks: { train: [{ prompt: "go on" }] },
    async run({ prompt }, model) {
      const messages: { role: "user" | "assistant"; content: string }[] = [
        { role: "user", content: prompt },
      ];
      for (let turn = 0; ; turn++) {
        const { text } = await generateText({ model, messages }).catch(() => ({ text: "hidden" }));
        const reply = says(turn, text);
        if (reply === undefined) return text;
        messages.push({ role: "assistant", content: text }, { role: "user", content: reply });
      }
    },
    reward: ({ result }) => Number(result === "right"),
  };
  const environment = agentKind(agent as unknown as Agent, "talk").open({}) as AgentEnvironment;
  const sampling = { maxTokens: 24, temperature: 1 };
  const [group] = await rollout({
    ...{ environment, tasks: environment.tasks("train"), groupSize: 1, seed: 5 },
    policy: agentPolicy({ environment, engine, tokenizer: hermes, sampling }),
    style: promptStyle({}, { style: "chat" }),
    ...(fork && { firstAttempt: 1, forkOf: () => fork }),
  }).catch((error: Error) => [{ episodes: [error] }]);
  return { episode: group!.episodes[0] as Episode, asked: sampler.asked };
}

const three: Said = (turn, text) => (turn < 2 ? `${text}, and then` : undefined);

it("an agent goes on from its second call: answered as before, and sampled from there", async () => {
  const { episode: trunk } = await played(three, ["one", "two", "wrong"]);
  expect(trunk).toMatchObject({ attempt: 0, return: 0 });
  const fork = { episode: trunk, step: 1 };
  const { episode, asked } = await played(three, ["three", "right"], fork);
  expect(episode).toMatchObject({ attempt: 1, branch: { from: 0, step: 1 }, return: 1 });
  expect(episode.steps.map(({ response }) => response)).toEqual(["one", "three", "right"]);
  const { seconds: _, ...first } = episode.steps[0]!;
  expect(trunk.steps[0]).toMatchObject(first);
  // Only what is new was sampled, with the tokens that the trunk had there.
  expect(asked).toHaveLength(2);
  const { ids, spans } = trunk.steps[1]!.sequence!;
  expect(asked[0]!.prompt).toEqual(
    ids.slice(0, spans.find(({ kind }) => kind === "action")!.start),
  );
});

it("an agent that asks otherwise, or ends sooner, breaks by name, even if it hides it", async () => {
  const { episode: trunk } = await played(three, ["one", "two", "wrong"]);
  const fork = { episode: trunk, step: 2 };
  const broken = /rollout\.branch: the agent does not repeat itself/;
  let times = 0;
  const other: Said = (turn, text) => (turn < 3 ? `${text}, ${times++}` : undefined);
  const short: Said = (turn, text) => (turn < 1 ? `${text}, and then` : undefined);
  for (const says of [other, short]) {
    // The only episode broke: the rollout says why.
    const { episode } = await played(says, ["right"], fork);
    expect(String((episode as unknown as Error).message)).toMatch(broken);
  }
});
