/** What passes between an embedded engine and its worker thread. */
import type { Capabilities, Engine } from "../engine.js";

/** Engine methods, which the worker carries out. */
export type Method = Exclude<keyof Engine, "capabilities">;

export interface Call {
  readonly id: number;
  readonly method: Method;
  readonly args: readonly unknown[];
}

export interface Reply {
  /** That of the call; 0 for the model being ready. */
  readonly id: number;
  readonly result?: unknown;
  readonly capabilities?: Capabilities;
  readonly error?: {
    readonly message: string;
    readonly stack: string | undefined;
    /** Whether it is an `EngineError`, told to the user as it is. */
    readonly expected: boolean;
  };
}
