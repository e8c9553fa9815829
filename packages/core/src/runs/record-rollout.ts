/** A rollout that is recorded to a run folder as it happens. */
import { play, type RolloutOptions } from "../rollout/rollout.js";
import { createTally, rates, type Tally } from "../rollout/tally.js";
import { withoutSecretSettings } from "../trust/secret-settings.js";
import { createRun, finishFailed } from "./run-folder.js";

/** Where to record, and the configuration to record with it. */
export interface RecordOptions {
  readonly folder: string;
  readonly config: Readonly<Record<string, unknown>>;
  /** The command that records (default: `rollout`). */
  readonly kind?: string;
}

/**
 * Plays all groups and records every episode as it ends; returns the tally.
 *
 * If it is aborted or fails, the run folder says so and keeps everything that was finished.
 */
export async function recordRollout(
  options: RolloutOptions,
  record: RecordOptions,
): Promise<Tally> {
  const { folder, kind = "rollout" } = record;
  const { onProblem = () => undefined } = options;
  const { settings: config, leftOut } = withoutSecretSettings(record.config);
  const run = createRun({ folder, kind, seed: options.seed, config }, onProblem);
  if (leftOut.length > 0)
    onProblem(`${leftOut.join(", ")}: holds a key, which is not recorded in ${folder}`);
  const tally = createTally();
  const startedAt = performance.now();
  const summary = () => {
    const { success, meanReturn, meanSteps, invalid } = rates(tally.all);
    const { episodes, broken } = tally.all;
    const { tasks, solvedWithin: solved } = tally.attempts;
    const solvedWithin = solved.length > 1 ? solved.at(-1)! / tasks : Number.NaN;
    const seconds = (performance.now() - startedAt) / 1000;
    const rest = { meanReturn, meanSteps, invalid, seconds };
    const numbers = { episodes, broken, success, solvedWithin, ...rest };
    // JSON has no NaN: omit what was not measured.
    return Object.fromEntries(
      Object.entries(numbers).filter(([, value]) => Number.isFinite(value)),
    );
  };
  try {
    await play({
      ...options,
      onEpisode(episode) {
        run.recordEpisodes([episode]);
        tally.add(episode);
        options.onEpisode?.(episode);
      },
    });
  } catch (error) {
    finishFailed(run, error, { ...options, summary: summary() });
    throw error;
  } finally {
    await options.environment.close?.();
  }
  run.finish("done", { summary: summary() });
  return tally;
}
