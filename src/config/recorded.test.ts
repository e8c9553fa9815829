import { expect, it } from "vitest";
import { z } from "zod";
import { parseRecorded } from "./recorded.js";

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

it("fills what came later with what held before, and leaves alone what was recorded", () => {
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
