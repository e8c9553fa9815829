/**
 * Your own agent, with a client of its own: any that speaks OpenAI's chat completions can be
 * trained. This one asks for a rhyme, and once more if there is none.
 *
 *     npx pawl train --agent examples/openai-agent.ts --model.start MODEL
 */
import OpenAI from "openai";
import { defineAgent, sessionEndpoint } from "pawl";

const rhymes = (line: string, word: string): boolean =>
  line !== word && line.trimEnd().endsWith(word.slice(-2));

export default defineAgent({
  name: "rhymer",
  tasks: { train: ["cat", "light", "stone"].map((word) => ({ word })), test: [{ word: "moon" }] },
  async run({ word }, { session }, signal) {
    const { model, ...address } = await sessionEndpoint(session, signal);
    const client = new OpenAI(address);
    const messages: OpenAI.ChatCompletionMessageParam[] = [
      { role: "user", content: `Write a line that rhymes with ${word}.` },
    ];
    for (let attempt = 0; ; attempt++) {
      const { choices } = await client.chat.completions.create({ model, messages }, { signal });
      const line = choices[0]!.message.content ?? "";
      if (rhymes(line, word) || attempt === 1) return line;
      messages.push(choices[0]!.message, { role: "user", content: "That does not rhyme." });
    }
  },
  reward: ({ task, result }) => Number(rhymes(String(result), task.word)),
});
