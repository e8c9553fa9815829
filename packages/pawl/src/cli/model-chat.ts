import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ConfigError } from "@pawl/core/config/config-error.js";
import { type Engine, EngineError } from "@pawl/core/engine/engine.js";
import { plainText } from "@pawl/core/plain-text.js";
import { mixSeed } from "@pawl/core/random.js";
import type { ChatMessage, Tokenizer } from "@pawl/core/text/tokenizer.js";
import { engineChoice } from "@pawl/training/engines.js";
import type { OpenModel } from "@pawl/training/open-model.js";
import { z } from "zod";
import { createAsker } from "./asker.js";
import { type Call, defineCommand, exitCodes } from "./command.js";
import { note, print, write } from "./io.js";
import { MODEL_NAMES, requireModel } from "./model-name.js";
import { openByName } from "./open-by-name.js";

/** Tokens per piece: few enough to look like writing, enough to be worth a call. */
const PIECE = 4;

/** How to answer. */
interface StreamOptions {
  readonly maxTokens: number;
  readonly temperature: number;
  readonly seed: number;
  readonly signal?: AbortSignal;
}

/**
 * Yields the text that follows the prompt, piece by piece, up to a token that ends a turn. A
 * character is yielded only when all its bytes are there.
 */
async function* streamAnswer(
  engine: Engine,
  tokenizer: Tokenizer,
  prompt: readonly number[],
  { maxTokens, temperature, seed, signal }: StreamOptions,
): AsyncGenerator<string, "stop" | "length"> {
  const room = engine.capabilities.maxContext - prompt.length;
  if (room < 1)
    throw new EngineError(
      `the text has ${prompt.length} tokens, but the model's context has only ${engine.capabilities.maxContext}; begin anew`,
    );
  const limit = Math.min(maxTokens, room);
  const tokens: number[] = [];
  let shown = "";
  for (let ended = false; !ended && tokens.length < limit; ) {
    signal?.throwIfAborted();
    const [samples] = await engine.sample([
      {
        prompt: [...prompt, ...tokens],
        maxTokens: Math.min(PIECE, limit - tokens.length),
        temperature,
        stop: tokenizer.endIds.map((id) => [id]),
        continued: true,
        seed: mixSeed(seed, "piece", tokens.length),
      },
    ]);
    const sample = samples![0]!;
    ended = sample.stopReason === "stop";
    tokens.push(...sample.tokens);
    const text = tokenizer.decode(ended ? tokens.slice(0, -1) : tokens);
    // An unfinished character is decoded as a replacement character.
    const whole = ended ? text : text.replace(/\uFFFD+$/, "");
    if (whole.length > shown.length) yield whole.slice(shown.length);
    shown = whole;
    if (ended) return "stop";
  }
  return "length";
}

const options = z.strictObject({
  system: z.string().optional().describe("system prompt (default: the chat template's own)"),
  plain: z
    .boolean()
    .default(false)
    .describe("continue the text as it is, without the chat template"),
  temperature: z.number().min(0).default(0.7).describe("sampling temperature (0: greedy)"),
  maxTokens: z.int().min(1).default(512).describe("maximum length of an answer in tokens"),
  seed: z.int().min(0).default(0).describe("random seed"),
  engine: engineChoice,
});

type ChatOptions = z.output<typeof options>;

/** `pawl model chat`: talk to a model. */
export const modelChat = defineCommand({
  name: "model chat",
  summary: "talk to a model in the terminal",
  positionals: "MODEL",
  details: `${MODEL_NAMES}\nEvery line is a message; Ctrl-D ends. A model without a chat template continues the text.`,
  options: () => options,
  examples: [
    ["pawl model chat SmolLM2.gguf", "from a file"],
    ["pawl model chat HuggingFaceTB/SmolLM2-135M-Instruct", "from the hub"],
    ["echo 'Who are you?' | pawl model chat runs/… --temperature 0", "one question, greedy"],
    ["pawl model chat served --engine http://gpu:8000", "an engine server's own model"],
  ],
  async run(call) {
    const { positionals, io } = call;
    const name = requireModel("model chat", positionals);
    const folder = mkdtempSync(join(tmpdir(), "pawl-chat-"));
    try {
      const model = await openByName(name, folder, call.config.engine, call);
      try {
        await talk(model, name, call);
      } finally {
        await model.engine.dispose();
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
    if (io.stdin.isTTY) print(io);
    return exitCodes.done;
  },
});

const beginning = z.looseObject({ add_bos_token: z.boolean().optional(), bos_token: z.string() });

/** The token that a text begins with, in models that expect one; chat templates write it themselves. */
function beginningOf({ files, id }: Tokenizer): readonly number[] {
  const { data } = beginning.safeParse(JSON.parse(files.config ?? "{}"));
  const begin = data?.add_bos_token === true ? id(data.bos_token) : undefined;
  return begin === undefined ? [] : [begin];
}

async function talk(
  { engine, tokenizer }: OpenModel,
  name: string,
  { config, io, signal }: Call<ChatOptions>,
): Promise<void> {
  const { system, maxTokens, temperature, seed } = config;
  const plain = config.plain || !tokenizer.hasChatTemplate;
  if (plain && system !== undefined)
    throw new ConfigError(
      "--system: without a chat template there is no system prompt; leave it out",
    );
  if (plain && !config.plain) note(io, `${name} has no chat template: it continues the text`);
  const messages: ChatMessage[] = system === undefined ? [] : [{ role: "system", content: system }];
  const asker = createAsker(io);
  try {
    for (let turn = 0; ; turn++) {
      const line = await asker.ask(io.colors.dim("> "), () => [], signal);
      if (line === undefined) return;
      if (line === "") continue;
      messages.push({ role: "user", content: line });
      const prompt = plain
        ? [...beginningOf(tokenizer), ...tokenizer.encode(line)]
        : tokenizer.encode(tokenizer.chat(messages, { addGenerationPrompt: true }));
      let answer = "";
      const pieces = streamAnswer(engine, tokenizer, prompt, {
        maxTokens,
        temperature,
        seed: mixSeed(seed, turn),
        signal,
      });
      for await (const piece of pieces) {
        answer += piece;
        write(io, plainText(piece));
      }
      print(io);
      messages.push({ role: "assistant", content: answer });
    }
  } finally {
    asker.close();
  }
}
