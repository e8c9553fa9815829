/** Recorded runs for tests of exports: prose, tool calls, and a conversation with its tokens. */
import { openEnvironment } from "@pawl/core/envs/open.js";
import type { Episode, Step } from "@pawl/core/rollout/episode.js";
import { expertPolicy } from "@pawl/core/rollout/policies/config.js";
import { recordRollout } from "@pawl/core/runs/record-rollout.js";
import { createRun } from "@pawl/core/runs/run-folder.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import type { PromptPiece } from "@pawl/core/text/prompt-style.js";

/** Records episodes of an expert: of the household in prose, or of the desk with tools. */
export async function recordExpert(
  folder: string,
  name: "household" | "desk",
  tasks: number,
): Promise<void> {
  const environment = openEnvironment({ name });
  const prompt = { style: name === "desk" ? ("chat" as const) : ("full" as const) };
  await recordRollout(
    {
      environment,
      style: promptStyle(environment.prompt, prompt),
      policy: expertPolicy(environment.expert!),
      tasks: environment.tasks("train").slice(0, tasks),
      groupSize: 2,
      seed: 0,
    },
    { folder, config: { env: { name }, prompt } },
  );
}

const piece = (role: "system" | "user" | "assistant", text: string): PromptPiece => ({
  origin: role === "system" ? "system" : "history",
  text,
  role,
});

const OPENING = [piece("system", "You act."), piece("user", "Find the key.\n\nA door.")];

const step = (prompt: readonly PromptPiece[], rest: Partial<Step>): Step => ({
  prompt,
  response: "",
  action: "",
  wellFormed: true,
  valid: true,
  observation: "",
  reward: 0,
  ...rest,
});

/**
 * A conversation whose second step continues the tokens of the first, and whose third, after the
 * history was cut, does not.
 */
export const spokenEpisode: Episode = {
  task: { id: "train/3", split: "train", type: "find" },
  ...{ group: 3, attempt: 1, seed: 4_000_000_000, policy: "engine" },
  goal: "Find the key.",
  firstObservation: "A door.",
  steps: [
    step(OPENING, {
      ...{ response: "<think>\nHm.\n</think>\n\nopen door", action: "open door" },
      ...{ observation: "It is open.", reward: 0.25 },
      sequence: {
        ids: [1, 2, 3, 4, 5, 6, 7],
        spans: [
          { kind: "prompt", start: 0, end: 1, origin: "template" },
          { kind: "prompt", start: 1, end: 3, origin: "task" },
          { kind: "action", start: 3, end: 5, origin: "policy" },
          { kind: "template", start: 5, end: 6, origin: "template" },
          { kind: "observation", start: 6, end: 7, origin: "observation" },
        ],
        logprobs: [-0.5, -0.25],
      },
    }),
    step(
      [
        ...OPENING,
        piece("assistant", "<think>\nHm.\n</think>\n\nopen door"),
        piece("user", "It is open."),
      ],
      {
        ...{ response: "go in", action: "go in", observation: "A key.", reward: 0 },
        sequence: {
          ids: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
          spans: [
            { kind: "prompt", start: 0, end: 8, origin: "history" },
            { kind: "action", start: 8, end: 9, origin: "policy" },
            { kind: "observation", start: 9, end: 10, origin: "observation" },
          ],
          logprobs: [-1],
        },
      },
    ),
    step([...OPENING, piece("assistant", "go in"), piece("user", "A key.")], {
      ...{ response: "take key", action: "take key", observation: "Done.", reward: 0.75 },
      sequence: {
        ids: [1, 2, 8, 11, 12],
        spans: [
          { kind: "prompt", start: 0, end: 3, origin: "history" },
          { kind: "action", start: 3, end: 4, origin: "policy" },
          { kind: "observation", start: 4, end: 5, origin: "observation" },
        ],
        logprobs: [-2],
      },
    }),
  ],
  ...{ return: 1, success: true, score: 0.5, stop: "done" },
};

/** An episode whose world failed before its first step. */
export const brokenEpisode: Episode = {
  ...spokenEpisode,
  ...{ attempt: 2, steps: [], return: 0, success: false, stop: "broken", error: "no server" },
};

/** What an agent did: a call of a tool, and an answer that is worth half a point. */
export const agentEpisode: Episode = {
  ...spokenEpisode,
  ...{ attempt: 3, return: 0.5, success: false },
  steps: spokenEpisode.steps.slice(0, 1).map((one) => ({
    ...one,
    calls: [{ tool: "open", arguments: '{"what":"door"}', result: "It is open." }],
    seconds: 1.5,
  })),
  ...{ given: { ask: "key", where: ["door"] }, result: { key: false }, why: "half of it" },
};

/** Records given episodes. */
export function recordEpisodes(folder: string, episodes: readonly Episode[]): void {
  const run = createRun(
    { folder, kind: "eval", seed: 1, config: { env: { name: "household" }, checkpoint: "runs/x" } },
    () => undefined,
  );
  for (const episode of episodes) run.recordEpisodes([episode]);
  run.finish("done");
}
