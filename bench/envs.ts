/** Environments: steps per second, time to record, and memory over many episodes. */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { chooseTasks } from "@pawl/core/rollout/config.js";
import { randomPolicy } from "@pawl/core/rollout/policies/random.js";
import { recordRollout } from "@pawl/core/runs/record-rollout.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { measureHousehold, stepsPerSecond, surveyHousehold } from "./household.js";

/** Records 1,000 episodes of the random policy to a run folder. */
async function measureRecording(): Promise<{ record_1000_s: number; record_1000_mib: number }> {
  const folder = mkdtempSync(join(tmpdir(), "pawl-bench-"));
  const environment = openEnvironment({ name: "household" });
  const tasks = chooseTasks(environment, { split: "train", groups: 125, seed: 0 });
  const startedAt = performance.now();
  await recordRollout(
    {
      environment,
      tasks,
      groupSize: 8,
      seed: 0,
      policy: randomPolicy(),
      style: promptStyle(environment.prompt, { style: "full" }),
    },
    { folder: join(folder, "run"), config: {} },
  );
  const seconds = (performance.now() - startedAt) / 1000;
  const bytes = statSync(join(folder, "run", "episodes.jsonl.gz")).size;
  rmSync(folder, { recursive: true });
  return { record_1000_s: seconds, record_1000_mib: bytes / 2 ** 20 };
}

/** Runs everything. */
export async function main(): Promise<Record<string, number>> {
  const { household_rss_growth_mib, ...speed } = measureHousehold();
  const desk_steps_per_s = stepsPerSecond(openEnvironment({ name: "desk" }), 50_000);
  const recording = await measureRecording();
  for (const split of ["train", "valid_seen", "valid_unseen"]) {
    console.log(JSON.stringify(surveyHousehold(split)));
  }
  return { ...speed, desk_steps_per_s, ...recording, rss_growth_mib: household_rss_growth_mib };
}
