import type { Engine } from "@pawl/core/engine/engine.js";
import { pawOptions } from "@pawl/core/objectives/paw-options.js";
import type { Tokenizer } from "@pawl/core/text/tokenizer.js";
import { describe, expect, it } from "vitest";
import { curveSections } from "./curve-list.js";
import { reportPage, reportView } from "./page.js";
import { predictObservations } from "./predictions.js";
import { groupRuns } from "./run-groups.js";
import { sampleEpisodes } from "./sampled-episodes.js";
import { BUNDLE, readBundle } from "./static-page.js";
import { EVIL, episode, reportRun, risingMetrics } from "./testing.js";
import { spreadOf } from "./thin.js";

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

  it("have their metrics as columns, and a spread", () => {
    const { groups } = reportView(groupRuns(runs).map((group) => ({ ...group, episodes: [] })));
    expect(groups[1]!.tables[0]).toEqual({
      update: [-1, 0, 1, 2, 3],
      columns: {
        "train.success": [null, 0.05, 0.1, 0.15, 0.2],
        "world.lambda": [null, 0.95, 0.9, 0.85, 0.8],
        "seconds.rollout": [null, 2, 2, 2, 2],
        "seconds.learn": [null, 3, 3, 3, 3],
        "eval.valid_seen.success": [0, null, 0.1, null, 0.2],
      },
    });
    expect(groups.map((group) => group.runs.map(({ updates, seed }) => [updates, seed]))).toEqual([
      [
        [4, 1],
        [2, 2],
      ],
      [[4, 1]],
    ]);
    expect(spreadOf([0.2, 0.4]).deviation).toBeCloseTo(Math.SQRT2 * 0.1, 12);
    expect(spreadOf([2]).deviation).toBeNaN();
  });
});

it("puts curves under headings; unknown metrics come last, success and parts of tables not at all", () => {
  const names = [
    "zebra",
    "seconds.learn",
    "train.success.pick",
    "train.success",
    "eval.b.success",
    "eval.b.score",
  ];
  expect(
    curveSections(names).map(({ heading, curves }) => [heading, curves.map((c) => c.metric)]),
  ).toEqual([
    ["Evaluation", ["eval.b.score"]],
    ["Phases", ["seconds.learn"]],
    ["Other metrics", ["zebra"]],
  ]);
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
    predictObservations(engine, tokenizer, sampled, weights, pawOptions().parse({ loss }));
  const [step] = await predict("cmae");
  expect(loaded).toEqual(["a", "b"]);
  expect(step!.rows.map((row) => row.weights)).toEqual(["before", "after"]);
  const tokens = step!.rows[0]!.tokens;
  expect(tokens.map(({ text, kept }) => [text, kept])).toEqual([
    ["t3\n", true],
    ["t4\n", false],
  ]);
  expect(tokens[0]!.p).toBeCloseTo(0.1, 6);
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
      predictions: { steps, paw: pawOptions().parse({}) },
    },
  ]);
  expect(page).not.toContain("<img src=x");
  expect(page.match(/<script/g)!.length).toBe(2 + inBundle(/<script/g));
  const [, data] = /id="data">(.*?)<\/script>/s.exec(page)!;
  const view = JSON.parse(data!) as ReturnType<typeof reportView>;
  expect(view.groups[0]!.episodes[0]!.goal).toBe(EVIL);
  expect(view.groups[0]!.predictions!.steps[0]!.rows[0]!.tokens[0]!.text).toBe(EVIL);
  expect(page.slice(0, page.indexOf("<style>"))).toMatch(
    /content="default-src 'none'; script-src 'sha256-[^']+'; style-src 'sha256-[^']+'; img-src data:;/,
  );
  expect(page).not.toMatch(/\b(src|href)="(?!data:,|\$)/);
  expect(data).not.toContain("NaN");
});

const inBundle = (pattern: RegExp): number => readBundle(BUNDLE.script).match(pattern)?.length ?? 0;
