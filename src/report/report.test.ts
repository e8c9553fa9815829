import { describe, expect, it } from "vitest";
import type { Engine } from "../engine/engine.js";
import { pawOptions } from "../objectives/paw-options.js";
import type { Tokenizer } from "../text/tokenizer.js";
import { chart } from "./chart.js";
import { evaluationTable } from "./comparison.js";
import { reportPage } from "./page.js";
import { predictionList, predictObservations } from "./predictions.js";
import { groupRuns } from "./run-groups.js";
import { sampleEpisodes } from "./sampled-episodes.js";
import { seriesOf, spreadOf } from "./series.js";
import { EVIL, episode, reportRun, risingMetrics } from "./testing.js";

describe("groups of runs", () => {
  const runs = [
    reportRun(1, "cmae", risingMetrics(4, 0.1)),
    reportRun(1, "off", risingMetrics(4, 0.05)),
    reportRun(2, "cmae", risingMetrics(2, 0.2), { engine: { threads: 3 } }),
  ];

  it("contain the runs that differ only by seed, named by what differs", () => {
    const groups = groupRuns(runs);
    expect(groups.map(({ label }) => label)).toEqual(["paw.loss cmae", "paw.loss off"]);
    expect(groups.map((group) => group.runs.map(({ manifest }) => manifest.seed))).toEqual([
      [1, 2],
      [1],
    ]);
  });

  it("are named by estimator and loss if alone, by folder if too much differs", () => {
    expect(groupRuns(runs.slice(0, 1))[0]!.label).toBe("grpo + cmae");
    expect(groupRuns(runs.slice(1, 2))[0]!.label).toBe("grpo");
    const other = reportRun(1, "mae", [], {
      env: { name: "x", a: 1, b: 2 },
      groups: 3,
      updates: 4,
    });
    expect(groupRuns([runs[0]!, other]).map(({ label }) => label)).toEqual([
      "runs/cmae-1",
      "runs/mae-1",
    ]);
  });

  it("have series of means and spreads, over the runs that got that far", () => {
    const [both] = seriesOf(groupRuns(runs), "train.success");
    expect(both!.points.map(({ x, count }) => [x, count])).toEqual([
      [1, 2],
      [2, 2],
      [3, 1],
      [4, 1],
    ]);
    expect(both!.points[1]!.mean).toBeCloseTo(0.3, 12);
    expect(both!.points[1]!.deviation).toBeCloseTo(Math.SQRT2 * 0.1, 12);
    expect(spreadOf([2]).deviation).toBeNaN();
  });

  it("are compared at their first and last evaluation", () => {
    const { markup } = evaluationTable(groupRuns(runs));
    expect(markup).toContain("40.0 ± 0.0 %");
    expect(markup).toContain("20 %");
    expect(evaluationTable(groupRuns([reportRun(1, "off", [])])).markup).toContain(
      "No evaluation was recorded",
    );
  });
});

describe("a chart", () => {
  const series = seriesOf(
    groupRuns([
      reportRun(1, "cmae", risingMetrics(4, 0.1)),
      reportRun(2, "cmae", risingMetrics(4, 0.2)),
    ]),
    "train.success",
  );

  it("has a line, a band and the numbers of a read-out", () => {
    const { markup } = chart({ title: "Success", note: "share", series, percent: true })!;
    expect(markup).toMatch(/class="line" d="M60 171\.8L208\.7 143\.6L/);
    expect(markup).toMatch(/class="band" d="M[^"]+Z"/);
    const data = JSON.parse(/data-chart="([^"]+)"/.exec(markup)![1]!.replaceAll("&quot;", '"')) as {
      x: number[];
      series: { values: string[] }[];
    };
    expect(data.x).toEqual([1, 2, 3, 4]);
    expect(data.series[0]!.values[3]).toBe("60 % ± 28.3 % (n 2)");
    expect(markup).toContain('aria-label="Success. grpo + cmae: 15 % at 1, 60 % at 4"');
  });

  it("is omitted if nothing was recorded, and shows a single point as a dot", () => {
    expect(chart({ title: "x", note: "", series: [{ label: "a", points: [] }] })).toBeUndefined();
    const points = [{ x: 1, mean: 5, deviation: Number.NaN, count: 1 }];
    const { markup } = chart({ title: "x", note: "", series: [{ label: "a", points }] })!;
    expect(markup).toContain("<circle");
    expect(markup).not.toContain("NaN");
  });
});

