/** All commands, in the order in which help lists them. */
import { benchGradients } from "./bench-gradients.js";
import { benchObservations } from "./bench-observations.js";
import { check } from "./check.js";
import type { Command } from "./command.js";
import { completeCommand, completion } from "./completion.js";
import { envCheck } from "./env-check.js";
import { envInfo } from "./env-info.js";
import { envList } from "./env-list.js";
import { envMake } from "./env-make.js";
import { envNew } from "./env-new.js";
import { envPrompt } from "./env-prompt.js";
import { envReplay } from "./env-replay.js";
import { evaluate } from "./eval.js";
import { exportCommand } from "./export.js";
import { modelChat } from "./model-chat.js";
import { modelConvert } from "./model-convert.js";
import { modelInfo } from "./model-info.js";
import { modelPull } from "./model-pull.js";
import { play } from "./play.js";
import { push } from "./push.js";
import { replay } from "./replay.js";
import { report } from "./report.js";
import { rescoreCommand } from "./rescore.js";
import { rollout } from "./rollout.js";
import { runs } from "./runs.js";
import { rwml } from "./rwml.js";
import { serveRetriever } from "./serve.js";
import { serveEngine } from "./serve-engine.js";
import { serveEnv } from "./serve-env.js";
import { serveMcp } from "./serve-mcp.js";
import { serveModel } from "./serve-model.js";
import { show } from "./show.js";
import { track } from "./track.js";
import { train } from "./train.js";
import { ui } from "./ui.js";
import { wmData } from "./wm-data.js";
import { wmEvalConsistency } from "./wm-eval-consistency.js";
import { wmEvalFidelity } from "./wm-eval-fidelity.js";
import { wmEvalVerifier } from "./wm-eval-verifier.js";
import { wmForgetting } from "./wm-forgetting.js";
import { wmScale } from "./wm-scale.js";
import { wmSynth } from "./wm-synth.js";
import { wmThreshold } from "./wm-threshold.js";
import { wmTrain } from "./wm-train.js";
import { wmWarmStart } from "./wm-warm-start.js";

/** The commands of `pawl`. */
export const commands: readonly Command[] = [
  train,
  rwml,
  evaluate,
  exportCommand,
  push,
  rescoreCommand,
  modelInfo,
  modelPull,
  modelConvert,
  modelChat,
  rollout,
  play,
  runs,
  check,
  replay,
  report,
  track,
  ui,
  benchObservations,
  benchGradients,
  show,
  envList,
  envInfo,
  envNew,
  envMake,
  envPrompt,
  envCheck,
  envReplay,
  wmData,
  wmTrain,
  wmScale,
  wmEvalFidelity,
  wmEvalConsistency,
  wmEvalVerifier,
  wmSynth,
  wmWarmStart,
  wmThreshold,
  wmForgetting,
  serveEngine,
  serveModel,
  serveRetriever,
  serveEnv,
  serveMcp,
  completion,
  completeCommand(() => commands),
];
