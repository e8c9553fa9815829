import { EventEmitter } from "node:events";
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { expect, it } from "vitest";
import { createPlay, type Lambda } from "./play.js";

const noIndex = (): never => {
  throw new Error("no index is needed");
};

/** A page that trains, and the training, which ends when the test says so. */
function page() {
  const trainings: (Lambda | undefined)[] = [];
  let end = (_?: Error): void => undefined;
  const training = {
    train: (lambda: Lambda | undefined) =>
      new Promise<void>((resolve, reject) => {
        trainings.push(lambda);
        end = (error) => (error === undefined ? resolve() : reject(error));
      }),
    pause: () => end(),
  };
  const play = createPlay({ root: ".", defaultWorld: "household", training });
  const ask = (body: object): Promise<unknown> => {
    const sent = Readable.from([Buffer.from(JSON.stringify(body))]);
    const asked = Object.assign(sent, { method: "POST", socket: new EventEmitter() });
    return play.handle("train", asked as unknown as IncomingMessage, noIndex);
  };
  const until = (count: number) => expect.poll(() => trainings.length).toBe(count);
  return { play, trainings, ask, until, fail: (error: Error) => end(error) };
}

it("goes on with another λ, and answers when the training ends", async () => {
  const { play, trainings, ask, until } = page();
  const first = ask({});
  await until(1);
  const second = ask({ lambda: 0.5 });
  await until(2);
  await ask({ pause: true });
  await Promise.all([first, second]);
  const third = ask({ lambda: "adaptive" });
  await until(3);
  await ask({ pause: true });
  await third;
  expect(trainings).toEqual([undefined, 0.5, "adaptive"]);
  await expect(ask({ lambda: -1 })).rejects.toThrow(/lambda/);
  await play.close();
});

it("tells of a failed training, and can train again", async () => {
  const { play, ask, until, fail } = page();
  const failed = ask({});
  await until(1);
  fail(new Error("no memory"));
  await expect(failed).rejects.toThrow("no memory");
  const again = ask({});
  await until(2);
  await ask({ pause: true });
  await again;
  await play.close();
});
