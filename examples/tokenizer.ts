/** Tokenizers: build one from an environment's own text, and encode a step with spans and origins. */
import {
  appendObservation,
  appendResponse,
  buildTokenizer,
  encodePrompt,
  encodeResponse,
  expertPolicy,
  openEnvironment,
  promptStyle,
  promptText,
  rollout,
} from "pawl";

const environment = openEnvironment({ name: "household" });
const style = promptStyle(environment.prompt, { style: "compact" });
const groups = await rollout({
  environment,
  style,
  policy: expertPolicy(environment.expert!),
  tasks: environment.tasks("train").slice(0, 300),
  groupSize: 1,
  seed: 0,
});
const steps = groups.flatMap((group) => group.episodes.flatMap((episode) => episode.steps));
const tokenizer = buildTokenizer(
  steps.flatMap((step) => [promptText(step.prompt), step.response, step.observation]),
);
console.log(`${tokenizer.vocabularySize} tokens from ${steps.length} steps`);

const step = steps[3]!;
const prompt = encodePrompt(tokenizer, style, step.prompt);
const answered = appendResponse(prompt, { ids: encodeResponse(tokenizer, style, step.response) });
const sequence = appendObservation(answered, tokenizer, style, step.observation, false);
for (const { kind, origin, start, end } of sequence.spans) {
  console.log(
    kind.padEnd(12),
    origin.padEnd(12),
    JSON.stringify(tokenizer.decode(sequence.ids.slice(start, end))),
  );
}
