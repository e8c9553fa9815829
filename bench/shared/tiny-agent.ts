/** An agent that a tiny model can run: asked twice, the second time for an object; a blank is a point. */
import { generateText, Output, stepCountIs, tool } from "ai";
import { defineAgent } from "pawl";
import { z } from "zod";

const look = tool({
  inputSchema: z.object({ place: z.string() }),
  execute: async ({ place }) => `seen ${place}`,
});

// biome-ignore lint/style/noDefaultExport: --agent takes a default export
export default defineAgent({
  name: "blanks",
  tasks: {
    train: ["go on", "look"].map((prompt) => ({ prompt })),
    test: [{ prompt: "go on" }],
  },
  async run({ prompt }, model, abortSignal) {
    const common = { model, tools: { look }, stopWhen: stepCountIs(3), abortSignal };
    const { response, text } = await generateText({ ...common, prompt });
    const again = await generateText({
      ...common,
      messages: [
        { role: "user", content: prompt },
        ...response.messages,
        { role: "user", content: "sure?" },
      ],
      // An answer under masks, which are recorded, learnt under, replayed and resumed.
      output: Output.object({ schema: z.object({ sure: z.boolean() }) }),
    });
    return text + JSON.stringify(again.output);
  },
  reward: ({ result }) => Number(String(result).includes(" ")),
  texts: ["go on, look. sure? seen a place", '{"sure": true}', '{"sure": false}'],
});
