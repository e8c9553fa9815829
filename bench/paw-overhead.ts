/**
 * What world modelling costs: updates with and without it, interleaved, from the same weights,
 * tasks and seeds. The learning rate is 0, so that every update does all of its work and leaves the
 * weights unchanged for the next one.
 *
 *   npm run bench -- paw-overhead [--rounds 15] [--groups 16] [--threads 2] \
 *     [--form steps|merged|both|chat]
 *
 * Measured in the paper's form (two steps of history, one sequence per step, so that observations
 * are appended) and in the merged form (whole history, one sequence per episode, which holds them
 * anyway). With `--form chat`, conversations against the merged form, both with PaW, interleaved.
 * Two models act differently, so here the world takes the expert's action whatever they say, and
 * episodes end after 6 steps: both read the same observations.
 *
 *   update_ratio       time of scoring, preparing and learning with PaW ÷ without
 *   observation_share  tokens trained on with PaW ÷ without, minus 1: the appended ones
 *   step_ratio         time of the whole update, rollout included, with PaW ÷ without
 *   rollout_ratio      time of the rollout with PaW ÷ without
 *   trainer_share      time with PaW outside engine and environment ÷ time of the whole update;
 *                      includes recording episodes and metrics
 *   measure_share      time of measuring both gradients for the diagnostics ÷ time of the whole
 *                      update; here at each update, in a run every gradients.every updates;
 *                      excluded from the other numbers
 *   chat_ratio         time of the whole update per step, chat ÷ compact; no more than chat_length
 *                      if a conversation costs its extra tokens and nothing else
 *   chat_cpu_ratio     the same in CPU time, for a machine that others use too
 *   chat_rollout_ratio, chat_update_ratio
 *                      the same of the rollout, and of scoring, preparing and learning
 *   chat_length        tokens of whole episodes per step, chat ÷ compact
 *   chat_tokens        tokens in the sequences trained on, which end at their last target
 *   chat_sampled       tokens of the responses
 */
import { mkdtempSync, rmSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Engine } from "@pawl/core/engine/engine.js";
import type { Env, Environment, Teacher } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { findEnvKind } from "@pawl/core/envs/registry.js";
import { expertPolicy } from "@pawl/core/rollout/policies/config.js";
import { rollout } from "@pawl/core/rollout/rollout.js";
import { createRun } from "@pawl/core/runs/run-folder.js";
import { type PromptOptions, promptStyle } from "@pawl/core/text/prompt.js";
import { buildTokenizer } from "@pawl/core/text/tokenizer-builder.js";
import { updateMetrics } from "@pawl/core/train/metrics.js";
import { trainRl } from "@pawl/core/train/rl.js";
import type { FinishedUpdate } from "@pawl/core/train/rl-types.js";
import { sft } from "@pawl/core/train/sft.js";
import { createEmbeddedEngine } from "@pawl/engine-cpu/embedded-engine.js";
import { trainConfig } from "@pawl/training/config.js";
import { worldTexts } from "@pawl/training/world-text.js";
import { laptop } from "../recipes/laptop.js";

const { values: options } = parseArgs({
  args: process.argv.slice(3),
  options: {
    rounds: { type: "string", default: "15" },
    groups: { type: "string", default: "16" },
    episodes: { type: "string", default: "400" },
    threads: { type: "string", default: "2" },
    form: { type: "string", default: "both" },
  },
});
const rounds = Number(options.rounds);

const median = (numbers: readonly number[]): number =>
  [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)]!;

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

/** Counts the seconds spent in calls. */
function createMeter() {
  let seconds = 0;
  let depth = 0;
  let begin = 0;
  const enter = (): void => {
    if (depth++ === 0) begin = performance.now();
  };
  const leave = (): void => {
    if (--depth === 0) seconds += (performance.now() - begin) / 1000;
  };
  return {
    take(): number {
      const taken = seconds;
      seconds = 0;
      return taken;
    },
    /** The same object, with its methods timed. */
    watch<T extends object>(object: T, wrapResult = (result: unknown): unknown => result): T {
      return new Proxy(object, {
        get: (target, name) => {
          const value = Reflect.get(target, name, target) as unknown;
          if (typeof value !== "function") return value;
          return (...args: unknown[]) => {
            enter();
            let result: unknown;
            try {
              result = wrapResult(value.apply(target, args));
            } catch (error) {
              leave();
              throw error;
            }
            if (result instanceof Promise) return result.finally(leave);
            leave();
            return result;
          };
        },
      });
    },
  };
}

