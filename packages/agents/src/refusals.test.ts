import { expect, it } from "vitest";
import { createRefusals } from "./answer-constraint.js";

const no = new Error("no");

/** Whether something happens before the event loop has taken some turns. */
async function settles(promise: Promise<unknown>): Promise<boolean> {
  let isSettled = false;
  const note = (): void => {
    isSettled = true;
  };
  promise.then(note, note);
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  return isSettled;
}

it("lets the event loop have a turn before it refuses", async () => {
  const { refuse } = createRefusals();
  let turns = 0;
  setImmediate(() => {
    turns++;
  });
  await expect(refuse(no)).rejects.toBe(no);
  expect(turns).toBe(1);
});

it("refuses so many times, calls of one turn together, and then never answers", async () => {
  const { refuse, exhausted } = createRefusals(2);
  const many = await Promise.allSettled(Array.from({ length: 50 }, () => refuse(no)));
  expect(many.every(({ status }) => status === "rejected")).toBe(true);
  await expect(refuse(no)).rejects.toBe(no);
  expect(await settles(exhausted)).toBe(false);
  expect(await settles(refuse(no))).toBe(false);
  await expect(exhausted).rejects.toThrow("went on asking after it was refused 2 times: no");
});

it("refuses for ever without a limit", async () => {
  const { refuse, exhausted } = createRefusals();
  for (let call = 0; call < 300; call++) await expect(refuse(no)).rejects.toBe(no);
  expect(await settles(exhausted)).toBe(false);
});
