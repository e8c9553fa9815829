/** The public API: everything the commands do. */

import "./no-telemetry.js";

export {
  type AdvantageOptions,
  type Advantages,
  advantageOptions,
  computeAdvantages,
  registerEstimator,
} from "./advantages/advantages.js";
export {
  commonSettings,
  type Estimator,
  groupEstimator,
  type ScoredGroup,
} from "./advantages/estimator.js";
export { mapSteps, type StepTable } from "./advantages/statistics.js";
export {
  type Agent,
  type AgentRun,
  type AgentTask,
  defineAgent,
} from "./agents/agent.js";
export {
  type AgentEnvironment,
  agentKind,
  isAgentEnvironment,
} from "./agents/agent-environment.js";
export { type AgentPolicyOptions, agentPolicy } from "./agents/agent-policy.js";
export { type ModelSource, type PawlModel, pawlModel } from "./agents/ai-sdk-model.js";
export type {
  ChatAnswer,
  ChatCall,
  ChatRequest,
  ChatSession,
  Sampler,
} from "./agents/chat.js";
export { type SessionEndpoint, sessionEndpoint } from "./agents/endpoint/session-endpoint.js";
export {
  createSession,
  type RecordedCall,
  type RecordedSession,
  type SessionOptions,
} from "./agents/session.js";
export { SessionError } from "./agents/session-error.js";
export type { Given } from "./config/applies.js";
export { ConfigError } from "./config/config-error.js";
export { readConfigFile } from "./config/config-file.js";
export { type CachedEncoder, cacheVectors } from "./embeddings/cache.js";
export type { Encoder } from "./embeddings/encoder.js";
export { type EncoderOptions, encoderOptions, openEncoder } from "./embeddings/open-encoder.js";
export { createEmbeddedEngine } from "./engine/embedded/embedded-engine.js";
export type {
  AdamParams,
  BackwardResult,
  Capabilities,
  Engine,
  ForwardOptions,
  ForwardResult,
  OptimResult,
  Sample,
  SampleRequest,
  SamplingOptions,
  SaveOptions,
  TargetSequence,
  TrainSequence,
} from "./engine/engine.js";
export { EngineError } from "./engine/engine.js";
export { connectRemoteEngine } from "./engine/remote/remote-engine.js";
export type { RemoteOptions } from "./engine/remote/remote-model.js";
export { type SamplerOptions, withSampler } from "./engine/sampler/sampler-engine.js";
export { type EnvCheck, type EnvCheckOptions, envChecks } from "./envs/conformance.js";
export { defineEnv, defineToolEnv, type ToolEnvKind } from "./envs/define-env.js";
export {
  type Env,
  EnvError,
  type Environment,
  type EnvKind,
  type Expert,
  type RemoteEnv,
  type StepInfo,
  type StepResult,
  type Task,
  type Teacher,
} from "./envs/env.js";
export { type EnvLimits, limitOptions } from "./envs/limits.js";
export { type EnvConfig, envConfig, openEnvironment } from "./envs/open.js";
export {
  createEnvServer,
  type EnvServer,
  type EnvServerLimits,
  type EnvServerOptions,
} from "./envs/openenv/env-server.js";
export { envKinds, findEnvKind, registerEnv } from "./envs/registry.js";
export { replayFile, replayTrace, type Trace } from "./envs/replay.js";
export { numberedTasks, taskLists } from "./envs/task-lists.js";
export {
  type FinishedTask,
  type Reward,
  type RewardFunction,
  registerReward,
} from "./envs/tasks/rewards.js";
export { defineTaskEnv, type TaskWorld } from "./envs/tasks/task-env.js";
export type { GivenTask, TaskRecord, TaskSource } from "./envs/tasks/task-record.js";
export type { RemoteToolEnv, ToolEnv, ToolEnvironment, ToolExpert } from "./envs/tool-env.js";
export { type ToolSet, toolSet } from "./envs/tool-set.js";
export type { AiTool, AiTools } from "./envs/tool-tasks/ai-tools.js";
export { defineTools, type ToolsWorld } from "./envs/tool-tasks/define-tools.js";
export type { Mismatch, ReplayResult, TraceState, TraceWorld } from "./envs/trace.js";
export { UserError } from "./errors.js";
export type { Card } from "./evaluation/card.js";
export { readCard } from "./evaluation/card-file.js";
export { type Comparison, compareCards } from "./evaluation/compare.js";
export type { StoredEpisode, StoredReward } from "./evaluation/rescore.js";
export { type TaskList, taskListOf } from "./evaluation/task-list.js";
export { exportEpisodes, type FormatName } from "./exports/export-run.js";
export { type Source, sourceOf } from "./exports/source.js";
export { readTranscripts } from "./imports/read-transcripts.js";
export { type Transcript, transcriptEpisode } from "./imports/transcript.js";
export type { LoadedPlugin } from "./loaded-plugins.js";
export { fetchModel } from "./models/fetch-model.js";
export type { FetchedModel, FetchOptions, ModelOrigin } from "./models/model-origin.js";
export type { Expr, Objective } from "./objectives/expression.js";
export * as expression from "./objectives/expression.js";
export { derivative } from "./objectives/expression-derivative.js";
export { evaluate as evaluateExpression } from "./objectives/expression-evaluate.js";
export { parseObjective } from "./objectives/expression-parse.js";
export {
  type ObjectiveOptions,
  objectiveOptions,
  registerPolicyLoss,
  updateObjective,
} from "./objectives/objective.js";
export { type PawOptions, pawOptions, registerWorldLoss } from "./objectives/paw-options.js";
export type { PolicyLoss } from "./objectives/policy-losses.js";
export type { WorldLoss } from "./objectives/world-loss.js";
export { loadPlugin } from "./plugins/load.js";
export { definePlugin, type Plugin } from "./plugins/plugin.js";
export { createRandom, mixSeed, type Random } from "./random.js";
export { chooseTasks, type RolloutConfig, rolloutConfig } from "./rollout/config.js";
export type { Episode, Group, Step, StopReason } from "./rollout/episode.js";
export { type ChatOptions, chatPolicy } from "./rollout/policies/chat.js";
export {
  createPolicy,
  type PolicyConfig,
  type PolicyContext,
  type PolicyKind,
  policyConfig,
  registerPolicy,
} from "./rollout/policies/config.js";
export { type EnginePolicyOptions, enginePolicy } from "./rollout/policies/engine.js";
export { expertPolicy } from "./rollout/policies/expert.js";
export { humanPolicy } from "./rollout/policies/human.js";
export { epsilonPolicy, randomPolicy } from "./rollout/policies/random.js";
export type { Policy, Reply, Situation } from "./rollout/policy.js";
export { play, type RolloutOptions, rollout } from "./rollout/rollout.js";
export { type Counts, createTally, meanOfTypes, rates, type Tally } from "./rollout/tally.js";
export type { Manifest, RunStatus } from "./runs/manifest.js";
export { type RecordOptions, recordRollout } from "./runs/record-rollout.js";
export { RunError } from "./runs/run-error.js";
export {
  createRun,
  defaultRunFolder,
  type NewRun,
  openRun,
  type RecordedRun,
  type Run,
} from "./runs/run-folder.js";
export { listRuns } from "./runs/run-list.js";
export { type RwmlConfig, rwmlConfig } from "./rwml/config.js";
export { embeddingReward, stateDistances } from "./rwml/embedding-reward.js";
export { type WeightChange, weightChange } from "./rwml/forgetting.js";
export type { ForgettingReport } from "./rwml/forgetting-report.js";
export { type Question, worldQuestion } from "./rwml/question.js";
export {
  openReward,
  type RewardOptions,
  rewardOptions,
  type StatePair,
  type StateReward,
} from "./rwml/reward.js";
export { rougeL } from "./rwml/rouge.js";
export { type RwmlRunOptions, rwmlRun } from "./rwml/run.js";
export { type Triplet, tripletsOf } from "./rwml/triplet.js";
export {
  type FinishedRwmlUpdate,
  type RwmlContext,
  type RwmlOptions,
  trainRwml,
} from "./rwml/updates.js";
export { type Corpus, memoryCorpus, openCorpus, type Passage } from "./search/corpus.js";
export type {
  FoundPassage,
  LocalRetriever,
  Retriever,
  WaitingRetriever,
} from "./search/retriever.js";
export { openRetriever, type RetrieverChoice } from "./search/retriever-open.js";
export { createRetrieverServer, type RetrieverServerOptions } from "./search/retriever-server.js";
export { successInterval } from "./success-interval.js";
export {
  appendObservation,
  appendResponse,
  decodeResponse,
  encodePrompt,
  encodeResponse,
} from "./text/encode.js";
export {
  type EnvPrompt,
  type PieceOrigin,
  type PromptOptions,
  type PromptPiece,
  type PromptStyle,
  type PromptView,
  promptOptions,
  promptStyle,
  promptText,
  registerPromptStyle,
} from "./text/prompt.js";
export { PromptError } from "./text/prompt-template.js";
export type { Sequence, Span, SpanKind } from "./text/sequence.js";
export type { PromptStyleKind, StyleSlots } from "./text/style-plugins.js";
export {
  type ChatMessage,
  loadTokenizer,
  type Tokenizer,
  TokenizerError,
  type TokenizerFiles,
} from "./text/tokenizer.js";
export { buildTokenizer } from "./text/tokenizer-builder.js";
export type { Tool, ToolCall } from "./text/tool.js";
export type { EncodedParts, TextPart } from "./text/whole-text.js";
export { type TrainConfig, trainConfig } from "./train/config.js";
export { type EvaluationOptions, evaluate } from "./train/evaluate.js";
export { type RlContext, trainRl } from "./train/rl.js";
export type { FinishedUpdate, RlOptions } from "./train/rl-types.js";
export { type TrainOptions, trainRun } from "./train/run.js";
export { type SftOptions, type SftStep, sft, sftOptions } from "./train/sft.js";
export { type TrainAgentOptions, trainAgent } from "./train/train-agent.js";
export { prepareUpdate, type Update, type UpdateOptions } from "./update/update.js";
export { parseBehaviours, playBehaviours } from "./worldmodel/behaviours.js";
export { type WorldTrainConfig, worldTrainConfig } from "./worldmodel/config.js";
export {
  type ConsistencyCase,
  type ConsistencyOptions,
  type ConsistencyResult,
  consistencyRates,
  measureConsistency,
  ratioInterval,
} from "./worldmodel/consistency.js";
export {
  type DataSet,
  divideByTask,
  readDataSets,
  withinBudgets,
  writeDataSet,
} from "./worldmodel/dataset.js";
export { fewShotModel } from "./worldmodel/few-shot.js";
export {
  type FidelityReport,
  type FidelityScore,
  fidelityReport,
  scoreTurns,
} from "./worldmodel/fidelity.js";
export {
  engineWorldModel,
  type Prediction,
  type WorldModel,
  type WorldQuery,
} from "./worldmodel/model.js";
export { openPlayer, type Player } from "./worldmodel/players.js";
export { createProblems, type Problems } from "./worldmodel/problems.js";
export { type Protocol, protocolOptions } from "./worldmodel/protocol.js";
export { findWorldModel, loadWorldModel } from "./worldmodel/saved.js";
export { exportChat, importChat } from "./worldmodel/sharegpt.js";
export { type Anchor, createSimulator, type Simulator } from "./worldmodel/simulator.js";
export { simulator } from "./worldmodel/simulator-kind.js";
export { trainWorldModel, type WorldTrainOptions } from "./worldmodel/train.js";
export type { Outcome, Trajectory, Turn } from "./worldmodel/trajectory.js";
export {
  exactPredictor,
  modelPredictor,
  type OutcomePredictor,
  type VerifierCounts,
  verifiedPolicy,
} from "./worldmodel/verifier.js";
