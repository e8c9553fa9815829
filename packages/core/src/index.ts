// biome-ignore-all assist/source/organizeImports: in the order in which they are met.
/** The library without engines: what a program needs that brings its own. It is `@pawl/core`. */

// ── Worlds

/** Makes a world that is acted in by text into an environment. */
export { defineEnv } from "./envs/define-env.js";
/** Makes a world that is acted in by tool calls into an environment. */
export { defineToolEnv } from "./envs/define-env.js";
/** Opens an environment by its name and options. */
export { openEnvironment } from "./envs/open.js";
/** The kind of environment that has this name. */
export { findEnvKind } from "./envs/registry.js";
/** The lists of tasks of an environment, by split. */
export { taskLists } from "./envs/task-lists.js";
/** Tasks that are told apart by their numbers alone. */
export { numberedTasks } from "./envs/task-lists.js";
/** The contract of environments, as tests to run. */
export { envChecks } from "./envs/conformance.js";
/** A problem with an environment, shown to the user as it is. */
export { EnvError } from "./envs/env.js";
/** A world that runs one episode at a time. */
export type { Env } from "./envs/env.js";
/** The same where the world answers later. */
export type { RemoteEnv } from "./envs/env.js";
/** A kind of world with its options: its tasks, its limits, and how worlds are made. */
export type { Environment } from "./envs/env.js";
/** What `defineEnv` makes: a name, options, and how it is opened. */
export type { EnvKind } from "./envs/env.js";
/** What a step did: an observation, a reward, and whether the episode is over. */
export type { StepResult } from "./envs/env.js";
/** One instance to solve: its id and its type. */
export type { Task } from "./envs/env.js";
/** Says what to do in a running world. */
export type { Teacher } from "./envs/env.js";
/** A world that is acted in by tool calls. */
export type { ToolEnv } from "./envs/tool-env.js";
/** The description of a tool. */
export type { Tool } from "./text/tool.js";
/** One call of a tool. */
export type { ToolCall } from "./text/tool.js";

// ── Text

/** How an environment is shown to a model, and how its answers are read. */
export { promptStyle } from "./text/prompt.js";
/** A prompt as one text. */
export { promptText } from "./text/prompt.js";
/** Builds a tokenizer from texts. */
export { buildTokenizer } from "./text/tokenizer-builder.js";
/** Reads the tokenizer of a model's folder. */
export { loadTokenizer } from "./text/tokenizer.js";
/** The tokens of a prompt. */
export { encodePrompt } from "./text/encode.js";
/** The tokens of a response. */
export { encodeResponse } from "./text/encode.js";
/** A prompt's tokens with a response after them. */
export { appendResponse } from "./text/encode.js";
/** A prompt and a response with what the world answered after them. */
export { appendObservation } from "./text/encode.js";
/** What `promptStyle` makes. */
export type { PromptStyle } from "./text/prompt.js";
/** A prompt style of a plugin. */
export type { PromptStyleKind } from "./text/prompt.js";
/** Token ids, with which of them are prompt, action and observation. */
export type { Sequence } from "./text/sequence.js";
/** What makes tokens of text, and text of tokens. */
export type { Tokenizer } from "./text/tokenizer.js";

// ── Rollouts

/** Plays groups of episodes, and returns them. */
export { rollout } from "./rollout/rollout.js";
/** Draws the tasks of a rollout. */
export { chooseTasks } from "./rollout/config.js";
/** Our own model, acting. */
export { enginePolicy } from "./rollout/policies/engine.js";
/** A teacher, acting. */
export { expertPolicy } from "./rollout/policies/config.js";
/** A random one of the possible actions. */
export { randomPolicy } from "./rollout/policies/random.js";
/** Another policy that sometimes acts at random. */
export { epsilonPolicy } from "./rollout/policies/random.js";
/** A chat model behind an endpoint, acting. */
export { chatPolicy } from "./rollout/policies/chat.js";
/** Counts successes by type of task. */
export { createTally } from "./rollout/tally.js";
/** Counts as rates. */
export { rates } from "./rollout/tally.js";
/** Plays groups of episodes into a run folder. */
export { recordRollout } from "./runs/record-rollout.js";
/** Opens a run folder. */
export { openRun } from "./runs/run-folder.js";
/** What acts: `act(situations)` answers for several episodes at once. */
export type { Policy } from "./rollout/policy.js";
/** What a policy answers. */
export type { Reply } from "./rollout/policy.js";
/** What a policy knows when it acts. */
export type { Situation } from "./rollout/policy.js";
/** A policy of a plugin. */
export type { PolicyKind } from "./rollout/policies/config.js";
/** One attempt at a task. */
export type { Episode } from "./rollout/episode.js";
/** The attempts at one task. */
export type { Group } from "./rollout/episode.js";
/** A prompt, a response, the action, the observation and the reward. */
export type { Step } from "./rollout/episode.js";

// ── Learning

/** Fits a model to recorded episodes. */
export { sft } from "./train/sft.js";
/** How much better each action was than expected. */
export { computeAdvantages } from "./advantages/advantages.js";
/** Episodes and advantages as sequences to learn from, with observations to predict (PaW). */
export { prepareUpdate } from "./update/update.js";
/** The losses of an update as one expression (PaW eq. 3). */
export { updateObjective } from "./objectives/objective.js";
/** An advantage estimator that looks at one group at a time. */
export { groupEstimator } from "./advantages/estimator.js";
/** The settings that every advantage estimator has. */
export { commonSettings } from "./advantages/estimator.js";
/** The same function of every step's number. */
export { mapSteps } from "./advantages/statistics.js";
/** The parts that losses are written with. */
export * as expression from "./objectives/expression.js";
/** The derivative of a loss, as an expression. */
export { derivative } from "./objectives/expression-derivative.js";
/** The value of an expression for one token. */
export { evaluate as evaluateExpression } from "./objectives/expression-evaluate.js";
/** An objective from JSON. */
export { parseObjective } from "./objectives/expression-parse.js";
/** A language model that samples, scores and learns. */
export type { Engine } from "./engine/engine.js";
/** An advantage estimator: its settings, and how advantages follow from groups. */
export type { Estimator } from "./advantages/estimator.js";
/** An expression over a token's quantities. */
export type { Expr } from "./objectives/expression.js";
/** A loss with metrics. */
export type { Objective } from "./objectives/expression.js";
/** The loss of an action token, of a plugin. */
export type { PolicyLoss } from "./objectives/policy-losses.js";
/** The loss of an observation token, of a plugin. */
export type { WorldLoss } from "./objectives/world-loss.js";

// ── Agents of your own

/** An episode of an environment as tools of the AI SDK. */
export { toolSet } from "./envs/tool-env.js";

// ── Small things

/** Random numbers from a seed. */
export { createRandom } from "./random.js";
/** One seed from several parts. */
export { mixSeed } from "./random.js";
/** A problem that is shown to the user as it is. */
export { UserError } from "./errors.js";

// ── Worlds of this package

/** Customer service with tools, made up. */
export { desk } from "./envs/desk/desk.js";
/** A house of rooms, in text. */
export { household } from "./envs/household/household.js";
