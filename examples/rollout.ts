/** Rollouts: two policies play the same tasks, and their results are compared by task type. */
import {
  createTally,
  expertPolicy,
  openEnvironment,
  promptStyle,
  randomPolicy,
  rates,
  rollout,
} from "pawl";

const environment = openEnvironment({ name: "household", noise: "ids" });
const style = promptStyle(environment.prompt, { style: "full" });
const tasks = environment.tasks("valid_unseen").slice(0, 12);

for (const policy of [randomPolicy(), expertPolicy(environment.expert!)]) {
  const groups = await rollout({ environment, policy, style, tasks, groupSize: 4, seed: 1 });
  const tally = createTally();
  for (const group of groups) for (const episode of group.episodes) tally.add(episode);
  console.log(policy.name, rates(tally.all));
}
