/**
 * A model on a server: what `remote-engine.ts` needs from one, for either kind of server.
 *
 * `pawl-model.ts` is for our own servers, which report what they support beyond the plain protocol;
 * `tinker-model.ts` is for any other Tinker-compatible server.
 */

import type { Vocabulary } from "@pawl/core/constraint/vocabulary.js";
import { EngineError, type Sample, type SampleRequest } from "@pawl/core/engine/engine.js";
import type { Learning } from "./learning.js";
import type { Result, Session } from "./server.js";
import type { TransportOptions } from "./transport.js";

/** Which server to use, which model on it, and how long to wait. */
export interface RemoteOptions extends Omit<TransportOptions, "key"> {
  /**
   * A checkpoint folder, which is uploaded to the server, or a folder with a pointer to a
   * checkpoint that is already there. Default: the served model.
   */
  readonly folder?: string;
  /** The name of the model on a server that serves several. */
  readonly model?: string;
  /** Rank of low-rank adapters to train; 0 trains all weights. Default 0. */
  readonly loraRank?: number;
  /**
   * Whether checkpoints are downloaded into their folders, including the weights. Default false.
   */
  readonly copy?: boolean;
  readonly valueHead?: boolean;
  readonly seed?: number;
  /**
   * Where to look up the key: PAWL_API_KEY, then TINKER_API_KEY. Default: the process's
   * environment.
   */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly heartbeatMs?: number;
  readonly connectMs?: number;
  /** Called with a message for each missing feature and its workaround. */
  readonly onNotice?: (message: string) => void;
}

/** A model on a server of either kind. */
export interface RemoteModel extends Learning {
  sample(requests: readonly SampleRequest[]): Promise<readonly (readonly Sample[])[]>;
  /** Says what the model's tokens stand for, to a server that knows constraints. */
  useVocabulary?(vocabulary: Vocabulary): Promise<void>;
  /** To be called after an optimiser step: copies of the weights are outdated. */
  weightsChanged(): void;
  snapshotReference(): Promise<void>;
  save(
    folder: string,
    what: { readonly optimizer: boolean; readonly merged: boolean },
  ): Promise<void>;
  load(folder: string): Promise<void>;
  unload(): Promise<void>;
}

/** Calls to one model. */
export interface ModelCalls {
  readonly id: string;
  /** A call that changes the model, executed once, in order. */
  change(path: string, body?: object): Promise<Result>;
  /** A call that changes nothing. */
  ask(path: string, body: object): Promise<Result>;
  /** The number of numbered calls so far. */
  numbered(): number;
}

/**
 * Calls to the model with that id, numbered from 1: a number is never used twice. Our own server
 * numbers only changes; a plain one numbers everything, because the first call may be special.
 */
export function callsTo(session: Session, id: string): ModelCalls {
  const isPlain = session.server.pawl === undefined;
  let numbered = 0;
  const next = () => {
    numbered += 1;
    return { model_id: id, seq_id: numbered };
  };
  return {
    id,
    change: (path, body = {}) => session.call(path, { ...next(), ...body }),
    ask: (path, body) =>
      session.call(
        path,
        { ...(isPlain ? next() : { model_id: id }), ...body },
        { repeatable: true },
      ),
    numbered: () => numbered,
  };
}

/**
 * The name of the model to create; empty if one is uploaded to a server that was started without
 * one.
 */
export function chooseModel(
  { server, transport }: Session,
  model: string | undefined,
  brought: boolean,
): string {
  const names = server.supported_models.map(({ model_name }) => model_name);
  if (model !== undefined && !names.includes(model))
    throw new EngineError(
      `the engine server at ${transport.shownUrl} has no model ${JSON.stringify(model)}; it has: ${names.join(", ") || "none"}`,
    );
  if (names.length === 0 && !brought)
    throw new EngineError(
      `the engine server at ${transport.shownUrl} was started without a model: provide one (model.start: a preset or a folder), or start it with one (pawl serve engine --model FOLDER)`,
    );
  if (model === undefined && names.length > 1)
    throw new EngineError(
      `the engine server at ${transport.shownUrl} has ${names.length} models: choose one with engine.model; it has: ${names.join(", ")}`,
    );
  return model ?? names[0] ?? "";
}

/** Rejects what the configuration requires and the server lacks. */
export function requireOf(session: Session, what: string, wanted: boolean, has: boolean): void {
  if (wanted && !has)
    throw new EngineError(
      `the engine server at ${session.transport.shownUrl} has no ${what}, which the configuration requires`,
    );
}
