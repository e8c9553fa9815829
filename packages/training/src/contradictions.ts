/** Settings that contradict what the model is: allowed, and said by name. */
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import { isPreset } from "@pawl/engine-cpu/init.js";
import type { TrainConfig } from "./config.js";

/** A larger step undoes what a pretrained model has learnt. */
const MAX_RATE = 1e-3;

/** A line for each setting of models from scratch that a pretrained chat model is trained with. */
export function contradictions(
  { model, prompt, warmStart, updates, optimizer, paw }: TrainConfig,
  tokenizer: Pick<Tokenizer, "hasChatTemplate">,
): readonly string[] {
  if (isPreset(model.start) || !tokenizer.hasChatTemplate) return [];
  const chat = `${model.start} is a chat model`;
  const rates = [
    ...(warmStart.episodes > 0
      ? [["warmStart.sft.optimizer", warmStart.sft.optimizer] as const]
      : []),
    ...(updates > 0 ? [["optimizer", optimizer] as const] : []),
  ];
  return [
    ...(prompt.style === "compact"
      ? [
          `prompt.style compact: ${chat} and was not trained on such prompts; its own form is --prompt.style chat`,
        ]
      : []),
    ...rates.flatMap(([path, { learningRate }]) =>
      learningRate > MAX_RATE
        ? [
            `${path}.learningRate ${learningRate}: ${chat}, and steps above ${MAX_RATE} undo what it knows; recipes/pretrained.ts takes 2e-4 to imitate and 2e-5 for RL, with adapters 1e-3 and 1e-4`,
          ]
        : [],
    ),
    ...(paw.loss !== "off" && updates > 0
      ? [
          `paw.loss ${paw.loss}: ${chat}, and such a model has gained nothing from predicting observations here (docs/results/observations.md); --paw.loss off`,
        ]
      : []),
  ];
}
