/**
 * Chat models: a policy behind an OpenAI-compatible endpoint, here with Reflexion prompting.
 *
 * So that the example runs anywhere, the endpoint is a stand-in on this machine that always gives
 * the same answer; replace it with the address and the model of a real server.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { chatPolicy, openEnvironment, promptStyle, rollout } from "pawl";

const server = createServer((_, response) => {
  const content = "<think>I do not know better.</think><action>look</action>";
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ choices: [{ message: { role: "assistant", content } }] }));
});
await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));

const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
const environment = openEnvironment({ name: "household" });
const style = promptStyle(environment.prompt);
const groups = await rollout({
  environment,
  style,
  policy: chatPolicy({ baseUrl, model: "stand-in", prompting: "reflexion" }, style),
  tasks: environment.tasks("train").slice(0, 2),
  groupSize: 2,
  seed: 0,
  stepLimit: 5,
  concurrency: 2,
});
for (const { task, episodes } of groups)
  console.log(
    task.id,
    episodes.map((episode) => episode.stop),
  );
server.close();
