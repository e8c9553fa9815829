/** Writes the results of a comparison: numbers, tables, curves, and one page per setting. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { hasManifest } from "@pawl/core/runs/manifest.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { writeSmallFile } from "@pawl/core/runs/small-file.js";
import { trainConfigOf } from "@pawl/training/recorded-config.js";
import { reportPage } from "@pawl/ui/report/page.js";
import { reportRun } from "@pawl/ui/report/run-groups.js";
import { sampleEpisodes } from "@pawl/ui/report/sampled-episodes.js";
import { type Curve, curveSvg } from "./curve-svg.js";
import { comparisonMarkdown, curveFile, trainingCurveFile } from "./markdown.js";
import { trainingFolder } from "./result-file.js";
import type { ArmResult, ComparisonResults } from "./results.js";

/** Writes results.json, results.md, SETTING-in-training.svg, SETTING-SPLIT.svg and SETTING.html; returns their paths. */
export function writeResults(results: ComparisonResults, out: string): readonly string[] {
  mkdirSync(out, { recursive: true });
  const write = (name: string, content: string): string => {
    const path = join(out, name);
    writeSmallFile(path, content);
    return path;
  };
  const settings = [...new Set(results.arms.map(({ setting }) => setting))];
  return [
    write("results.json", `${JSON.stringify(results, undefined, 2)}\n`),
    write("results.md", comparisonMarkdown(results)),
    ...settings.flatMap((setting) => curves(results, setting).map((file) => write(...file))),
    ...settings.map((setting) => write(`${setting}.html`, settingPage(results, setting))),
  ];
}

function curves({ arms }: ComparisonResults, setting: string): readonly [string, string][] {
  const own = arms.filter((arm) => arm.setting === setting);
  const drawn = (
    file: string,
    title: string,
    pointsOf: (arm: ArmResult) => Curve["points"],
  ): [string, string][] => {
    const svg = curveSvg(
      `${title} (${setting})`,
      own.map((arm) => ({ label: arm.arm, points: pointsOf(arm) })),
    );
    return svg === undefined ? [] : [[file, svg]];
  };
  return [
    ...drawn(trainingCurveFile(setting), "Success in training", ({ training }) => training),
    ...Object.keys(own[0]!.splits).flatMap((split) =>
      drawn(
        curveFile(setting, split),
        `Success on ${split} during training`,
        ({ course }) => course[split] ?? {},
      ),
    ),
  ];
}

/** The curves and some episodes of a setting, with its arms as groups. */
function settingPage({ arms, runs }: ComparisonResults, setting: string): string {
  const groups = arms
    .filter((arm) => arm.setting === setting)
    .map(({ arm }) => {
      const members = runs.filter((run) => run.setting === setting && run.arm === arm);
      const recorded = members
        .map(({ folder }) => trainingFolder(folder))
        .filter(hasManifest)
        .map((run) => openRun(run, () => undefined));
      const [first] = recorded;
      return {
        label: arm,
        runs: recorded.map(reportRun),
        episodes: first ? sampleEpisodes(first.episodes(), trainConfigOf(first.folder).groups) : [],
      };
    });
  return reportPage(groups);
}
