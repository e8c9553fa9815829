/** What samples for an engine that learns. One file per kind; `sampler-engine.ts` lists them. */
import type { RetryPolicy } from "../../http-client.js";
import type { Sample, SampleRequest } from "../engine.js";

/** Where the sampler is. */
export interface SamplerPlace {
  readonly url: string;
  /** Its model, if it has several. */
  readonly model?: string;
  readonly retry?: Partial<RetryPolicy>;
  /** What is known of the engine that learns; absent: it is embedded. */
  readonly engine?: SampledEngine;
}

/** Where the engine's weights are. */
interface SampledEngine {
  /** They stay on a server. */
  readonly isRemote: boolean;
  /** They are copied from there whenever they are saved. */
  readonly copy: boolean;
  readonly loraRank: number;
}

/** A program that samples. */
export interface RemoteSampler {
  readonly name: string;
  /** Whether it returns log-probabilities at temperatures other than 1. */
  readonly temperatures: boolean;
  /** Gives it the engine's weights for the first time; rejects a sampler that does not fit. */
  check(folder: string): Promise<void>;
  /** Puts the engine's present weights where it can read them, by way of this folder. */
  put(folder: string): Promise<void>;
  /** Lets it load them. */
  take(folder: string): Promise<void>;
  sample(requests: readonly SampleRequest[]): Promise<readonly (readonly Sample[])[]>;
  dispose(): Promise<void>;
}
