/** The episodes that a warm start imitates: a teacher's, played now or recorded earlier. */
import { isDeepStrictEqual } from "node:util";
import { isAgentEnvironment } from "@pawl/agents/agent-environment.js";
import { chatConversation, encodeConversation } from "@pawl/agents/chat-tokens.js";
import { readTranscripts } from "@pawl/agents/imports/read-transcripts.js";
import type { Transcript } from "@pawl/agents/imports/transcript.js";
import { ConfigError } from "@pawl/core/config/config-error.js";
import type { Engine } from "@pawl/core/engine/engine.js";
import { EnvError, type Environment } from "@pawl/core/envs/env.js";
import { mixSeed } from "@pawl/core/random.js";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { teacherPolicy } from "@pawl/core/rollout/policies/config.js";
import { rollout } from "@pawl/core/rollout/rollout.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { decodeResponse, encodePrompt, encodeResponse } from "@pawl/core/text/encode.js";
import type { PromptStyle } from "@pawl/core/text/prompt.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import { countingEpisodes, type OnActivity } from "@pawl/core/train/activity.js";
import { checkLengths, learntOf, type SftOptions, targetsOf } from "@pawl/core/train/sft.js";
import { type MergedSequence, mergeContinuations } from "@pawl/core/update/merge.js";
import type { TrainConfig } from "./config.js";

// Other programs' conversations as samples of a warm start, in the model's own chat template: the
// assistant's messages are imitated, and the answers to them learned as `observationWeight` says.

/** Refuses what would be ignored, and files that hold too little. */
export function checkWarmStart({ warmStart, prompt }: TrainConfig): void {
  const { data, runs, episodes } = warmStart;
  if (data.length === 0) return;
  if (runs.length > 0)
    throw new ConfigError("warmStart.data: contradicts warmStart.runs; give only one of them");
  if (episodes === 0)
    throw new ConfigError(
      "warmStart.data is given, but warmStart.episodes is 0: say how many conversations to imitate",
    );
  if (prompt.style !== "chat")
    throw new ConfigError(
      `warmStart.data: conversations are imitated in the chat template, but prompt.style is ${prompt.style}: set it to chat`,
    );
  const held = data.flatMap((path) => readTranscripts(path, () => undefined)).length;
  if (held < episodes) throw tooFew(episodes, held);
}

const tooFew = (episodes: number, held: number): ConfigError =>
  new ConfigError(
    `warmStart.episodes is ${episodes}, but the files that warmStart.data names hold ${held} that can be used: lower it, or give more`,
  );

/** The model that learns, and how its conversations are written. */
interface TranscriptSetup {
  readonly tokenizer: Tokenizer;
  readonly style: PromptStyle;
  readonly engine: Pick<Engine, "capabilities">;
}

/** As many samples as configured; conversations that are too long for the model are left out. */
export function transcriptSamples(
  setup: TranscriptSetup,
  warmStart: TrainConfig["warmStart"],
  { onProblem = () => undefined }: { readonly onProblem?: (message: string) => void },
): readonly (readonly MergedSequence[])[] {
  const { data, episodes, sft } = warmStart;
  const left = new Map<string, { count: number; first: string }>();
  const leaveOut = (kind: string, where: string): void => {
    const known = left.get(kind) ?? { count: 0, first: where };
    known.count++;
    left.set(kind, known);
  };
  const { maxContext } = setup.engine.capabilities;
  const samples: (readonly MergedSequence[])[] = [];
  for (const transcript of data.flatMap((path) => readTranscripts(path, leaveOut))) {
    if (samples.length === episodes) break;
    const sequences = transcriptSequences(transcript, setup, sft);
    const longest = Math.max(0, ...sequences.map(({ ids }) => ids.length));
    if (longest === 0) leaveOut("nothing in it is the model's own", transcript.where);
    else if (longest > maxContext)
      leaveOut(`longer than the model's context of ${maxContext} tokens`, transcript.where);
    else samples.push(sequences);
  }
  for (const [kind, { count, first }] of left)
    onProblem(`warmStart.data: ${count} left out: ${kind} (first: ${first})`);
  if (samples.length < episodes) throw tooFew(episodes, samples.length);
  return samples;
}

/** A conversation as sequences; where the template is append-only, it is one. */
export function transcriptSequences(
  { messages, own, tools }: Transcript,
  { tokenizer, style }: Pick<TranscriptSetup, "tokenizer" | "style">,
  {
    actionWeight = 1,
    observationWeight,
  }: Partial<Pick<SftOptions, "actionWeight">> & Pick<SftOptions, "observationWeight">,
): readonly MergedSequence[] {
  const form = { tools, calls: style.callForm ?? "json" };
  const { endIds } = tokenizer;
  // The answers to a message that was imitated on another path were learned there.
  let learned = false;
  const steps = messages.flatMap((_, at) => {
    if (messages[at]!.role !== "assistant") return [];
    const answers = learned;
    learned = own[at]!;
    if (!own[at]) return [];
    const prompt = encodeConversation(
      tokenizer,
      chatConversation(messages.slice(0, at), form),
      style,
    );
    const [said] = chatConversation(messages.slice(at, at + 1), form).messages;
    const response = encodeResponse(
      tokenizer,
      style,
      said!.pieces.map(({ text }) => text).join(""),
    );
    const seen = answers ? prompt.spans.filter(({ origin }) => origin === "observation") : [];
    const start = seen[0]?.start ?? prompt.ids.length;
    const ids = [...prompt.ids, ...response];
    const learnsObservations = observationWeight > 0;
    const observations = new Float32Array(ids.length - start);
    if (learnsObservations)
      for (const span of seen) {
        const isEnded = style.observationEnd === "learnt" && endIds.includes(ids[span.end]!);
        const end = isEnded ? span.end + 1 : span.end;
        observations.fill(1, span.start - start, end - start);
      }
    const actions = new Float32Array(ids.length - start);
    if (actionWeight > 0) actions.fill(1, prompt.ids.length - start);
    return [{ ids, start, ...targetsOf(actions, observations, learnsObservations) }];
  });
  return mergeContinuations(steps);
}

