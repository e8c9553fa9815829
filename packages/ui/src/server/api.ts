/** What the server says to the page, as JSON. */

import type { StopReason } from "@pawl/core/rollout/episode.js";
import type {
  CutText,
  ExchangeView,
  MetricsColumns,
  SettingRow,
  TokenView,
} from "../report/views.js";
import type { EpisodeEntry } from "./episode-entry.js";

/** How a run stands: `killed` is one that says it runs, and no process writes to it. */
export type RunState = "running" | "done" | "stopped" | "interrupted" | "failed" | "killed";

/** A run in the list. */
export interface RunRow {
  readonly id: string;
  readonly kind: string;
  readonly state: RunState;
  readonly env: string;
  readonly seed: number;
  readonly createdAt: string;
  /** Updates done, and asked for. */
  readonly update: number | null;
  readonly updates: number | null;
  readonly success: number | null;
  /** The metric that `success` is. */
  readonly successOf: string | null;
  /** Its 95 % interval. */
  readonly interval: readonly [low: number, high: number] | null;
  readonly secondsLeft: number | null;
  /** How long it took, once it has ended. */
  readonly seconds: number | null;
  /** The model that it started from, without its folder. */
  readonly model: string | null;
  /** The settings in which it differs from runs of its kind. */
  readonly differs: Readonly<Record<string, string>>;
  /** Runs with the same key differ only by their seed. */
  readonly groupKey: string;
}

/** The list of runs. */
export interface RunList {
  readonly folder: string;
  readonly runs: readonly RunRow[];
  readonly problems: readonly string[];
}

/** A run in full. */
export interface RunDetail {
  readonly row: RunRow;
  readonly folder: string;
  readonly error: string | null;
  readonly versions: Readonly<Record<string, string>>;
  readonly recipe: string | null;
  readonly settings: readonly SettingRow[];
  readonly commands: readonly { readonly what: string; readonly command: string }[];
}

/** The metrics of a run. */
export interface MetricsTable extends MetricsColumns {
  /** Bytes that were read: the live stream continues there. */
  readonly end: number;
  readonly problems: readonly string[];
}

/** A filter of episodes; absent fields do not restrict. */
export interface EpisodeFilter {
  readonly text?: string;
  readonly type?: string;
  readonly split?: string;
  readonly outcome?: "solved" | "failed" | "broken";
  readonly stop?: StopReason;
  readonly invalid?: boolean;
  readonly minReturn?: number;
  readonly maxReturn?: number;
  readonly minSteps?: number;
  readonly maxSteps?: number;
  readonly fromGroup?: number;
  readonly toGroup?: number;
  readonly sort?: EpisodeSort;
  readonly from?: number;
}

/** The order of a list of episodes. */
export type EpisodeSort = "newest" | "oldest" | "longest" | "shortest" | "best" | "worst";

/** An episode in the list. */
export interface EpisodeRow extends Omit<EpisodeEntry, "offset" | "length" | "line"> {
  readonly id: string;
}

/** Some of the episodes that pass a filter. */
export interface EpisodePage {
  readonly rows: readonly EpisodeRow[];
  readonly matching: number;
  readonly indexed: number;
  /** How much of the record is indexed, from 0 to 1. */
  readonly progress: number;
  /** Bytes at the end of the record that are no whole episodes, once all of it has been read. */
  readonly rest: number;
  readonly types: readonly string[];
  readonly splits: readonly string[];
  readonly problems: readonly string[];
  readonly wordsFull: boolean;
}

/** An action that was considered before a step. */
export interface CandidateView {
  readonly action: CutText;
  readonly votes: number;
  readonly predicted: CutText | null;
  /** The predicted chance that it is refused. */
  readonly refused: number | null;
  /** What a copy of the world answered, and whether it accepted the action. */
  readonly truth: { readonly observation: CutText; readonly valid: boolean } | null;
  readonly chosen: boolean;
}

/** A step as the page shows it. */
export interface StepView extends ExchangeView {
  readonly prompt: readonly {
    readonly origin: string;
    readonly role?: string;
    readonly text: CutText;
  }[];
  readonly promptPieces: number;
  /** An agent's tool calls, and how long it waited for the response. */
  readonly calls: readonly {
    readonly tool: string;
    readonly arguments: CutText;
    readonly result: CutText | null;
  }[];
  readonly seconds: number | null;
  readonly candidates: readonly CandidateView[];
  /** The tokens written and observed at this step. */
  readonly tokens: readonly TokenView[];
}

