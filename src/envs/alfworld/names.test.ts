import { expect, it } from "vitest";
import { nameObjects } from "./game.js";

it("numbers the objects of a kind downwards in the order of their ids", () => {
  const ids = [
    "cup_bar_1",
    "cup_bar_2",
    "hook_bar_9",
    "keeper",
    "sink_bar_1",
    "sink_bar_2_bar_sinkbasin",
  ];
  expect([...nameObjects(ids)]).toEqual([
    ["cup_bar_1", "cup 2"],
    ["cup_bar_2", "cup 1"],
    ["hook_bar_9", "hook 1"],
    ["keeper", "keeper "],
    ["sink_bar_1", "sink 1"],
    ["sink_bar_2_bar_sinkbasin", "sinkbasin 1"],
  ]);
});