/** One update of one arm. */
interface Measured {
  /** Steps of the episodes. */
  readonly steps: number;
  /** Seconds of all threads, which other programs of the machine change less. */
  readonly cpu: number;
  readonly update: number;
  readonly rollout: number;
  readonly measure: number;
  readonly whole: number;
  readonly outside: number;
  readonly tokens: number;
  /** Tokens of the policy's responses, and of whole episodes. */
  readonly sampled: number;
  readonly length: number;
}

type Loss = "cmae" | "off";

/** A model that acts like one in training, in one form of prompts. */
interface Trainer {
  once(loss: Loss, round: number): Promise<Measured>;
  close(): Promise<void>;
}

/** The same world, which takes the expert's action in place of any other. */
function guided(env: Env, expert: Teacher): Env {
  return new Proxy(env, {
    get(target, name) {
      if (name === "step") return () => target.step(expert(target));
      const value = Reflect.get(target, name, target) as unknown;
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

async function prepare(prompt: PromptOptions, short = false): Promise<Trainer> {
  const folder = mkdtempSync(join(tmpdir(), "pawl-overhead-"));
  const config = trainConfig(findEnvKind(laptop.env.name)).parse({
    ...laptop,
    prompt,
    groups: Number(options.groups),
    gradients: { every: 1 },
    ...(short && {
      stepLimit: 6,
      invalidActionLimit: undefined,
      gradients: { every: 0 },
      // Corrections are as long as the teacher needs, which differs between the two.
      corrections: { episodes: 0 },
    }),
  });
  const environment = openEnvironment({ ...config.env, name: laptop.env.name });
  const style = promptStyle(environment.prompt, config.prompt);
  const tokenizer = buildTokenizer(await worldTexts(environment, style), {
    chat: prompt.style === "chat",
  });
  const engine = await createEmbeddedEngine({
    model: {
      preset: "tiny",
      vocabularySize: tokenizer.vocabularySize,
      maxContext: config.model.maxContext,
    },
    threads: Number(options.threads),
  });
  // After a little imitation, a model acts, and meets observations, like one that is being trained.
  const expert = await rollout({
    environment,
    style,
    policy: expertPolicy(environment.expert!),
    tasks: environment.tasks("train").slice(0, Number(options.episodes)),
    groupSize: 1,
    seed: 0,
  });
  const episodes = expert.flatMap((group) => group.episodes);
  await sft(
    engine,
    episodes,
    { tokenizer, style },
    { ...config.warmStart.sft, epochs: 1, seed: 0 },
  );
  const run = createRun(
    { folder: join(folder, "run"), kind: "train", seed: 0, config },
    console.error,
  );
  const engineMeter = createMeter();
  const envMeter = createMeter();
  const watchedEngine: Engine = engineMeter.watch(engine);
  // The time in each episode's world is measured; task lists count as the trainer's.
  const watchedEnvironment: Environment = {
    ...environment,
    create() {
      const env = environment.create() as Env;
      return envMeter.watch(short ? guided(env, environment.expert!) : env);
    },
  };

  const once = async (loss: Loss, round: number): Promise<Measured> => {
    engineMeter.take();
    envMeter.take();
    const begin = performance.now();
    const used = process.cpuUsage();
    let finished: FinishedUpdate | undefined;
    await trainRl(
      {
        engine: watchedEngine,
        environment: watchedEnvironment,
        tokenizer,
        style,
        firstUpdate: round,
        optimizerSteps: 0,
        onEpisodes: async (groups) => run.recordEpisodes(groups.flatMap((group) => group.episodes)),
        async onUpdate(done) {
          finished = done;
          run.recordMetrics(updateMetrics(done));
        },
      },
      {
        ...config,
        updates: round + 1,
        paw: { ...config.paw, loss },
        optimizer: { ...config.optimizer, learningRate: 0 },
      },
    );
    const all = (performance.now() - begin) / 1000;
    const { user, system } = process.cpuUsage(used);
    const { seconds, learnt, groups } = finished!;
    const episodes = groups.flatMap((group) => group.episodes);
    const steps = episodes.flatMap((one) => one.steps);
    return {
      steps: steps.length,
      sampled: sum(steps.map(({ sequence }) => sequence!.logprobs!.length)),
      length: sum(episodes.map((one) => one.steps.at(-1)!.sequence!.ids.length)),
      cpu: (user + system) / 1e6,
      update: seconds.score + seconds.prepare + seconds.learn,
      rollout: seconds.rollout,
      measure: seconds.measure,
      whole: all - seconds.measure,
      outside: all - engineMeter.take() - envMeter.take(),
      tokens: learnt!.tokens,
    };
  };

  return {
    once,
    async close() {
      run.finish("done");
      await engine.dispose();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Measures both arms in one form of prompts. */
async function measure(history: 2 | "all"): Promise<Record<string, number>> {
  const { once, close } = await prepare({ style: "compact", history });
  const pairs: { readonly paw: Measured; readonly plain: Measured }[] = [];
  for (let round = 0; round <= rounds; round++) {
    // Alternating order, so that warm-up effects favour neither.
    const first = round % 2 === 0 ? "cmae" : "off";
    const a = await once(first, round);
    const b = await once(first === "cmae" ? "off" : "cmae", round);
    const pair = first === "cmae" ? { paw: a, plain: b } : { paw: b, plain: a };
    console.error(JSON.stringify({ history, round, ...pair }));
    if (round > 0) pairs.push(pair);
  }
  await close();
  const over = (of: (pair: (typeof pairs)[number]) => number): number =>
    Number(median(pairs.map(of)).toFixed(4));
  return {
    update_ratio: over(({ paw, plain }) => paw.update / plain.update),
    observation_share: over(({ paw, plain }) => paw.tokens / plain.tokens - 1),
    step_ratio: over(({ paw, plain }) => paw.whole / plain.whole),
    rollout_ratio: over(({ paw, plain }) => paw.rollout / plain.rollout),
    trainer_share: over(({ paw }) => paw.outside / paw.whole),
    measure_share: over(({ paw }) => paw.measure / (paw.whole + paw.measure)),
    update_s: over(({ paw }) => paw.whole),
  };
}

/** Measures conversations against compact prompts with the whole history. */
async function measureChat(): Promise<Record<string, number>> {
  const compact = await prepare({ style: "compact", history: "all" }, true);
  const chat = await prepare({ style: "chat" }, true);
  const pairs: { readonly chat: Measured; readonly compact: Measured }[] = [];
  for (let round = 0; round <= rounds; round++) {
    const chatFirst = round % 2 === 0;
    const first = await (chatFirst ? chat : compact).once("cmae", round);
    const second = await (chatFirst ? compact : chat).once("cmae", round);
    const pair = chatFirst ? { chat: first, compact: second } : { chat: second, compact: first };
    console.error(JSON.stringify({ round, ...pair }));
    if (round > 0) pairs.push(pair);
  }
  await compact.close();
  await chat.close();
  const over = (of: (one: Measured) => number): number =>
    Number(median(pairs.map((pair) => of(pair.chat) / of(pair.compact))).toFixed(4));
  return {
    chat_ratio: over(({ whole, steps }) => whole / steps),
    chat_cpu_ratio: over(({ cpu, steps }) => cpu / steps),
    chat_tokens: over(({ tokens, steps }) => tokens / steps),
    chat_length: over(({ length, steps }) => length / steps),
    chat_sampled: over(({ sampled, steps }) => sampled / steps),
    chat_rollout_ratio: over(({ rollout, steps }) => rollout / steps),
    chat_update_ratio: over(({ update, steps }) => update / steps),
  };
}

/** Runs the forms that were asked for. */
export async function main(): Promise<Record<string, number | string>> {
  const load = loadavg()[0]!;
  const { form } = options;
  const steps = form === "steps" || form === "both" ? await measure(2) : {};
  const merged = form === "merged" || form === "both" ? await measure("all") : {};
  return {
    ...(form === "chat" && (await measureChat())),
    ...steps,
    ...Object.fromEntries(Object.entries(merged).map(([name, value]) => [`merged_${name}`, value])),
    machine: `${cpus().length} × ${cpus()[0]!.model}, Node ${process.version}, ${options.threads} threads`,
    load: Number(load.toFixed(1)),
    rounds,
    groups: Number(options.groups),
  };
}
