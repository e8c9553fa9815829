import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { expect, it } from "vitest";
import { createBudget, pathOf, readBody } from "./http-server.js";

const path = (url: string): string => pathOf({ url } as IncomingMessage);

it("knows the path of a request", () => {
  const urls = [
    "/",
    "//",
    "///",
    "/a",
    "/a/",
    "/a//",
    "//a//",
    "/a/?b=/",
    "/?",
    "?",
    "",
    "*",
    "/a/b",
  ];
  expect(urls.map(path)).toEqual([
    "/",
    "/",
    "/",
    "/a",
    "/a",
    "/a",
    "//a",
    "/a",
    "/",
    "",
    "",
    "*",
    "/a/b",
  ]);
});

it("reads a path once, however many slashes it has", () => {
  // Reading it again from every slash would take days.
  const slashes = "/".repeat(2 ** 24);
  expect(path(`${slashes}x`)).toHaveLength(2 ** 24 + 1);
  expect(path(`x${slashes}`)).toBe("x");
});

it("takes a body that ends early for the client's fault", async () => {
  const asked = new Readable({ read() {} });
  asked.push("half");
  const body = readBody(asked as IncomingMessage, 100);
  asked.destroy(new Error("aborted"));
  await expect(body).rejects.toMatchObject({ status: 400, message: "the request ended early" });
});

it("lends memory until it is given back, and to one alone whatever it needs", () => {
  const closes: (() => void)[] = [];
  const reply = () =>
    ({ once: (_: string, close: () => void) => closes.push(close) }) as unknown as ServerResponse;
  const budget = createBudget(10);
  const [first, second] = [budget.lease(reply()), budget.lease(reply())];
  first(12);
  expect(() => second(1)).toThrow(/busy/);
  expect(budget.hold(1)).toBeUndefined();
  closes[0]!();
  const giveBack = budget.hold(9)!;
  second(1);
  expect(() => second(1)).toThrow(/busy/);
  giveBack();
  second(1);
});
