/**
 * A real model for tests that has learnt one conversation by heart: it calls tools ten times, once
 * two of them, and then says that it is enough.
 */
import { existsSync, mkdtempSync, renameSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Engine, TrainSequence } from "@pawl/core/engine/engine.js";
import { supervisedObjective } from "@pawl/core/objectives/supervised.js";
import type { Sampler } from "@pawl/core/rollout/scheduler.js";
import { createEmbeddedEngine } from "@pawl/engine-cpu/embedded-engine.js";
import type { ChatMessage } from "./chat.js";
import { hermes, repeated, scriptedSession, tools, user } from "./testing.js";

/** How often the model calls tools. */
export const TURNS = 10;

/** The user's question that the model can answer. */
export const question = "go on";

/** What the tool of its conversation returns. */
export const look = ({ place }: { readonly place: string }): string => `seen ${place}`;

const called = (place: string): string =>
  `<tool_call>{"name": "look", "arguments": {"place": "${place}"}}</tool_call>`;

const script: readonly string[] = Array.from({ length: TURNS }, (_, turn) =>
  turn === 4 ? `${called(`a${turn}`)}\n${called(`b${turn}`)}` : `go ${called(`a${turn}`)}`,
).concat("<think>all seen</think>enough");

/** The conversation as the sequence of its last call, with every answer as a target. */
async function lesson(): Promise<TrainSequence> {
  const { session } = scriptedSession(script);
  let messages: readonly ChatMessage[] = [user(question)];
  for (const _ of script) {
    const answer = await session.ask({ messages, tools });
    const seen = answer.calls.map((call): ChatMessage => {
      const content = look(JSON.parse(call.arguments));
      return { role: "tool", content, answers: call.id };
    });
    messages = [...messages, repeated(answer), ...seen];
  }
  const { ids } = session.calls.at(-1)!.sequence;
  const targets = new Uint8Array(ids.length);
  for (const { prompt, sample } of session.calls)
    targets.fill(1, prompt.ids.length, prompt.ids.length + sample.tokens.length);
  const count = targets.reduce((sum, target) => sum + target, 0);
  return { ids, targets, inputs: { weight: Float32Array.from(targets, (one) => one / count) } };
}

/** Where its weights are kept for all test files: `tests/temporary.ts` removes them after the last one. */
const saved = join(tmpdir(), "pawl-overfit");

/** The engine of that model; the caller disposes of it. */
export async function overfitEngine(): Promise<Engine> {
  if (existsSync(saved)) return createEmbeddedEngine({ model: { folder: saved }, threads: 1 });
  const { vocabularySize } = hermes;
  const model = { preset: "tiny", vocabularySize, maxContext: 1024 } as const;
  const engine = await createEmbeddedEngine({ model, threads: 1 });
  const sequence = await lesson();
  for (let step = 0; step < 300; step++) {
    const { loss } = await engine.forwardBackward([sequence], supervisedObjective);
    if (loss < 0.01) break;
    await engine.optimStep({ learningRate: 5e-3, gradClipNorm: 1 });
  }
  await engine.discardGradients();
  const folder = mkdtempSync(`${saved}-`);
  await engine.save(folder, { optimizer: false });
  // Another process may have been faster.
  if (!existsSync(saved)) renameSync(folder, saved);
  return engine;
}

/** Samples one request at a time, without a queue. */
export function directly(engine: Engine): Sampler {
  return { sample: async (request) => (await engine.sample([request]))[0]![0]! };
}
