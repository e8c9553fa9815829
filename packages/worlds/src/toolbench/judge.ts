/**
 * Whether an answer solves a question, by a chat model, in StableToolBench's two steps: first the
 * final answer alone; if the judge is unsure, the whole course of the episode.
 */
import { askEndpoint, type ChatEndpoint } from "@pawl/core/envs/chat-endpoint.js";
import { EnvError } from "@pawl/core/envs/env.js";

/** What a judge can say, and what it is worth in the benchmark's solve rate. */
export const VERDICTS = { Solved: 1, Unsure: 0.5, Unsolved: 0 } as const;

/** A judge's verdict. */
export type Verdict = keyof typeof VERDICTS;

const RULES = [
  "You judge whether an answer solves a user's query.",
  "Solved: the answer gives what the query asks for, all of it. Unsolved: it refuses, fails, gives nothing of use, or leaves a part out. Unsure: what you see does not decide it.",
  "End with one line: VERDICT: Solved, VERDICT: Unsolved or VERDICT: Unsure.",
].join("\n");

/** Asks the judge. */
export async function judgeAnswer(
  judge: ChatEndpoint,
  query: string,
  answer: string,
  course: string,
  signal?: AbortSignal,
): Promise<Verdict> {
  if (answer.trim() === "") return "Unsolved";
  const ask = async (shown: string): Promise<Verdict> => {
    const content = `${RULES}\n\nQuery:\n${query}\n\n${shown}`;
    const reply = await askEndpoint(judge, [{ role: "user", content }], { seed: 0, signal });
    return verdictOf(reply.content);
  };
  const first = await ask(`Answer:\n${answer}`);
  return first === "Unsure" ? ask(`What was done:\n${course}\n\nAnswer:\n${answer}`) : first;
}

/** The last verdict of a text; none is an error, which breaks the episode. */
export function verdictOf(text: string): Verdict {
  const found = [...text.matchAll(/\b(Solved|Unsolved|Unsure)\b/gi)].at(-1)?.[1]?.toLowerCase();
  const verdict = (Object.keys(VERDICTS) as Verdict[]).find((one) => one.toLowerCase() === found);
  if (verdict !== undefined) return verdict;
  throw new EnvError(
    `toolbench: the judge should end with VERDICT: Solved, Unsolved or Unsure, and said ${JSON.stringify(text.slice(-80))}`,
  );
}
