/** All commands, in the order in which help lists them. */
import type { CommandEntry } from "./command-entry.js";

/** These read records and need no world. */
const WITHOUT_WORLDS = new Set(["runs", "check", "show", "completion", "complete"]);

/** World models are environments too, which any other command may be given. */
const withSimulator = (entry: CommandEntry): CommandEntry =>
  WITHOUT_WORLDS.has(entry.name)
    ? entry
    : {
        ...entry,
        load: async () => {
          await import("../worldmodel/simulator-kind.js");
          return entry.load();
        },
      };

/** The commands of `pawl`. */
export const commands: readonly CommandEntry[] = [
  { name: "train", load: async () => (await import("./train.js")).train },
  { name: "rwml", load: async () => (await import("./rwml.js")).rwml },
  { name: "eval", load: async () => (await import("./eval.js")).evaluate },
  { name: "export", load: async () => (await import("./export.js")).exportCommand },
  { name: "push", load: async () => (await import("./push.js")).push },
  { name: "rescore", load: async () => (await import("./rescore.js")).rescoreCommand },
  { name: "model info", load: async () => (await import("./model-info.js")).modelInfo },
  { name: "model pull", load: async () => (await import("./model-pull.js")).modelPull },
  { name: "model convert", load: async () => (await import("./model-convert.js")).modelConvert },
  { name: "model chat", load: async () => (await import("./model-chat.js")).modelChat },
  { name: "rollout", load: async () => (await import("./rollout.js")).rollout },
  { name: "play", load: async () => (await import("./play.js")).play },
  { name: "runs", load: async () => (await import("./runs.js")).runs },
  { name: "check", load: async () => (await import("./check.js")).check },
  { name: "replay", load: async () => (await import("./replay.js")).replay },
  { name: "report", load: async () => (await import("./report.js")).report },
  { name: "track", load: async () => (await import("./track.js")).track },
  { name: "ui", load: async () => (await import("./ui.js")).ui },
  {
    name: "bench observations",
    load: async () => (await import("./bench-observations.js")).benchObservations,
  },
  { name: "show", load: async () => (await import("./show.js")).show },
  { name: "env list", load: async () => (await import("./env-list.js")).envList },
  { name: "env info", load: async () => (await import("./env-info.js")).envInfo },
  { name: "env new", load: async () => (await import("./env-new.js")).envNew },
  { name: "env make", load: async () => (await import("./env-make.js")).envMake },
  { name: "env prompt", load: async () => (await import("./env-prompt.js")).envPrompt },
  { name: "env check", load: async () => (await import("./env-check.js")).envCheck },
  { name: "env replay", load: async () => (await import("./env-replay.js")).envReplay },
  { name: "wm data", load: async () => (await import("./wm-data.js")).wmData },
  { name: "wm train", load: async () => (await import("./wm-train.js")).wmTrain },
  {
    name: "wm eval fidelity",
    load: async () => (await import("./wm-eval-fidelity.js")).wmEvalFidelity,
  },
  {
    name: "wm eval consistency",
    load: async () => (await import("./wm-eval-consistency.js")).wmEvalConsistency,
  },
  {
    name: "wm eval verifier",
    load: async () => (await import("./wm-eval-verifier.js")).wmEvalVerifier,
  },
  { name: "wm threshold", load: async () => (await import("./wm-threshold.js")).wmThreshold },
  { name: "wm forgetting", load: async () => (await import("./wm-forgetting.js")).wmForgetting },
  { name: "serve engine", load: async () => (await import("./serve-engine.js")).serveEngine },
  { name: "serve model", load: async () => (await import("./serve-model.js")).serveModel },
  { name: "serve retriever", load: async () => (await import("./serve.js")).serveRetriever },
  { name: "serve env", load: async () => (await import("./serve-env.js")).serveEnv },
  { name: "serve mcp", load: async () => (await import("./serve-mcp.js")).serveMcp },
  { name: "completion", load: async () => (await import("./completion.js")).completion },
  {
    name: "complete",
    load: async () => (await import("./completion.js")).completeCommand(() => commands),
  },
].map(withSimulator);
