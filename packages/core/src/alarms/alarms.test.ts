import { describe, expect, it } from "vitest";
import type { MetricsLine } from "../runs/metrics-file.js";
import { alarmOptions } from "./alarm.js";
import { alarmNames, checkStopOn, rememberedOf, saysNotFinite, watchLine } from "./alarms.js";

const defaults = alarmOptions.parse({});

/** The alarms raised at each line, as `update:name`, and the recorded lines. */
function watched(lines: readonly MetricsLine[], changes: object = {}) {
  const options = alarmOptions.parse(changes);
  const recorded: MetricsLine[] = [];
  const raised = lines.flatMap((line) => {
    // As in a run: of earlier lines, only what the alarms say they read is there.
    const seen = watchLine(recorded.map(rememberedOf), line, options);
    recorded.push(seen.line);
    return seen.raised.map(({ update, alarm }) => `${update}:${alarm}`);
  });
  return { raised, recorded };
}

/** Lines with these values of a metric, one per update, beside constant others. */
const series = (name: string, values: readonly number[], others: MetricsLine = {}): MetricsLine[] =>
  values.map((value, update) => ({ update, ...others, [name]: value }));
const repeat = (value: number, times: number): number[] =>
  Array.from({ length: times }, () => value);

describe("entropy collapse", () => {
  const fall = [...repeat(1, 5), ...repeat(0.04, 8)];
  it("is raised once when a whole window is below the fraction of the highest", () => {
    expect(watched(series("policy.actionEntropy", fall, { "train.success": 0.4 })).raised).toEqual([
      "9:entropy",
    ]);
  });
  it("is not raised while most episodes succeed, for a slow fall, or when it is off", () => {
    const lines = series("policy.actionEntropy", fall, { "train.success": 0.95 });
    expect(watched(lines).raised).toEqual([]);
    const mild = [...repeat(1, 5), ...repeat(0.06, 8)];
    const failing = { "train.success": 0.4 };
    expect(watched(series("policy.actionEntropy", mild, failing)).raised).toEqual([]);
    expect(watched(series("policy.actionEntropy", fall, failing), { entropy: 0 }).raised).toEqual(
      [],
    );
  });
});

describe("KL jump", () => {
  it("compares with the median of the window before", () => {
    const lines = series("policy.kl", [0.01, 0.02, 0.01, 0.5, 0.01, 0.02, 0.3, 0.01]);
    // The first jump comes before there is a whole window.
    expect(watched(lines).raised).toEqual(["6:kl"]);
    expect(watched(lines, { kl: 40 }).raised).toEqual([]);
  });
  it("is not raised by growth from nothing", () => {
    expect(watched(series("policy.kl", [0, 0, 0, 1e-4, 1e-3, 0.01, 0.04])).raised).toEqual([]);
  });
});

describe("mismatch growth", () => {
  it("is raised for a sampler that does not get new weights, as vLLM showed", () => {
    expect(watched(series("mismatch.mean", [4.9e-7, 8.7e-4, 2e-3, 4.2e-3])).raised).toEqual([
      "1:mismatch",
    ]);
  });
  it("is not raised by rounding, in 32 or in 16 bits", () => {
    expect(watched(series("mismatch.mean", [1e-7, 9e-5, 1e-6])).raised).toEqual([]);
    expect(watched(series("mismatch.mean", [3e-3, 1e-2, 2e-2])).raised).toEqual([]);
  });
});

describe("equal groups", () => {
  it("is raised after three updates in a row, and again after a break", () => {
    const lines = series("train.equalGroups", [1, 1, 0.9, 1, 1, 1, 1, 0.5, 1, 1, 1], {
      "train.return": 0,
    });
    expect(watched(lines).raised).toEqual(["5:groups", "10:groups"]);
    expect(watched(lines).recorded.map((line) => line["alarm.groups"] ?? 0)).toEqual([
      0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1,
    ]);
    expect(
      watched(series("rwml.skipped", [1, 1], { "rwml.reward": 1 }), { groups: 2 }).raised,
    ).toEqual(["1:groups"]);
  });
});

describe("rewards that stop", () => {
  it("is raised when a whole window is far below the best", () => {
    const values = [...repeat(5, 6), ...repeat(0.1, 6)];
    expect(watched(series("train.return", values)).raised).toEqual(["10:reward"]);
    expect(watched(series("train.return", [...repeat(5, 6), ...repeat(0.6, 6)])).raised).toEqual(
      [],
    );
    // Broken episodes have no return.
    const broken = [
      ...series("train.return", repeat(5, 6)),
      ...repeat(0, 5).map((_, i) => ({ update: 6 + i })),
    ];
    expect(watched(broken).raised).toEqual(["10:reward"]);
  });
  it("is not raised where there never were any, or only by chance", () => {
    const rare = Array.from({ length: 30 }, (_, i) => (i % 9 === 0 ? 0.1 : 0));
    expect(watched(series("train.return", rare)).raised).toEqual([]);
    expect(watched(series("train.return", repeat(0, 20))).raised).toEqual([]);
  });
});

it("a stall is only watched for if that is asked for", () => {
  const values = [1, 2, 3, 3, 3, 3, 3];
  expect(watched(series("train.return", values)).raised).toEqual([]);
  expect(watched(series("train.return", values), { stall: 3, window: 1 }).raised).toEqual([
    "5:stall",
  ]);
  expect(
    watched(series("train.return", [1, 2, 3, 4, 5, 6]), { stall: 3, window: 1 }).raised,
  ).toEqual([]);
});

it("NaN is recognised among metrics, and in what engines say", () => {
  expect(watched([{ update: 0, "notFinite.policy.kl": 1 }]).raised).toEqual(["0:nan"]);
  for (const said of [
    "the gradient of x is not finite (NaN or infinity): the optimiser step was refused",
    "the loss of token 3 of sequence 1 is NaN; its gradient was not added",
    "the loss at token 3 of sequence 1 is nan; expected a finite number",
    "the loss is -Infinity at token 3",
  ])
    expect(saysNotFinite(said), said).toBe(true);
  expect(saysNotFinite("the engine server does not answer: this information is missing")).toBe(
    false,
  );
});

describe("settings", () => {
  it("that make no sense are refused", () => {
    for (const bad of [
      { kl: 1 },
      { kl: 0.5 },
      { entropy: 1 },
      { reward: -0.1 },
      { window: 0 },
      { groups: 1.5 },
      { odd: 1 },
    ])
      expect(alarmOptions.safeParse(bad).success, JSON.stringify(bad)).toBe(false);
  });
  it("that wait for an alarm which cannot come are refused", () => {
    expect(() => checkStopOn({ stopOn: ["stall"], alarms: defaults }, {})).toThrow(
      "--stop-on stall: this alarm cannot be raised: alarms.stall is 0",
    );
    expect(() =>
      checkStopOn({ stopOn: ["kl"], alarms: defaults }, { kl: "it needs objective.kl above 0" }),
    ).toThrow("it needs objective.kl above 0");
    checkStopOn({ stopOn: alarmNames.filter((name) => name !== "stall"), alarms: defaults }, {});
  });
});
