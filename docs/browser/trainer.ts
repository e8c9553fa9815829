/** The worker that trains: the same run as `pawl try` starts, with its files in memory. */
import "./node/globals.js";
import { household } from "@pawl/core/envs/household/household.js";
import { registerEnv } from "@pawl/core/envs/registry.js";
import { hasManifest, readManifest } from "@pawl/core/runs/manifest.js";
import { type TrainConfig, trainConfig } from "@pawl/training/config.js";
import { trainConfigOf } from "@pawl/training/recorded-config.js";
import { trainRun } from "@pawl/training/run.js";
import { trial } from "../../recipes/trial.js";
import type { FromTrainer, ToTrainer } from "./messages.js";
import { applyChanges, changesBelow } from "./node/mirror.js";
import { sayAlive } from "./silence.js";
import { TRIAL } from "./trial.js";

registerEnv(household);
sayAlive();

/** How often the page's files follow. */
const FOLLOW_MS = 500;

const say = (message: FromTrainer): void => self.postMessage(message);
const changes = changesBelow(`/runs/${TRIAL.trained}`);
let stop: AbortController | undefined;

self.onmessage = ({ data }: { data: ToTrainer }) => {
  if (data.what === "pause") stop?.abort();
  else if (stop === undefined) void train(data);
};

async function train({ files, lambda }: Extract<ToTrainer, { what: "train" }>): Promise<void> {
  applyChanges(files);
  changes();
  stop = new AbortController();
  const follow = (): void => {
    const changed = changes();
    if (changed.length > 0) say({ what: "files", files: changed });
  };
  const following = setInterval(follow, FOLLOW_MS);
  let problem: string | undefined;
  try {
    const folder = `/runs/${TRIAL.trained}`;
    const isResumed = hasManifest(folder);
    const config = isResumed ? furtherConfig(folder) : firstConfig();
    const paw = lambda === undefined ? config.paw : { ...config.paw, lambda };
    await trainRun(
      { ...config, paw },
      {
        folder,
        resume: isResumed,
        signal: stop.signal,
        given: () => false,
        onProblem: (problem) => console.warn(problem),
      },
    );
  } catch (error) {
    if (!stop.signal.aborted) problem = (error as Error).message;
  }
  clearInterval(following);
  follow();
  stop = undefined;
  say({ what: "ended", ...(problem !== undefined && { problem }) });
}

const firstConfig = (): TrainConfig =>
  trainConfig(household).parse({
    ...trial,
    model: { start: `/runs/${TRIAL.start}` },
  }) as TrainConfig;

function furtherConfig(folder: string): TrainConfig {
  const config = trainConfigOf(folder);
  const more = readManifest(folder).status === "done" ? trial.updates : 0;
  return { ...config, updates: config.updates + more };
}
