/**
 * The desk as an AI SDK agent's tools: any model of the AI SDK can work there, and the episode knows
 * what its calls were worth. The model here is scripted: it says what the expert would.
 */
import { ToolLoopAgent } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import * as pawl from "pawl";

const environment = pawl.openEnvironment({ name: "desk", level: "medium" });
const env = environment.create() as pawl.Env;
const observation = env.reset(environment.task("train/0"));
const episode = pawl.toolSet(env);

const model = new MockLanguageModelV3({
  doGenerate: async () => {
    const { tool, arguments: input } = JSON.parse(environment.expert!(env));
    return {
      content: [
        {
          type: "tool-call",
          toolCallId: `call-${episode.steps.length}`,
          toolName: tool,
          input: JSON.stringify(input),
        },
      ],
      finishReason: { unified: "tool-calls", raw: undefined },
      usage: {
        inputTokens: { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 0, text: 0, reasoning: 0 },
      },
      warnings: [],
    };
  },
});

const agent = new ToolLoopAgent({
  model,
  instructions: environment.prompt!.instructions!,
  tools: episode.tools,
  stopWhen: () => episode.done,
});
await agent.generate({ prompt: `${env.goal}\n\n${observation}` });

for (const { observation: seen } of episode.steps) console.log(seen);
console.log("reward:", episode.steps.at(-1)?.reward);
