import { expect, it } from "vitest";
import { checkPace, paceOptions } from "./pace.js";

const check = (given: object) => () => checkPace(paceOptions.parse(given));

it("refuses settings of the pace that would have no effect", () => {
  expect(check({})).not.toThrow();
  expect(check({ pace: "own", rows: 8 })).not.toThrow();
  expect(check({ pace: "own", stragglerSeconds: 5 })).not.toThrow();
  expect(check({ pace: "own", stragglerSeconds: 5, stragglers: "carry" })).not.toThrow();
  expect(check({ rows: 8 })).toThrow(/^rollout\.rows: .* set rollout\.pace to own/);
  expect(check({ stragglerSeconds: 5 })).toThrow(/^rollout\.stragglerSeconds: /);
  expect(check({ pace: "own", stragglers: "carry" })).toThrow(/without rollout\.stragglerSeconds/);
});