/** An attempt of a group. */
export interface AttemptView extends EpisodeRow {
  /** How many of its first steps a teacher took. */
  readonly hint: number;
  /** The attempt that it branched off, and before which step. */
  readonly branch: { readonly from: number; readonly step: number } | null;
}

/** An episode in full. */
export interface EpisodeView {
  readonly row: EpisodeRow;
  readonly goal: CutText;
  readonly firstObservation: CutText;
  readonly error: CutText | null;
  /** An agent's task and what it returned, as JSON, and why its reward is what it is. */
  readonly given: CutText | null;
  readonly result: CutText | null;
  readonly why: CutText | null;
  readonly seed: number;
  readonly update: number | null;
  readonly steps: readonly StepView[];
  readonly group: readonly AttemptView[];
  readonly older: string | null;
  readonly newer: string | null;
  /** Whether advantages need the values of a critic, which has to be asked. */
  readonly critic: boolean;
  /** Whether the run has a checkpoint, which can be asked. */
  readonly checkpoint: boolean;
  /** Why tokens or advantages are missing, if they are. */
  readonly notes: readonly string[];
}

/** What the attempts of a group did, step by step. */
export interface GroupView {
  readonly attempts: readonly {
    readonly row: EpisodeRow;
    readonly steps: readonly {
      readonly action: string;
      readonly observation: string;
      readonly valid: boolean;
    }[];
  }[];
}

/** What a page may do, and where it is. */
export interface Session {
  readonly version: string;
  readonly folder: string;
  readonly play: boolean;
  /** Of `pawl try`: the run that acts at first, and the one that goes on from it. */
  readonly trial: Trial | null;
}

/** Two runs of `pawl try`. */
export interface Trial {
  readonly start: string;
  readonly trained: string;
}

/** A result of `pawl wm eval …`, `pawl eval` and the like, as it was written. */
export interface EvidenceFile {
  readonly path: string;
  readonly kind: "fidelity" | "consistency" | "card";
  readonly createdAt: string | null;
  readonly content: Readonly<Record<string, unknown>>;
}

/** What a checkpoint expected at a recorded step. */
export interface ExpectedStep {
  readonly model: string;
  /** What it would have answered in the world's place. */
  readonly observation: string;
  /** The tokens after the prompt, with its numbers. */
  readonly tokens: readonly TokenView[];
  readonly note?: string;
}

/** The advantage of each token that the agent wrote, by steps, in returns and not whitened. */
export interface CriticAdvantages {
  readonly steps: readonly (readonly number[])[];
}

/** The worlds that can be played, and the tasks of one. */
export interface WorldList {
  readonly worlds: readonly { readonly name: string; readonly summary: string }[];
  readonly chosen: string;
  readonly splits: readonly {
    readonly split: string;
    readonly tasks: readonly { readonly id: string; readonly type: string }[];
  }[];
  /** Why the chosen world cannot be opened. */
  readonly problem?: string;
}

/** A step that a person played. */
export interface PlayedStep {
  readonly action: string;
  readonly observation: string;
  readonly reward: number;
  readonly valid: boolean;
  readonly done: boolean;
  readonly success: boolean;
  /** Inside a world model: what the world answered (null: it is over), and whether that is the same. */
  readonly real?: string | null;
  readonly same?: boolean;
  /** Why the world model's answer ends the game, if it is no good one. */
  readonly note?: string;
}

/** A game as it stands. */
export interface PlayView {
  readonly id: string;
  readonly world: string;
  readonly task: string;
  readonly type: string;
  readonly seed: number;
  readonly goal: CutText;
  readonly firstObservation: CutText;
  readonly steps: readonly PlayedStep[];
  readonly admissible: readonly string[];
  readonly tools: readonly { readonly name: string; readonly description: string }[];
  readonly over: boolean;
  readonly solved: boolean;
  readonly stepLimit: number;
  readonly canUndo: boolean;
  readonly hasExpert: boolean;
  /** The run whose model answers, if the game is inside a world model. */
  readonly inside: string | null;
  /** The first step, from 1, at which model and world differed. */
  readonly divergence: number | null;
  readonly total: number;
}

/** An action that an agent may take next. */
export interface NextAction {
  readonly action: string;
  readonly p: number;
  readonly predicted?: string;
  readonly predictedSuccess?: boolean;
}

/** The tokens of what came, with the probabilities that an agent gave them. */
export interface Surprise {
  readonly tokens: readonly TokenView[];
}

/** What an agent would do: every listed action scored, or the agent sampled a few times. */
export interface NextActions {
  readonly how: "scored" | "sampled";
  readonly actions: readonly NextAction[];
}
