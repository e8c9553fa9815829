/** Run folders: record a rollout, open it again, and look at what happened. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  chooseTasks,
  epsilonPolicy,
  expertPolicy,
  openEnvironment,
  openRun,
  promptStyle,
  recordRollout,
} from "pawl";

const folder = join(mkdtempSync(join(tmpdir(), "pawl-example-")), "run");
const environment = openEnvironment({ name: "household" });
await recordRollout(
  {
    environment,
    policy: epsilonPolicy(expertPolicy(environment.expert!), 0.3),
    style: promptStyle(environment.prompt),
    tasks: chooseTasks(environment, { split: "train", groups: 3, seed: 7 }),
    groupSize: 2,
    seed: 7,
  },
  { folder, config: { note: "an expert that takes a random action in three steps out of ten" } },
);

const run = openRun(folder, (warning) => console.warn(warning));
console.log(run.manifest.status, run.manifest.summary);
for (const episode of run.episodes()) {
  const strayed = episode.steps.filter((step) => !step.valid).length;
  console.log(
    episode.task.id,
    episode.goal,
    episode.success,
    `${episode.steps.length} steps`,
    strayed,
  );
}
