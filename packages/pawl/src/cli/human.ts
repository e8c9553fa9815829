/** A person at the terminal as a policy. */
import type { Situation } from "@pawl/core/rollout/policy.js";
import type { Asker } from "./asker.js";
import { type Io, print } from "./io.js";

/** Shows a situation and asks for an action. */
export async function askPerson(
  situation: Situation,
  asker: Asker,
  io: Io,
  signal: AbortSignal,
): Promise<string> {
  const { bold, dim } = io.colors;
  if (situation.index === 0) print(io, `\n${dim(situation.task.id)} ${bold(situation.goal)}`);
  print(io, situation.observation);
  const answer = await asker.ask(
    dim(`${situation.index + 1}> `),
    () => situation.admissible ?? [],
    signal,
  );
  if (answer === undefined) throw new Error("the input ended before the episode did");
  return answer;
}
