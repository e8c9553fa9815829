/**
 * An agent of a terminal, with a client of its own: it calls bash until it answers without a call,
 * and the hidden test of its task says what its work is worth.
 *
 *     npx pawl train --agent examples/terminal-agent.ts --model.start MODEL
 */
import OpenAI from "openai";
import * as pawl from "pawl";

const terminal = pawl.openEnvironment({ name: "terminal", actions: "tool", output: 2000 });
const ids = (split: string, count: number) =>
  terminal
    .tasks(split)
    .slice(0, count)
    .map(({ id, type }) => ({ id, type }));

export default pawl.defineAgent({
  name: "terminal-agent",
  tasks: { train: ids("train", 200), test: ids("test", 50) },
  callLimit: terminal.stepLimit,
  async run({ id }, { session }, signal) {
    const env = terminal.create() as pawl.Env;
    const observation = env.reset(terminal.task(id));
    const episode = pawl.toolSet(env);
    const bash = episode.tools.bash!;
    const tools = env.tools!().map((tool) => ({ type: "function" as const, function: tool }));
    const { model, ...address } = await pawl.sessionEndpoint(session, signal);
    const client = new OpenAI(address);
    const messages: OpenAI.ChatCompletionMessageParam[] = [
      { role: "system", content: terminal.prompt!.instructions! },
      { role: "user", content: `${env.goal}\n\n${observation}` },
    ];
    while (!episode.done) {
      const request = { model, messages, tools };
      const { choices } = await client.chat.completions.create(request, { signal });
      const answer = choices[0]!.message;
      messages.push(answer);
      for (const call of answer.tool_calls ?? []) {
        const content =
          call.type === "function" && call.function.name === "bash"
            ? await bash.execute(JSON.parse(call.function.arguments))
            : "There is one tool: bash.";
        messages.push({ role: "tool", tool_call_id: call.id, content });
      }
      if (answer.tool_calls === undefined) await bash.execute({ command: "exit" });
    }
    return episode.steps.at(-1)!.reward;
  },
  reward: ({ result }) => Number(result),
});
