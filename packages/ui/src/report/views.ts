/** What pages show, as data: in a report inside the file, in `pawl ui` sent by its server. */

/** Metrics by name, each as long as `update`; null where a line has none. */
export interface MetricsColumns {
  readonly update: readonly number[];
  readonly columns: Readonly<Record<string, readonly (number | null)[]>>;
  /** Of a thinned table: how many lines a row is the mean of, and their smallest and largest values. */
  readonly every?: number;
  readonly bands?: Readonly<
    Record<
      string,
      { readonly low: readonly (number | null)[]; readonly high: readonly (number | null)[] }
    >
  >;
}

/** A setting, and what its recipe says. */
export interface SettingRow {
  readonly path: string;
  readonly value: string;
  /** What the recipe has; absent if it is the same. */
  readonly recipe?: string;
}

/** How a run went. */
export interface RunView {
  readonly folder: string;
  readonly seed: number;
  readonly updates: number;
  /** `done`, `failed`, `interrupted`, `running now`, `killed`. */
  readonly ended: string;
  readonly error?: string;
  readonly seconds: number | null;
  /** Tokens learnt from. */
  readonly tokens: number;
  readonly memoryMib: number | null;
  readonly cores: number | null;
  readonly versions: Readonly<Record<string, string>>;
}

/** Text that may have been cut: `length` is what there is. */
export interface CutText {
  readonly text: string;
  readonly length: number;
}

/** A token of a step, with what is known of it. */
export interface TokenView {
  readonly text: string;
  readonly kind: "prompt" | "action" | "observation" | "template";
  readonly logprob?: number;
  readonly entropy?: number;
  /** Its own advantage, where a critic gives one to each token. */
  readonly advantage?: number;
  /** Whether the world model's mask keeps it for training. */
  readonly kept?: boolean;
}

/** What an agent did at a step, and what the world answered. */
export interface ExchangeView {
  readonly response: CutText;
  readonly action: CutText;
  readonly observation: CutText;
  readonly wellFormed: boolean;
  readonly valid: boolean;
  readonly cut: boolean;
  readonly strayed: boolean;
  readonly reward: number;
  readonly advantage?: number;
  /** Whether the world model learnt from what came; absent if that is not known, or there is none. */
  readonly selected?: boolean;
}

/** An episode in a report. */
export interface ReportEpisode {
  readonly update: number;
  readonly goal: string;
  readonly type: string;
  readonly return: number;
  readonly success: boolean;
  readonly stop: string;
  readonly firstObservation: string;
  readonly steps: readonly ExchangeView[];
}

/** A step's observation under several weights. */
export interface ReportPrediction {
  readonly goal: string;
  readonly action: string;
  readonly update: number;
  readonly rows: readonly {
    readonly weights: string;
    readonly meanP: number;
    readonly tokens: readonly TokenView[];
  }[];
}

/** A report of training runs. */
export interface ReportView {
  readonly kind: "report";
  readonly title: string;
  readonly lead: string;
  /** Whether runs play episodes, so that there is something to read. */
  readonly plays: boolean;
  readonly groups: readonly {
    readonly label: string;
    readonly runs: readonly RunView[];
    readonly settings: readonly SettingRow[];
    /** The recipe that the settings are compared with. */
    readonly recipe: string | null;
    readonly tables: readonly MetricsColumns[];
    readonly plays: boolean;
    readonly episodes: readonly ReportEpisode[];
    readonly predictions?: { readonly mask: string; readonly steps: readonly ReportPrediction[] };
    /** Why there are none. */
    readonly unpredicted?: string;
  }[];
}

/** The page of `pawl wm threshold`. */
export interface ThresholdView {
  readonly kind: "threshold";
  readonly title: string;
  readonly lead: string;
  readonly threshold: number;
  readonly curves: readonly {
    readonly label: string;
    readonly points: readonly (readonly [x: number, y: number])[];
  }[];
  readonly rows: readonly {
    readonly name: string;
    readonly threshold: number;
    readonly accepted: readonly number[];
    readonly accuracy: number;
  }[];
  readonly examples: readonly {
    readonly kind: string;
    readonly pairs: readonly {
      readonly real: string;
      readonly predicted: string;
      readonly distance: number;
    }[];
  }[];
}
