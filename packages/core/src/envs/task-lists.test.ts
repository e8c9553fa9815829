import { expect, it } from "vitest";
import { numberedTasks, taskLists } from "./task-lists.js";

it("finds splits and tasks, makes each list once, and names what is missing", () => {
  let made = 0;
  const lists = taskLists("toy", {
    train: () => {
      made++;
      return numberedTasks("train", 3, "t")();
    },
    test: numberedTasks("test", 1, "t"),
  });
  expect(lists.splits).toEqual(["train", "test"]);
  expect(lists.tasks("train")).toHaveLength(3);
  expect(lists.task("train/2")).toBe(lists.tasks("train")[2]);
  expect(made).toBe(1);
  expect(() => lists.tasks("trian")).toThrow(
    'toy has no split "trian"; it has train, test. Did you mean "train"?',
  );
  expect(() => lists.tasks("toString")).toThrow("toy has no split");
  expect(() => lists.task("x")).toThrow(
    'toy has no task "x"; its tasks are named like train/0, test/0.',
  );
});
