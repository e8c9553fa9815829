/**
 * How many tokens the styles of prompts learn: sequences of the expert's episodes in ALFWorld's
 * valid_seen, in a pretrained model's own tokens.
 *
 *   npm run bench -- chat-tokens FOLDER [SPLIT]
 *
 * FOLDER has the model's tokenizer, in Hugging Face layout. Such a tokenizer has no markers, so each
 * marker of the compact style is counted as one token.
 *
 *   chat_ratio, full_ratio   tokens ÷ those of the compact style
 */

import type { Episode } from "@pawl/core/rollout/episode.js";
import { expertPolicy } from "@pawl/core/rollout/policies/config.js";
import { rollout } from "@pawl/core/rollout/rollout.js";
import { type PromptOptions, promptStyle } from "@pawl/core/text/prompt.js";
import { loadTokenizer, type Tokenizer } from "@pawl/core/text/tokenizer.js";
import { imitationSequences } from "@pawl/core/train/sft.js";
import { openAlfworld } from "@pawl/worlds/alfworld/alfworld.js";
import { GAMES, unpacked } from "@pawl/worlds/alfworld/fixtures/official.js";

/** The tokens of a compact episode with the whole history: one sequence. */
function compactTokens({ steps }: Episode, tokenizer: Tokenizer): number {
  const { prompt, response, observation } = steps.at(-1)!;
  const plain = (text: string): number => tokenizer.encode(text, { plain: true }).length;
  const read = prompt.map(({ origin, text }) => (origin === "template" ? 1 : plain(text)));
  return read.reduce((sum, tokens) => sum + tokens, 0) + plain(response) + plain(observation) + 2;
}

/** Counts the tokens of each style. */
export async function main([folder, split = "valid_seen"]: readonly string[]) {
  if (folder === undefined) throw new Error("name a folder with a tokenizer");
  const tokenizer = await loadTokenizer(folder);
  const environment = openAlfworld({ data: unpacked(GAMES) });
  const episodesIn = async (prompt: PromptOptions) => {
    const style = promptStyle(environment.prompt, prompt, tokenizer);
    const policy = expertPolicy(environment.expert!);
    const tasks = environment.tasks(split);
    const played = await rollout({ environment, style, policy, tasks, groupSize: 1, seed: 0 });
    return { style, episodes: played.flatMap(({ episodes }) => episodes) };
  };
  const learnt = async (prompt: PromptOptions): Promise<number> => {
    const { style, episodes } = await episodesIn(prompt);
    const all = episodes.flatMap((episode) =>
      imitationSequences(
        episode,
        { tokenizer, style },
        { observationWeight: 1, randomActions: false },
      ),
    );
    return all.reduce((sum, { ids }) => sum + ids.length, 0);
  };
  const { episodes } = await episodesIn({ style: "compact", history: "all" });
  const compact = episodes.reduce((sum, one) => sum + compactTokens(one, tokenizer), 0);
  const chat = await learnt({ style: "chat" });
  const full = await learnt({ style: "full" });
  return {
    split,
    episodes: episodes.length,
    steps: episodes.reduce((sum, { steps }) => sum + steps.length, 0),
    compact,
    chat,
    full,
    chat_ratio: Number((chat / compact).toFixed(3)),
    full_ratio: Number((full / compact).toFixed(3)),
  };
}
