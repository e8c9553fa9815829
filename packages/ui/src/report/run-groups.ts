/** Runs that differ only by their seed form a group: they are shown as their mean and spread. */
import { changedOnTheWay, type Manifest } from "@pawl/core/runs/manifest.js";
import type { MetricsLine } from "@pawl/core/runs/metrics-file.js";
import type { RecordedRun } from "@pawl/core/runs/run-folder.js";
import { endOf, secondsOf } from "@pawl/core/runs/run-list.js";
import { withoutSecretSettings } from "@pawl/core/trust/secret-settings.js";
import type { SettingRow } from "./views.js";

/** What a report needs of a run. */
export interface ReportRun {
  readonly folder: string;
  readonly manifest: Manifest;
  readonly metrics: readonly MetricsLine[];
  /** How it ended, and how long it took. */
  readonly ended: string;
  readonly seconds?: number | undefined;
}

/** What a report needs of a recorded run. */
export function reportRun(run: RecordedRun): ReportRun {
  const { folder, manifest } = run;
  return { folder, manifest, metrics: run.metrics(), ended: endOf(run), seconds: secondsOf(run) };
}

/** Runs of the same settings. */
export interface RunGroup {
  readonly label: string;
  readonly runs: readonly ReportRun[];
}

/**
 * Settings that do not make runs different: the seed, and where and how often things are written.
 */
const INCIDENTAL = /^(seed|checkpointEvery|keep|engine\.threads)$/;

/** The runs in groups, each named by the settings in which the groups differ. */
export function groupRuns(runs: readonly ReportRun[]): readonly RunGroup[] {
  const members = new Map<string, { settings: Settings; runs: ReportRun[] }>();
  for (const run of runs) {
    const settings = settingsOf(run.manifest);
    const key = JSON.stringify([...settings].sort(([a], [b]) => (a < b ? -1 : 1)));
    const group = members.get(key) ?? { settings, runs: [] };
    group.runs.push(run);
    members.set(key, group);
  }
  const groups = [...members.values()];
  const paths = new Set(groups.flatMap(({ settings }) => [...settings.keys()]));
  const differing = [...paths].filter(
    (path) => new Set(groups.map(({ settings }) => settings.get(path))).size > 1,
  );
  return groups.map(({ settings, runs: same }) => ({
    label: labelOf(settings, differing) || same[0]!.folder,
    runs: same,
  }));
}

type Settings = ReadonlyMap<string, string>;

/** Too many differences for a name. */
const MOST_DIFFERENCES = 4;

function labelOf(settings: Settings, differing: readonly string[]): string {
  if (differing.length === 0) {
    // World-model training has no estimator and is named by its folder.
    const estimator = settings.get("advantage.name") ?? "";
    const loss = settings.get("paw.loss");
    return loss === undefined || loss === "off" ? estimator : `${estimator} + ${loss}`;
  }
  if (differing.length > MOST_DIFFERENCES) return "";
  return differing.map((path) => `${path} ${settings.get(path) ?? "–"}`).join(" · ");
}

/** The settings of a run by path; one that a resume changed in what is learnt has its whole course. */
export const settingsOf = (manifest: Pick<Manifest, "config" | "resumes">): Map<string, string> =>
  new Map([...flatten(manifest.config), ...changedOnTheWay(manifest)]);

/** Nested settings by path, without incidental ones and without keys; lists as they are. */
function flatten(config: object): Map<string, string> {
  return flattened(withoutSecretSettings(config).settings);
}

function flattened(config: object, path = ""): Map<string, string> {
  const flat = new Map<string, string>();
  for (const [key, value] of Object.entries(config) as [string, unknown][]) {
    const place = path === "" ? key : `${path}.${key}`;
    if (INCIDENTAL.test(place)) continue;
    if (value !== null && typeof value === "object" && !Array.isArray(value)) {
      for (const [below, text] of flattened(value, place)) flat.set(below, text);
    } else {
      flat.set(place, typeof value === "string" ? value : JSON.stringify(value));
    }
  }
  return flat;
}

/** The settings that a run would have without any of its own. */
export interface Recipe {
  readonly name: string;
  readonly config: Readonly<Record<string, unknown>>;
}

/** All settings of a run; those that differ name the recipe's. */
export function settingRows(
  manifest: Pick<Manifest, "config" | "resumes">,
  recipe: Recipe["config"] | undefined,
): readonly SettingRow[] {
  const base = recipe === undefined ? undefined : flatten(recipe);
  const own = settingsOf(manifest);
  const rows = [...own].map(([path, value]): SettingRow => {
    const other = base?.get(path);
    return base === undefined || other === value
      ? { path, value }
      : { path, value, recipe: other ?? "–" };
  });
  const gone = [...(base ?? [])].flatMap(([path, value]) =>
    own.has(path) ? [] : [{ path, value: "–", recipe: value }],
  );
  return [...rows, ...gone];
}
