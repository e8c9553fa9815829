/** What conversations cost in a pretrained model's own tokens, on the official games. */
import { existsSync } from "node:fs";
import { fetchModel } from "@pawl/models/fetch-model.js";
import { officialDataThere } from "@pawl/worlds/alfworld/fixtures/official.js";
import { expect, it } from "vitest";
import { main } from "../bench/chat-tokens.js";

const file = process.env.PAWL_SMOLLM2 ?? "";

it.skipIf(!officialDataThere || !existsSync(file))(
  "learns at most 1.3 times the tokens of compact prompts (needs PAWL_SMOLLM2, its GGUF file, and ALFWorld)",
  async () => {
    const { folder } = (await fetchModel(file))!;
    const { chat_ratio, full_ratio, episodes } = await main([folder]);
    expect(episodes).toBeGreaterThan(100);
    expect(chat_ratio).toBeLessThanOrEqual(1.3);
    expect(full_ratio).toBeGreaterThan(5);
  },
  300_000,
);
