/** Your own policy: it tries actions it has not tried yet, and otherwise acts at random. */
import { createRandom, openEnvironment, type Policy, promptStyle, rollout } from "pawl";

const curious: Policy = {
  name: "curious",
  batch: 1,
  act: async (situations) =>
    situations.map(({ admissible = [], steps, seed, format }) => {
      const tried = new Set(steps.map((step) => step.action));
      const fresh = admissible.filter((action) => !tried.has(action));
      return { response: format(createRandom(seed).pick(fresh.length > 0 ? fresh : admissible)) };
    }),
};

const environment = openEnvironment({ name: "household" });
const groups = await rollout({
  environment,
  policy: curious,
  style: promptStyle(environment.prompt),
  tasks: environment.tasks("train").slice(0, 8),
  groupSize: 2,
  seed: 0,
});
const episodes = groups.flatMap((group) => group.episodes);
const places = episodes.map((episode) => new Set(episode.steps.map((step) => step.action)).size);
console.log(
  `${episodes.length} episodes, ${Math.max(...places)} different actions in the most curious one`,
);
