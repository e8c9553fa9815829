/**
 * The models that pages ask: one is open at a time, and questions to it wait for each other, because
 * memory and cores are shared with a training. One that nobody asks any more is closed.
 */
import type { Engine } from "@pawl/core/engine/engine.js";
import { HttpError } from "@pawl/core/http/http-server.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import { engineFor } from "@pawl/training/engines.js";
import { openModel } from "@pawl/training/open-model.js";
import { type ActingConfig, actingConfigOf } from "@pawl/training/recorded-config.js";
import { engineWorldModel, type WorldModel } from "@pawl/worldmodel/model.js";
import { findWorldModel } from "@pawl/worldmodel/saved.js";

/** A run's model, as an agent and as a world model. */
export interface DeskModel {
  readonly name: string;
  readonly engine: Engine;
  readonly tokenizer: Tokenizer;
  readonly worldModel: WorldModel;
  /** How it acts; undefined for a run that trained only a world model. */
  readonly acting: ActingConfig | undefined;
}

/** Lends models to one question after another. */
export interface ModelDesk {
  ask<T>(folder: string, name: string, question: (model: DeskModel) => Promise<T>): Promise<T>;
  /** Work with a model of its own, when no question is being answered. */
  wait<T>(work: () => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** Questions that wait; each holds its page's connection. */
const MOST_WAITING = 32;
/** Longest answer of a model in the world's place, in tokens. */
export const MOST_TOKENS = 256;

/** A desk without a model; the first question opens one, which is closed when it was idle for this long. */
export function createModelDesk(idleMs: number): ModelDesk {
  let open: (DeskModel & { readonly weights: string }) | undefined;
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  let idle: NodeJS.Timeout | undefined;
  const close = async (): Promise<void> => {
    const model = open;
    open = undefined;
    await model?.engine.dispose();
  };
  const lend = async (folder: string, name: string): Promise<DeskModel> => {
    const found = findWorldModel(folder);
    // A training run has newer weights now and then.
    if (open?.weights === found.weights) return open;
    await close();
    const { engine, tokenizer } = await openModel({
      start: { folder: found.weights, tokenizer: found.tokenizer },
      engine: engineFor(found.engine),
    });
    const worldModel = engineWorldModel({
      engine,
      tokenizer,
      protocol: found.protocol,
      maxTokens: MOST_TOKENS,
      name,
    });
    open = {
      name,
      weights: found.weights,
      engine,
      tokenizer,
      worldModel,
      acting: actingConfigOf(folder),
    };
    return open;
  };
  const queued = <T>(work: () => Promise<T>): Promise<T> => {
    const result = last.then(work, work);
    last = result.catch(() => undefined);
    return result;
  };
  const asked = async <T>(work: () => Promise<T>): Promise<T> => {
    if (waiting >= MOST_WAITING)
      throw new HttpError(503, `${MOST_WAITING} questions wait already: try again later`);
    clearTimeout(idle);
    waiting += 1;
    try {
      return await queued(work);
    } finally {
      waiting -= 1;
      if (waiting === 0) idle = setTimeout(() => void queued(close), idleMs).unref();
    }
  };
  return {
    ask: (folder, name, question) => asked(async () => question(await lend(folder, name))),
    wait: asked,
    close() {
      clearTimeout(idle);
      return queued(close);
    },
  };
}
