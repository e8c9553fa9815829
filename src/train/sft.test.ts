import { expect, it } from "vitest";
import { openEnvironment } from "../envs/open.js";
import { teacherPolicy } from "../rollout/policies/config.js";
import { rollout } from "../rollout/rollout.js";
import { promptStyle } from "../text/prompt.js";
import { buildTokenizer } from "../text/tokenizer-builder.js";
import { imitationSequences } from "./sft.js";
import { worldTexts } from "./world-text.js";

it("imitates what the teacher chose, not its random actions", async () => {
  const environment = openEnvironment({ name: "household" });
  const style = promptStyle(environment.prompt, { style: "compact", history: "all" });
  const tokenizer = buildTokenizer(await worldTexts(environment, style));
  const groups = await rollout({
    environment,
    style,
    policy: teacherPolicy(environment, "seeker", 0.4),
    tasks: environment.tasks("train").slice(0, 6),
    groupSize: 1,
    seed: 0,
  });
  let strayed = 0;
  for (const { episodes } of groups) {
    const episode = episodes[0]!;
    const [sequence, ...others] = imitationSequences(
      episode,
      { tokenizer, style },
      { observationWeight: 0, randomActions: false },
    );
    expect(others).toEqual([]);
    const ids = Array.from(sequence!.ids);
    const imitated = ids.filter((_, at) => sequence!.inputs.weight![at]! > 0);
    const own = episode.steps.filter((step) => !step.strayed);
    strayed += episode.steps.length - own.length;
    expect(tokenizer.decode(imitated)).toBe(own.map((step) => `${step.action}<|see|>`).join(""));
  }
  expect(strayed).toBeGreaterThan(10);
});
