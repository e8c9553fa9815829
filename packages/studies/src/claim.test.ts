import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tinyConfig } from "@pawl/training/testing.js";
import { expect, it } from "vitest";
import { checkClaim, claim } from "./claim.js";

const evaluation = { tasks: 10, rounds: 1 };
const claimed = (settings: object): string => {
  const folder = mkdtempSync(join(tmpdir(), "pawl-claim-"));
  claim({ folder, settings: settings as never });
  return folder;
};

it("refuses other settings by name", () => {
  const folder = claimed(tinyConfig());
  expect(() => checkClaim({ folder, settings: tinyConfig(), evaluation })).not.toThrow();
  expect(() => checkClaim({ folder, settings: tinyConfig({ groups: 5 }), evaluation })).toThrow(
    /other settings .*: --train.groups was 2, now 5\. Leave them/,
  );
});

it("reads what an older version recorded, before some settings existed", () => {
  const folder = claimed(tinyConfig());
  const path = join(folder, "job.json");
  const { corrections: _, gradients: __, ...older } = JSON.parse(readFileSync(path, "utf8"));
  writeFileSync(path, JSON.stringify({ ...older, patience: 4 }));
  // What held before the setting existed, and an older name.
  const settings = tinyConfig({ invalidActionLimit: 4 });
  expect(() => checkClaim({ folder, settings, evaluation })).not.toThrow();
  const measured = tinyConfig({ gradients: { every: 10 }, invalidActionLimit: 4 });
  expect(() => checkClaim({ folder, settings: measured, evaluation })).toThrow(
    /--train\.gradients\.every was 0, now 10/,
  );
});

it("takes any engine server for another, but not for the embedded engine", () => {
  const at = (address: string) => tinyConfig({ engine: { address } });
  const folder = claimed(at("http://one:8000"));
  const check = (address: string) => () =>
    checkClaim({ folder, settings: at(address), evaluation });
  expect(check("http://two:8000")).not.toThrow();
  expect(check("embedded")).toThrow(/--train\.engine\.address was "a server", now "embedded"/);
});

it("refuses another evaluation than the finished one", () => {
  const folder = claimed(tinyConfig());
  const settings = tinyConfig();
  const write = (result: object) =>
    writeFileSync(join(folder, "result.json"), JSON.stringify(result));
  write({ splits: {}, evaluation: { tasks: 134, rounds: 2 } });
  expect(() => checkClaim({ folder, settings, evaluation })).toThrow(
    /--eval-tasks 134 --eval-rounds 2, not 10 and 1/,
  );
  // Older results do not say.
  write({ splits: {} });
  expect(() => checkClaim({ folder, settings, evaluation })).not.toThrow();
});
