/** What a run is and how it went, from its manifest and its metrics. */
import type { SettingsTree } from "@pawl/core/config/settings-tree.js";
import { bestCheckpoint } from "@pawl/core/runs/checkpoints.js";
import type { RecordedRun } from "@pawl/core/runs/run-folder.js";
import {
  endOf,
  evaluationHeadline,
  type Headline,
  headlineOf,
  secondsOf,
} from "@pawl/core/runs/run-list.js";
import { percent } from "./format.js";

/** The facts that `pawl runs` and `pawl show` tell about a run. */
export interface RunFacts {
  readonly environment: string | undefined;
  readonly model: string | undefined;
  /** Updates done, and those wanted. */
  readonly updates: { readonly done: number; readonly all: number } | undefined;
  /** What stands for the run. */
  readonly headline: Headline | undefined;
  /** The evaluation in which that number was best. */
  readonly best: Evaluated | undefined;
  readonly seconds: number | undefined;
  /** How it ended: `done`, `failed`, `interrupted`, `running now`, or `killed`. */
  readonly ended: string;
}

interface Evaluated extends Headline {
  readonly update: number;
  /** Its checkpoint, if that was kept. */
  readonly folder?: string;
}

/** Reads the facts of a run. */
export function factsOf(run: RecordedRun): RunFacts {
  const { manifest } = run;
  const { config } = manifest;
  const lines = run.metrics();
  const updates = lines.map((line) => line.update ?? -1).filter((update) => update >= 0);
  const evaluated = lines.flatMap((line): readonly Evaluated[] => {
    const headline = evaluationHeadline(line);
    return headline === undefined ? [] : [{ ...headline, update: line.update ?? -1 }];
  });
  const best = evaluated.reduce<Evaluated | undefined>(
    (one, other) => (one === undefined || other.success >= one.success ? other : one),
    undefined,
  );
  const kept = bestCheckpoint(run.folder);
  const all = config.updates;
  return {
    environment: nameIn(config.env, "name"),
    model: manifest.start?.model ?? nameIn(config.model, "start") ?? nameIn(config, "checkpoint"),
    updates: typeof all === "number" ? { done: Math.max(-1, ...updates) + 1, all } : undefined,
    headline: headlineOf(lines, manifest.summary),
    best: best && {
      ...best,
      ...(kept?.state.updates === best.update + 1 && { folder: kept.folder }),
    },
    seconds: secondsOf(run),
    ended: endOf(run),
  };
}

/** `84.4 % (77.1 to 89.7) valid_unseen`. */
export function headlineText({ success, interval, of }: Headline): string {
  const [low, high] = (interval ?? []).map((share) => (100 * share).toFixed(1));
  const range = low === undefined ? "" : ` (${low} to ${high})`;
  const where = of.replace(/^eval\.|\.?success$/g, "");
  return `${percent(success)}${range}${where === "" ? "" : ` ${where}`}`;
}

const isTree = (value: unknown): value is SettingsTree =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function nameIn(tree: unknown, key: string): string | undefined {
  const value = isTree(tree) ? tree[key] : undefined;
  return typeof value === "string" ? value : undefined;
}
