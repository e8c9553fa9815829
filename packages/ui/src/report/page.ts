/** The page of a report: the data of its groups, in one file. */
import type { PawOptions } from "@pawl/core/objectives/paw-options.js";
import type { PredictedStep } from "./predictions.js";
import { type Recipe, type ReportRun, type RunGroup, settingRows } from "./run-groups.js";
import { type SampledEpisode, viewSampled } from "./sampled-episodes.js";
import { staticPage } from "./static-page.js";
import { columnsOf, thinned } from "./thin.js";
import type { ReportPrediction, ReportView, RunView } from "./views.js";

/** A group of runs, with episodes and predictions of its first run. */
export interface ReportGroup extends RunGroup {
  readonly episodes: readonly SampledEpisode[];
  /** The recipe that its settings are compared with. */
  readonly recipe?: Recipe | undefined;
  readonly predictions?: { readonly steps: readonly PredictedStep[]; readonly paw: PawOptions };
  /** Why there are no predictions. */
  readonly unpredicted?: string;
}

/** The whole page, as HTML. */
export function reportPage(groups: readonly ReportGroup[]): string {
  return staticPage(reportView(groups));
}

/** The data of the page. */
export function reportView(groups: readonly ReportGroup[]): ReportView {
  const runs = groups.flatMap((group) => group.runs);
  const dates = runs.map(({ manifest }) => manifest.createdAt.slice(0, 10)).sort();
  const environments = [...new Set(runs.map(({ manifest }) => environmentOf(manifest.config)))];
  const period = [...new Set([dates[0]!, dates.at(-1)!])].join(" to ");
  const spread = groups.some((group) => group.runs.length > 1) ? ` ${SPREAD}` : "";
  const plays = ({ runs: [first] }: ReportGroup): boolean => first!.manifest.kind === "train";
  return {
    kind: "report",
    title: `Training report: ${environments.join(", ")}`,
    lead: `${count(runs.length, "run")} in ${count(groups.length, "group")}, started ${period}.${spread}`,
    plays: groups.some(plays),
    groups: groups.map((group) => ({
      label: group.label,
      runs: group.runs.map(viewRun),
      settings: settingRows(group.runs[0]!.manifest, group.recipe?.config),
      recipe: group.recipe?.name ?? null,
      tables: group.runs.map(({ metrics }) => thinned(columnsOf(metrics))),
      plays: plays(group),
      episodes: group.episodes.map(viewSampled),
      ...(group.unpredicted !== undefined && { unpredicted: group.unpredicted }),
      ...(group.predictions !== undefined && {
        predictions: {
          mask: maskWords(group.predictions.paw),
          steps: group.predictions.steps.map(viewPrediction),
        },
      }),
    })),
  };
}

const SPREAD =
  "Runs that differ only by their seed form a group: curves show its mean and one standard deviation.";

function viewRun({ folder, manifest, metrics, ended, seconds }: ReportRun): RunView {
  const all = (name: string): readonly number[] => metrics.flatMap((line) => line[name] ?? []);
  const memory = all("memory.mib");
  return {
    folder,
    seed: manifest.seed,
    updates: (metrics.at(-1)?.update ?? -1) + 1,
    ended,
    ...(manifest.error !== undefined && { error: manifest.error }),
    seconds: seconds ?? null,
    tokens: all("train.tokens").reduce((sum, tokens) => sum + tokens, 0),
    memoryMib: memory.length === 0 ? null : memory.reduce((a, b) => Math.max(a, b)),
    cores: manifest.cores ?? null,
    versions: manifest.versions,
  };
}

function viewPrediction({ rows, ...step }: PredictedStep): ReportPrediction {
  return {
    ...step,
    rows: rows.map(({ weights, tokens }) => ({
      weights,
      meanP: tokens.reduce((sum, { p }) => sum + p, 0) / tokens.length,
      tokens: tokens.map(({ text, p, kept }) => ({
        text,
        kind: "observation" as const,
        logprob: Math.max(-100, Math.log(p)),
        ...(kept !== undefined && { kept }),
      })),
    })),
  };
}

/** What an underlined token means. */
function maskWords({ loss, mask, rho }: PawOptions): string {
  if (loss === "off") return "This run trains no world model, so no token is marked.";
  return loss === "cmae"
    ? `Underlined: the world model learns from it (mask ${mask}, ρ = ${rho}).`
    : `Underlined: the world model learns from it (${loss} has no mask).`;
}

/** The environment, or the data sets if there is none. */
function environmentOf({ env, data }: Readonly<Record<string, unknown>>): string {
  if (Array.isArray(data)) return data.join(", ");
  return String((env as { readonly name?: unknown } | undefined)?.name ?? "unknown");
}

const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? "" : "s"}`;
