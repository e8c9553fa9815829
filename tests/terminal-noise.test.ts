/** What no history can tell of a terminal is found by replaying an episode under other seeds. */
import type { Episode } from "@pawl/core/rollout/episode.js";
import { expertPolicy } from "@pawl/core/rollout/policies/config.js";
import { play } from "@pawl/core/rollout/rollout.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { noisyCharacters } from "@pawl/studies/noisy-text.js";
import { terminal } from "@pawl/worlds/terminal/terminal.js";
import { expect, it } from "vitest";

it("times, process ids and ids are noise in a terminal, and nothing else is", async () => {
  const environment = terminal.open(terminal.options.parse({ noise: "status", kinds: ["chain"] }));
  const episodes: Episode[] = [];
  await play({
    environment,
    style: promptStyle(environment.prompt, { style: "compact" }),
    policy: expertPolicy(environment.expert!),
    tasks: environment.tasks("train").slice(0, 4),
    groupSize: 1,
    seed: 3,
    onEpisode: (episode) => void episodes.push(episode),
  });
  for (const episode of episodes) {
    const marks = await noisyCharacters(environment, episode);
    for (const [step, { observation }] of episode.steps.entries()) {
      const noise = [...observation].filter((_, at) => marks[step]![at]).join("");
      if (episode.steps[step + 1] === undefined) expect(noise).toBe("");
      else {
        const status = /\[([\d:]+) pid (\d+) id (\w+)\]$/.exec(observation)!;
        // Characters that all times have in common are no noise.
        expect(noise.length).toBeGreaterThan(8);
        expect(status[0].replace(/[^0-9a-f]/g, "")).toContain(noise.slice(-6));
        expect(marks[step]!.slice(0, status.index)).not.toContain(true);
      }
    }
  }
});
