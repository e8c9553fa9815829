import { expect, it } from "vitest";
import { z } from "zod";
import { olderNames, parseRecorded } from "./recorded.js";

const schema = z.strictObject({
  updates: z.int().default(10),
  loss: z
    .strictObject({ clip: z.number().default(20), kind: z.string().default("new") })
    .optional(),
});
const history = [
  { path: "loss.clip", before: 10 },
  { path: "oldName", gone: true },
] as const;

it("fills in settings that are newer than the record with what held before, and keeps recorded ones", () => {
  const read = (recorded: object) => parseRecorded(schema, { ...recorded }, history);
  expect(read({ updates: 3, loss: { kind: "old" } })).toEqual({
    config: { updates: 3, loss: { kind: "old", clip: 10 } },
  });
  expect(read({ loss: { clip: 7 } })).toMatchObject({ config: { loss: { clip: 7 } } });
  expect(read({})).toEqual({ config: { updates: 10 } });
  expect(read({ oldName: 1 })).toEqual({ config: { updates: 10 } });
  expect(read({ other: 1, updates: "x" })).toEqual({
    reasons: expect.arrayContaining(["other is unknown", expect.stringMatching(/^updates: /)]),
  });
});

it("refuses a removed setting only where it had an effect", () => {
  const removed = [
    { path: "far", gone: (value: unknown) => value === undefined || value === 1, last: "abc1234" },
    { path: "loss.cap", gone: (value: unknown) => value === undefined },
  ] as const;
  const read = (recorded: object) => parseRecorded(schema, { ...recorded }, removed);
  expect(read({ far: 1, updates: 3, loss: { kind: "old", clip: 1 } })).toEqual({
    config: { updates: 3, loss: { kind: "old", clip: 1 } },
  });
  expect(read({ far: 2, loss: { cap: 0.5 } })).toEqual({
    reasons: ["far 2 (removed; commit abc1234 is the last that has it)", "loss.cap 0.5 (removed)"],
  });
});

const renamed = [
  { path: "loss.cut", renamed: "loss.clip" },
  { path: "loss.type", renamed: "loss.kind", values: { paper: "new-paper" } },
  { path: "rounds", renamed: "updates" },
] as const;

it("reads settings by their old names and values, and lists them", () => {
  const recorded = { rounds: 5, loss: { cut: 3, type: "paper" } };
  expect(parseRecorded(schema, recorded, renamed)).toEqual({
    config: { updates: 5, loss: { clip: 3, kind: "new-paper" } },
  });
  expect(olderNames(recorded, renamed)).toEqual([
    "loss.cut → loss.clip",
    "loss.type → loss.kind",
    "rounds → updates",
  ]);
});

it("leaves today's names alone, and lets an old name that was set on top win", () => {
  expect(parseRecorded(schema, { updates: 5 }, renamed)).toEqual({ config: { updates: 5 } });
  expect(olderNames({ updates: 5 }, renamed)).toEqual([]);
  expect(parseRecorded(schema, { updates: 5, rounds: 7 }, renamed)).toEqual({
    config: { updates: 7 },
  });
});
