import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { EnvError } from "../env.js";
import { RECORDINGS } from "./fixtures/installed.js";
import { AGENTGYM_SIZE, agentgymVariation, readTaskIds, taskKinds, variationsOf } from "./tasks.js";

const listed = join(RECORDINGS, "tasks.json");
const published = join(RECORDINGS, "agentgym-ids.json");

describe("tasks", () => {
  it("are 7,207 variations of 30 kinds, 4,639 of them numbered by AgentGym", () => {
    expect(taskKinds).toHaveLength(30);
    expect(taskKinds.reduce((sum, { variations }) => sum + variations, 0)).toBe(7207);
    expect(AGENTGYM_SIZE).toBe(4639);
    expect(agentgymVariation(0)).toMatchObject({ kind: { name: "boil" }, variation: 0 });
    expect(agentgymVariation(4638)).toMatchObject({ kind: { number: "8-2" }, variation: 9 });
    expect(() => agentgymVariation(4639)).toThrow(EnvError);
  });

  it.skipIf(!existsSync(listed))("agree with the original's list", () => {
    const original = JSON.parse(readFileSync(listed, "utf8")) as readonly {
      id: string;
      name: string;
      variations: number;
      split: Record<string, readonly number[]>;
      agentgym_start: number | null;
    }[];
    expect(taskKinds.map(({ number, name, variations }) => [number, name, variations])).toEqual(
      original.map(({ id, name, variations }) => [id, name, variations]),
    );
    for (const [at, kind] of taskKinds.entries()) {
      const { split, agentgym_start: start } = original[at]!;
      const splits = { train: 0, dev: 0, test: 0 };
      for (const name of Object.keys(splits) as (keyof typeof splits)[])
        expect(variationsOf(kind, name)).toEqual(split[name]);
      if (start !== null) expect(agentgymVariation(start)).toEqual({ kind, variation: 0 });
    }
  });
});

describe("a file of AgentGym's numbers", () => {
  it.skipIf(!existsSync(published))("has 61 test tasks that are also trained on", () => {
    const { train, test, testClean } = readTaskIds(published);
    expect([train.length, test.length, testClean.length]).toEqual([2120, 200, 139]);
    expect(testClean.some((id) => train.includes(id))).toBe(false);
  });

  it.each([
    ["{", "cannot be read"],
    ["[]", "expected"],
    ['{"train": [1]}', "test"],
    ['{"train": [1], "test": [4639]}', "test.0"],
    ['{"train": [-1], "test": [1]}', "train.0"],
    ['{"train": [0.5], "test": [1]}', "train.0"],
  ])("%s is refused", (text, reason) => {
    const folder = mkdtempSync(join(tmpdir(), "pawl-ids-"));
    const path = join(folder, "ids.json");
    writeFileSync(path, text);
    expect(() => readTaskIds(path)).toThrow(reason);
    rmSync(folder, { recursive: true });
  });

  it("must exist", () => {
    expect(() => readTaskIds("/nowhere/ids.json")).toThrow(/option ids: .*cannot be read/);
  });
});
