/** What conversations cost in a pretrained model's own tokens, on the official games. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { main } from "../bench/chat-tokens.js";
import { officialDataThere } from "../src/envs/alfworld/fixtures/official.js";

const folder = process.env.PAWL_SMOLLM2 ?? "";

it.skipIf(!officialDataThere || !existsSync(join(folder, "tokenizer.json")))(
  "learns at most 1.3 times the tokens of compact prompts (needs PAWL_SMOLLM2, a folder with its tokenizer.json, and ALFWorld)",
  async () => {
    const { chat_ratio, full_ratio, episodes } = await main([folder]);
    expect(episodes).toBeGreaterThan(100);
    expect(chat_ratio).toBeLessThanOrEqual(1.3);
    expect(full_ratio).toBeGreaterThan(5);
  },
  300_000,
);
