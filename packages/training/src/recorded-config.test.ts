/** Runs recorded before settings were renamed: read with their meaning, and a notice. */
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRun } from "@pawl/core/runs/run-folder.js";
import { expect, it } from "vitest";
import { actingConfigOf, olderNamesNotice, trainConfigOf } from "./recorded-config.js";
import { tinyConfig } from "./testing.js";

const config = tinyConfig({
  invalidActionLimit: 3,
  objective: { aggregation: "group-mean" },
  paw: { lambda: 0.05, aggregation: "token-mean" },
  warmStart: { sft: { randomActions: true } },
});

function recorded(): string {
  const folder = join(mkdtempSync(join(tmpdir(), "pawl-recorded-")), "run");
  createRun({ folder, kind: "train", seed: 0, config }, () => undefined).finish("done");
  return folder;
}

it("a run with current names is read without a notice", () => {
  const folder = recorded();
  expect(trainConfigOf(folder)).toEqual(config);
  expect(olderNamesNotice(folder)).toBeUndefined();
});

it.each([
  ["compact", true],
  ["chat", false],
  ["full", false],
])(
  "a run in %s from before ends were learnt and texts encoded whole is read as it was",
  (style, end) => {
    const folder = recorded();
    const path = join(folder, "manifest.json");
    const manifest = JSON.parse(readFileSync(path, "utf8"));
    manifest.config.prompt = { style, history: "all" };
    writeFileSync(path, JSON.stringify({ ...manifest, checksum: undefined }));
    expect(trainConfigOf(folder).prompt).toMatchObject({ observationEnd: end, tokens: "pieces" });
  },
);

it("a run with older names and values is read as the same settings, with a notice", () => {
  const folder = recorded();
  const path = join(folder, "manifest.json");
  const manifest = JSON.parse(readFileSync(path, "utf8"));
  const { invalidActionLimit, ...rest } = manifest.config;
  const { address, ...engine } = rest.engine;
  const { aggregation: _, ...objective } = rest.objective;
  const { lambda, aggregation: __, ...paw } = rest.paw;
  const { randomActions, ...sft } = rest.warmStart.sft;
  manifest.config = {
    ...rest,
    patience: invalidActionLimit,
    engine: { ...engine, name: address },
    objective: { ...objective, normaliser: "paper" },
    paw: { ...paw, balance: lambda, normaliser: "tokens" },
    warmStart: { ...rest.warmStart, sft: { ...sft, strays: randomActions } },
  };
  delete manifest.checksum;
  writeFileSync(path, JSON.stringify(manifest));
  expect(trainConfigOf(folder)).toEqual(config);
  expect(olderNamesNotice(folder)).toBe(
    `${folder} was recorded with settings that have been renamed since: engine.name → engine.address, objective.normaliser → objective.aggregation, patience → invalidActionLimit, paw.balance → paw.lambda, paw.normaliser → paw.aggregation, warmStart.sft.strays → warmStart.sft.randomActions`,
  );
});

it("a run that showed some task types more often is refused by name, others are read", () => {
  const withEmphasis = (types: readonly string[]) => {
    const folder = recorded();
    const path = join(folder, "manifest.json");
    const manifest = JSON.parse(readFileSync(path, "utf8"));
    manifest.config.warmStart.emphasis = { types, share: 0.5 };
    writeFileSync(path, JSON.stringify({ ...manifest, checksum: undefined }));
    return folder;
  };
  expect(trainConfigOf(withEmphasis([]))).toEqual(config);
  expect(() => trainConfigOf(withEmphasis(["look"]))).toThrow(/warmStart\.emphasis .*removed/);
});

const withPaw = (more: object): string => {
  const folder = recorded();
  const path = join(folder, "manifest.json");
  const manifest = JSON.parse(readFileSync(path, "utf8"));
  manifest.config.paw = { ...manifest.config.paw, ...more };
  writeFileSync(path, JSON.stringify({ ...manifest, checksum: undefined }));
  return folder;
};

it.each([
  ["skipWithoutSignal", "off", "updates", "74aad12"],
  ["dedupe", false, true, "74aad12"],
  ["horizon", 1, 2, "74aad12"],
  ["gradientCap", undefined, 0.5, "74aad12"],
  ["gradientLength", undefined, "cmae", "74aad12"],
  ["counterfactual", 0, 4, "fd8def35"],
] as const)("a run with the removed paw.%s is read if that was off", (name, off, on, last) => {
  expect(trainConfigOf(withPaw({ [name]: off }))).toEqual(config);
  const none = withPaw({ [name]: on, loss: "off" });
  expect(trainConfigOf(none).paw).toEqual({ ...config.paw, loss: "off" });
  const set = withPaw({ [name]: on });
  expect(() => trainConfigOf(set)).toThrow(
    `paw.${name} ${JSON.stringify(on)} (removed; commit ${last} is the last that has it). Read it with that version.`,
  );
  // Its model can act all the same.
  expect(config).toMatchObject(actingConfigOf(set)!);
});

it("a warm start from before shared one mean where it learnt observations", () => {
  const meanOf = (observationWeight: number): string => {
    const folder = recorded();
    const path = join(folder, "manifest.json");
    const manifest = JSON.parse(readFileSync(path, "utf8"));
    const { mean: _, actionWeight: __, ...sft } = manifest.config.warmStart.sft;
    manifest.config.warmStart.sft = { ...sft, observationWeight };
    delete manifest.checksum;
    writeFileSync(path, JSON.stringify(manifest));
    return trainConfigOf(folder).warmStart.sft.mean;
  };
  expect([0, 0.3].map(meanOf)).toEqual(["each", "together"]);
});

it("the training that the site shows is read", () => {
  expect(trainConfigOf("docs/browser/runs/trial").paw).toMatchObject({ loss: "cmae", every: 1 });
});
