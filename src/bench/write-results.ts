/** Writes the results of a comparison: numbers, tables, curves, and one page per setting. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { reportPage } from "../report/page.js";
import { reportRun } from "../report/run-groups.js";
import { sampleEpisodes } from "../report/sampled-episodes.js";
import { hasManifest } from "../runs/manifest.js";
import { openRun } from "../runs/run-folder.js";
import { writeSmallFile } from "../runs/small-file.js";
import { trainConfigOf } from "../train/recorded-config.js";
import { curveSvg } from "./curve-svg.js";
import { comparisonMarkdown, curveFile } from "./markdown.js";
import { trainingFolder } from "./result-file.js";
import type { ComparisonResults } from "./results.js";

/** Writes results.json, results.md, SETTING-SPLIT.svg and SETTING.html; returns their paths. */
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
  return Object.keys(own[0]!.splits).flatMap((split): [string, string][] => {
    const lines = own.map(({ arm, course }) => ({ label: arm, points: course[split] ?? {} }));
    const svg = curveSvg(`Success on ${split} during training (${setting})`, lines);
    return svg === undefined ? [] : [[curveFile(setting, split), svg]];
  });
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
