/** Writes the results of a comparison: numbers, tables, and one page of curves per setting. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { reportPage } from "../report/page.js";
import { sampleEpisodes } from "../report/sampled-episodes.js";
import { openRun } from "../runs/run-folder.js";
import { writeSmallFile } from "../runs/small-file.js";
import { trainConfigOf } from "../train/recorded-config.js";
import { comparisonMarkdown } from "./markdown.js";
import type { ComparisonResults } from "./results.js";
import { trainingFolder } from "./run-job.js";

/** Writes results.json, results.md and SETTING.html; returns their paths. */
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
    ...settings.map((setting) => write(`${setting}.html`, settingPage(results, setting))),
  ];
}

/** The curves and some episodes of a setting, with its arms as groups. */
function settingPage({ arms, runs }: ComparisonResults, setting: string): string {
  const groups = arms
    .filter((arm) => arm.setting === setting)
    .map(({ arm }) => {
      const members = runs.filter((run) => run.setting === setting && run.arm === arm);
      const recorded = members.map(({ folder }) =>
        openRun(trainingFolder(folder), () => undefined),
      );
      const [first] = recorded;
      return {
        label: arm,
        runs: recorded.map((run) => ({
          folder: run.folder,
          manifest: run.manifest,
          metrics: run.metrics(),
        })),
        episodes: sampleEpisodes(first!.episodes(), trainConfigOf(first!.folder).groups),
      };
    });
  return reportPage(groups);
}