/** Where the teacher plays, and how its episodes are rendered. */
export interface TeacherSetup {
  readonly environment: Environment;
  readonly style: PromptStyle;
}

interface TeacherCallbacks {
  readonly onProblem?: (message: string) => void;
  readonly onActivity?: OnActivity;
}

/** As many episodes as configured; tasks are repeated, with other seeds, if there are fewer. */
export async function teacherEpisodes(
  { environment, style }: TeacherSetup,
  config: Pick<TrainConfig, "warmStart" | "split" | "seed" | "stepLimit" | "env" | "prompt">,
  { onProblem = () => undefined, onActivity }: TeacherCallbacks = {},
): Promise<readonly Episode[]> {
  const {
    episodes,
    teacher,
    epsilon,
    runs,
    minReturn = Number.NEGATIVE_INFINITY,
  } = config.warmStart;
  if (runs.length > 0) {
    const recorded = runs
      .flatMap((folder) => recordedEpisodes(folder, config, onProblem))
      .filter((episode) => episode.return >= minReturn);
    if (recorded.length < episodes) {
      const worth = minReturn > Number.NEGATIVE_INFINITY ? ` worth ${minReturn} or more` : "";
      const command = isAgentEnvironment(environment) ? "distill" : "rollout";
      throw new ConfigError(
        `warmStart.episodes is ${episodes}, but the runs that warmStart.runs names hold ${recorded.length}${worth}: lower it, or record more with pawl ${command}`,
      );
    }
    return recorded.slice(0, episodes);
  }
  if (environment[teacher] === undefined) {
    throw new EnvError(
      `${environment.name} has no ${teacher} to imitate: set warmStart.episodes to 0`,
    );
  }
  const tasks = environment.tasks(config.split);
  const groups = await rollout({
    environment,
    style,
    policy: teacherPolicy(environment, teacher, epsilon),
    tasks: Array.from({ length: episodes }, (_, i) => tasks[i % tasks.length]!),
    groupSize: 1,
    seed: mixSeed(config.seed, "warm start"),
    ...countingEpisodes("the teacher plays", episodes, onActivity),
    ...(config.stepLimit !== undefined && { stepLimit: config.stepLimit }),
  });
  return groups.flatMap((group) => group.episodes).filter(isWhole);
}

const isWhole = (episode: Episode): boolean => episode.stop !== "broken";

/**
 * The unbroken episodes of a run; its prompts are imitated unchanged, so they must match this
 * run's.
 */
function recordedEpisodes(
  folder: string,
  { env, prompt }: Pick<TrainConfig, "env" | "prompt">,
  onProblem: (message: string) => void,
): readonly Episode[] {
  const run = openRun(folder, onProblem);
  const recorded = run.manifest.config as Partial<Pick<TrainConfig, "env" | "prompt">>;
  if (recorded.env?.name !== env.name)
    throw new ConfigError(
      `warmStart.runs: ${folder} was played in ${String(recorded.env?.name)}; expected episodes of ${env.name}`,
    );
  if (!isDeepStrictEqual(recorded.prompt, prompt))
    throw new ConfigError(
      `warmStart.runs: ${folder} was recorded with the prompt settings ${JSON.stringify(recorded.prompt)}; expected ${JSON.stringify(prompt)}, as in this run`,
    );
  return [...run.episodes()].filter(isWhole);
}

/**
 * An agent's episodes as samples, in the tokens that were recorded: programs fork, and only the
 * record says how. Refuses those of a model that writes with other tokens.
 */
export function agentSamples(
  episodes: readonly Episode[],
  { tokenizer, style, engine }: TranscriptSetup,
  options: SftOptions,
): readonly (readonly MergedSequence[])[] {
  const samples = episodes.map(({ task, attempt, steps }) =>
    mergeContinuations(
      steps.map(({ sequence, prompt, response }) => {
        const start = sequence?.spans.find(({ kind }) => kind === "action")?.start;
        const end = sequence?.spans.findLast(({ kind }) => kind === "action")?.end;
        const said = sequence?.ids.slice(start, end) ?? [];
        const isWhole = prompt.every(({ role }) => role !== "assistant");
        const isOurs =
          said.every((id) => id < tokenizer.vocabularySize) &&
          decodeResponse(tokenizer, style, said) === response &&
          (!isWhole ||
            isDeepStrictEqual(
              encodePrompt(tokenizer, style, prompt).ids,
              sequence?.ids.slice(0, start),
            ));
        if (sequence === undefined || start === undefined || !isOurs)
          throw new ConfigError(
            `warmStart.runs: the episode of task ${task.id}, attempt ${attempt}, was recorded in the tokens of another model: expected those of this run's; record with pawl distill --student and the model.start of this run`,
          );
        return { start, ...learntOf(sequence, start, { ...options, isLearnt: true }) };
      }),
    ),
  );
  checkLengths(samples, engine.capabilities.maxContext);
  return samples;
}
