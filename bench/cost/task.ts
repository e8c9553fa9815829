/** What an engine is asked to do, in numbers of tokens: measured in `measure.ts`, counted in `work.ts`. */

/** One forward and backward pass over sequences of the same length, and one optimiser step. */
export interface Learn {
  readonly do: "learn";
  readonly sequences: number;
  readonly length: number;
  /** Tokens of a sequence that are predicted; default: all. */
  readonly targets?: number;
  /** Optimiser steps; default 1. */
  readonly steps?: number;
}

/** A forward pass that returns log-probabilities. */
export interface Score {
  readonly do: "score";
  readonly sequences: number;
  readonly length: number;
  readonly targets?: number;
}

/** Prompts that are read once, and continued `count` times each. */
export interface Sample {
  readonly do: "sample";
  readonly prompts: number;
  readonly count: number;
  readonly prompt: number;
  /** Tokens of a prompt that are in the cache already; default 0. */
  readonly cached?: number;
  readonly fresh: number;
  /** How often, one after the other; default 1. */
  readonly times?: number;
}

/** Episodes that play in lock-step; every turn continues the tokens of the one before. */
export interface Act {
  readonly do: "act";
  readonly episodes: number;
  readonly turns: number;
  /** Tokens of the first prompt, of a response and of an observation. */
  readonly first: number;
  readonly response: number;
  readonly observation: number;
}

export type Task = Learn | Score | Sample | Act;
