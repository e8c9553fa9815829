/** Runs for tests of the page, with text that is hostile to it. */
import type { Episode, Step } from "@pawl/core/rollout/episode.js";
import { createRun, type Run } from "@pawl/core/runs/run-folder.js";

/** Markup, controls, a mark that turns the direction, half of a pair of surrogates. */
export const HOSTILE = `</script><script>document.title="taken"</script><img src=x onerror="document.title='taken'">\u0007\u202eltr\u2066\ud800`;

/** A run that is being written. */
export function startRun(
  folder: string,
  changes: { seed?: number; config?: object; kind?: string } = {},
): Run {
  const { seed = 0, kind = "train", config = {} } = changes;
  return createRun(
    {
      folder,
      kind,
      seed,
      config: { seed, updates: 10, env: { name: "household" }, paw: { loss: "cmae" }, ...config },
    },
    (message) => {
      throw new Error(message);
    },
  );
}

/** An episode of some steps. */
export function playedEpisode(
  group: number,
  attempt: number,
  changes: Partial<Episode> & { readonly step?: Partial<Step> } = {},
): Episode {
  const { step, ...rest } = changes;
  return {
    task: { id: `train/${group}`, type: group % 2 === 0 ? "pick" : "heat", split: "train" },
    group,
    attempt,
    seed: 7,
    policy: "engine",
    goal: `Put a cup on shelf ${group}.`,
    firstObservation: "You see a cup.",
    steps: ["take cup", "put cup"].map((action) => ({
      prompt: [{ origin: "task" as const, text: "Put it." }],
      response: action,
      action,
      wellFormed: true,
      valid: true,
      observation: `You ${action}.`,
      reward: 0,
      ...step,
    })),
    return: attempt,
    success: attempt > 0,
    stop: "done",
    ...rest,
  };
}
