/**
 * A run as a log of Inspect (`inspect view`, `read_eval_log`): a zip with a header, one file for each
 * sample, and summaries of all of them.
 */
import { urlPart } from "@pawl/core/plain-text.js";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { createTally, rates } from "@pawl/core/rollout/tally.js";
import { packageVersion } from "@pawl/core/version.js";
import type { Source } from "./source.js";
import { readably, type SpokenMessage, spokenIn } from "./spoken.js";
import { writeZip, type ZipEntry } from "./zip-file.js";

/** Longer inputs are cut in the summaries, which are held in memory until the end. */
const LONGEST_INPUT = 200;

/** Writes the log; the file's name must end in `.eval`. */
export async function writeInspectLog(file: string, source: Source): Promise<void> {
  await writeZip(file, entriesOf(source));
}

function* entriesOf(source: Source): Generator<ZipEntry> {
  const tally = createTally();
  const summaries: unknown[] = [];
  const played = new Map<string, number>();
  const json = (value: unknown): string => JSON.stringify(value);
  for (const episode of source.episodes()) {
    tally.add(episode);
    // Inspect knows a sample by its id and epoch: here the task, and how often it was played.
    const { id } = episode.task;
    const epoch = (played.get(id) ?? 0) + 1;
    played.set(id, epoch);
    const sample = sampleOf(episode, epoch);
    const { input, target, scores } = sample;
    summaries.push({ id, epoch, input: input.slice(0, LONGEST_INPUT), target, scores });
    // Task ids may hold slashes and other things that are no file names.
    yield { name: `samples/${urlPart(id)}_epoch_${epoch}.json`, content: json(sample) };
  }
  yield { name: "summaries.json", content: json(summaries) };
  const { success, score } = rates(tally.all);
  const metric = (name: string, value: number) => ({ [name]: { name, value, params: {} } });
  const scored = [
    { name: "success", value: success },
    { name: "score", value: score },
  ].filter(({ value }) => Number.isFinite(value));
  const { manifest } = source;
  const config = manifest.config as Readonly<Record<string, unknown>>;
  const count = tally.all.episodes + tally.all.broken;
  yield {
    name: "header.json",
    content: json({
      version: 2,
      status: "success",
      eval: {
        run_id: source.name,
        created: manifest.createdAt,
        task: source.environment,
        task_id: source.name,
        dataset: { name: source.environment, samples: played.size },
        model: source.player,
        config: {},
        tags: ["pawl", manifest.kind],
        metadata: { config, seed: manifest.seed },
        packages: { pawl: packageVersion() },
      },
      plan: { name: "plan", steps: [], config: {} },
      results: {
        total_samples: count,
        completed_samples: tally.all.episodes,
        scores: scored.map(({ name, value }) => ({
          name,
          scorer: name,
          params: {},
          metrics: metric("mean", value),
        })),
      },
      stats: {
        started_at: manifest.createdAt,
        completed_at: manifest.finishedAt ?? manifest.createdAt,
        model_usage: {},
      },
    }),
  };
}

function sampleOf(episode: Episode, epoch: number) {
  const { task, goal, success, score, stop, error, steps } = episode;
  const broken = stop === "broken";
  const messages = spokenIn(episode, readably).flatMap((one) => one.messages);
  return {
    id: task.id,
    epoch,
    input: goal,
    target: "",
    messages: messages.map(inspectMessage),
    output: { model: episode.policy, choices: [] },
    scores: broken
      ? {}
      : {
          success: { value: success ? 1 : 0, explanation: `ended by: ${stop}` },
          return: { value: episode.return, explanation: episode.why },
          score: score === undefined ? undefined : { value: score },
        },
    metadata: {
      type: task.type,
      split: task.split,
      group: episode.group,
      attempt: episode.attempt,
      seed: episode.seed,
      stop,
      rewards: steps.map(({ reward }) => reward),
      given: episode.given,
      result: episode.result,
    },
    store: {},
    events: [],
    model_usage: {},
    attachments: {},
    error: broken
      ? { message: error ?? "no reason given", traceback: "", traceback_ansi: "" }
      : undefined,
    limit: stop === "step-limit" ? { type: "message", limit: steps.length } : undefined,
  };
}

function inspectMessage({ role, content, reasoning, calls, answers }: SpokenMessage): unknown {
  return {
    role,
    content:
      reasoning === undefined
        ? content
        : [
            { type: "reasoning", reasoning },
            { type: "text", text: content },
          ],
    tool_calls: calls?.map(({ id, tool, arguments: text }) => ({
      id,
      function: tool,
      arguments: JSON.parse(text) as unknown,
      type: "function",
    })),
    tool_call_id: role === "tool" ? answers : undefined,
  };
}
