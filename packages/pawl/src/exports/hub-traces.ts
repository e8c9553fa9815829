/**
 * Episodes as sessions for the Hugging Face hub's trace viewer: a folder with one `.jsonl` for each
 * episode, whose first line names the session, and the card of a data set.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { episodeName, lines, type Source } from "./source.js";
import { readably, type SpokenMessage, spokenIn } from "./spoken.js";

/** The hub takes at most 10,000 files in one folder. */
const PER_FOLDER = 1000;

/** Fills a folder with sessions. */
export async function writeHubTraces(folder: string, source: Source): Promise<void> {
  let count = 0;
  let made = "";
  for (const episode of source.episodes()) {
    const part = String(Math.floor(count++ / PER_FOLDER)).padStart(4, "0");
    const file = join(folder, "sessions", part, `${episodeName(episode)}.jsonl`);
    if (made !== part) await mkdir(dirname(file), { recursive: true });
    made = part;
    await writeFile(file, [...lines(sessionOf(episode, source))].join(""));
  }
  await writeFile(join(folder, "README.md"), datasetCard(source, count));
}

function* sessionOf(episode: Episode, source: Source): Generator<unknown> {
  const { task, success, stop } = episode;
  yield {
    type: "session",
    harness: "pawl",
    id: `${source.name}/${episodeName(episode)}`,
    name: episode.goal.slice(0, 120) || task.id,
    task: task.id,
    taskType: task.type,
    split: task.split,
    return: episode.return,
    success,
    stop,
    rewards: episode.steps.map(({ reward }) => reward),
  };
  for (const { messages } of spokenIn(episode, readably))
    for (const message of messages)
      yield { type: "message", message: traceMessage(message, episode.policy) };
}

function traceMessage(
  { role, content, reasoning, calls, answers, step }: SpokenMessage,
  model: string,
): unknown {
  return {
    role,
    content,
    reasoningContent: reasoning,
    toolCalls: calls?.map(({ id, tool, arguments: text }) => ({
      id,
      function: { name: tool, arguments: text },
    })),
    toolCallId: role === "tool" ? answers : undefined,
    model: step === undefined ? undefined : model,
  };
}

function datasetCard({ name, environment, manifest, player }: Source, count: number): string {
  return `---
configs:
  - config_name: default
    data_files:
      - split: train
        path: "sessions/**/*.jsonl"
tags:
  - agent-traces
  - pawl
---

# ${name}

${count} episodes of ${player} in ${environment}, recorded by pawl ${manifest.versions.pawl ?? ""}
(${manifest.kind}, seed ${manifest.seed}, ${manifest.createdAt}).
`;
}
