/** An agent that a tiny model can run: asked twice, it may look; a blank in its answer is a point. */
import { generateText, stepCountIs, tool } from "ai";
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
    });
    return text + again.text;
  },
  reward: ({ result }) => Number(String(result).includes(" ")),
  texts: ["go on, look. sure? seen a place"],
});
