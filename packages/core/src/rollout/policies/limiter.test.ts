import { expect, it } from "vitest";
import { limiter } from "./limiter.js";

/** Work that ends on request. */
function manual() {
  let end: () => void = () => undefined;
  const done = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { done, end };
}

it("runs this many at a time and the others in order", async () => {
  const limit = limiter(2);
  const log: string[] = [];
  const works = ["a", "b", "c", "d"].map((name) => ({ name, ...manual() }));
  const results = works.map(({ name, done }) =>
    limit(async () => {
      log.push(`+${name}`);
      await done;
      log.push(`-${name}`);
      return name;
    }),
  );
  await Promise.resolve();
  expect(log).toEqual(["+a", "+b"]);
  works[1]?.end();
  await results[1];
  works[0]?.end();
  await results[0];
  works[2]?.end();
  works[3]?.end();
  expect(await Promise.all(results)).toEqual(["a", "b", "c", "d"]);
  expect(log.indexOf("+c")).toBeGreaterThan(log.indexOf("-b"));
  expect(log.indexOf("+d")).toBeGreaterThan(log.indexOf("-a"));
});

it("frees a slot after a failure and removes aborted work from the queue", async () => {
  const limit = limiter(1);
  const first = manual();
  const running = limit(() => first.done);
  const controller = new AbortController();
  const waiting = limit(async () => "never", controller.signal);
  const failing = limit(async () => {
    throw new Error("broken");
  });
  controller.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  await expect(limit(async () => 1, controller.signal)).rejects.toThrow("enough");
  first.end();
  await running;
  await expect(failing).rejects.toThrow("broken");
  expect(await limit(async () => "room")).toBe("room");
});