it("samples the first and last solved and failed episodes, and no broken ones", () => {
  const solved = { success: true } as const;
  const episodes = [
    episode(0, 0, { stop: "broken" }),
    episode(0, 1),
    episode(1, 0, solved),
    episode(2, 0),
    episode(3, 0, solved),
    episode(3, 1),
    episode(4, 0, { stop: "broken" }),
  ];
  const sampled = sampleEpisodes(episodes, 2);
  expect(sampled.map((s) => [s.update, s.episode.group, s.episode.attempt])).toEqual([
    [0, 0, 1],
    [0, 1, 0],
    [1, 3, 0],
    [1, 3, 1],
  ]);
  expect(sampleEpisodes([episode(0, 0)], 2)).toHaveLength(1);
});

it("asks for the probability of each observation token and marks what the mask keeps", async () => {
  const sequence = {
    ids: [1, 2, 3, 4],
    spans: [
      { kind: "prompt", start: 0, end: 1, origin: "task" },
      { kind: "action", start: 1, end: 2, origin: "policy" },
      { kind: "observation", start: 2, end: 4, origin: "env" },
    ],
  } as const;
  const loaded: string[] = [];
  const engine = {
    load: async (folder: string) => void loaded.push(folder),
    forward: async (sequences: readonly { targets: ArrayLike<number> }[]) =>
      sequences.map(({ targets }) => {
        expect(Array.from(targets)).toEqual([0, 0, 1, 1]);
        return { logprobs: Float32Array.of(0, 0, Math.log(0.1), Math.log(0.9)) };
      }),
  } as unknown as Engine;
  const tokenizer = { decode: ([id]: number[]) => `t${id}\n` } as unknown as Tokenizer;
  const sampled = [{ update: 4, episode: episode(9, 0, { step: { sequence } }) }];
  const weights = [
    { name: "before", folder: "a" },
    { name: "after", folder: "b" },
  ];
  const predict = (loss: string) =>
    predictObservations(engine, tokenizer, sampled, weights, pawOptions.parse({ loss }));
  const [step] = await predict("cmae");
  expect(loaded).toEqual(["a", "b"]);
  expect(step!.rows.map((row) => row.weights)).toEqual(["before", "after"]);
  const tokens = step!.rows[0]!.tokens;
  expect(tokens.map(({ text, kept }) => [text, kept])).toEqual([
    ["t3\n", true],
    ["t4\n", false],
  ]);
  expect(tokens[0]!.p).toBeCloseTo(0.1, 6);
  const { markup } = predictionList([step!]);
  expect(markup).toContain('<span class="token kept" style="--q:0.90" title="p 0.10">t3⏎</span>');
  expect(markup).toContain("mean p 50 %");
  expect((await predict("off"))[0]!.rows[0]!.tokens[0]).not.toHaveProperty("kept");
});

it("makes a self-contained page in which foreign text stays text", () => {
  const run = reportRun(1, EVIL, risingMetrics(3, 0.2));
  const bad = episode(0, 0, {
    goal: EVIL,
    firstObservation: EVIL,
    step: { action: EVIL, response: `${EVIL}!`, observation: EVIL },
  });
  const [group] = groupRuns([{ ...run, folder: EVIL }, reportRun(1, "off", [])]);
  const steps = [
    {
      goal: EVIL,
      action: EVIL,
      update: 0,
      rows: [{ weights: "latest", tokens: [{ text: EVIL, p: 0.5, kept: true }] }],
    },
  ];
  const page = reportPage([
    {
      ...group!,
      episodes: [{ update: 0, episode: bad }],
      predictions: { steps, paw: pawOptions.parse({}) },
    },
  ]);
  expect(page).not.toContain("<img");
  expect(page.match(/<script/g)).toHaveLength(1);
  expect(page).not.toMatch(/\b(src|href)="(?!data:,)/);
  expect(page).not.toContain("https:");
  expect(page).not.toContain("undefined");
  expect(page).not.toContain("NaN");
});
