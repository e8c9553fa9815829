/** All commands, in the order in which help lists them. */
import type { Command } from "./command.js";
import { complete, completion } from "./completion.js";
import { envCheck } from "./env-check.js";
import { envInfo } from "./env-info.js";
import { envList } from "./env-list.js";
import { envReplay } from "./env-replay.js";
import { evaluate } from "./eval.js";
import { play } from "./play.js";
import { replay } from "./replay.js";
import { report } from "./report.js";
import { rollout } from "./rollout.js";
import { runs } from "./runs.js";
import { serveRetriever } from "./serve.js";
import { serveEngine } from "./serve-engine.js";
import { show } from "./show.js";
import { train } from "./train.js";

/** The commands of `pawl`. */
export const commands: readonly Command[] = [
  train,
  evaluate,
  rollout,
  play,
  runs,
  replay,
  report,
  show,
  envList,
  envInfo,
  envCheck,
  envReplay,
  serveEngine,
  serveRetriever,
  completion,
  complete,
];
