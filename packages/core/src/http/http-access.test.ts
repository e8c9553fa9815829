import type { IncomingMessage } from "node:http";
import { describe, expect, it } from "vitest";
import { type AccessRule, createAccess, isLoopback } from "./http-access.js";
import type { HttpError } from "./http-server.js";

/** The status of a refusal; 200 if there is none. */
function ask(
  rule: AccessRule,
  headers: Readonly<Record<string, string>>,
  { keyless = false, at = "127.0.0.1" } = {},
): number {
  const asked = { headers, socket: { localAddress: at } } as unknown as IncomingMessage;
  try {
    createAccess(rule)(asked, keyless);
    return 200;
  } catch (error) {
    return (error as HttpError).status;
  }
}

// The same cases as in servers/torch/pawl_server/test_hostile.py.
describe("without a key", () => {
  it.each([
    "localhost",
    "localhost:8000",
    "127.0.0.1:80",
    "127.1.2.3",
    "[::1]:8000",
    "LOCALHOST:1",
  ])("answers programs that ask for %s, and no pages", (host) => {
    for (const origin of [undefined, `http://${host}`, `https://${host}`])
      expect(ask({}, { host, ...(origin !== undefined && { origin }) })).toBe(200);
    for (const origin of [
      ...["null", "", "https://evil.example", "http://localhost:3000"],
      ...[`http://evil.${host}`, `http://${host}.evil.example`],
    ])
      expect(ask({}, { host, origin }, { keyless: true })).toBe(403);
  });

  it.each([
    ...["", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8000"],
    ...["evil.example:127.0.0.1", "192.168.0.1:8000", "localhost@evil.example", "localhost:8000/"],
    "0.0.0.0",
  ])("refuses what asks for %j", (host) => {
    const asked: Record<string, string>[] = [{ host }, { host, origin: `http://${host}` }];
    for (const headers of asked) expect(ask({}, headers, { keyless: true })).toBe(403);
  });

  it("answers other machines where it is open to them, but neither pages nor names that lead here", () => {
    const rule = { open: true };
    const host = "retriever.lan:8000";
    expect(ask(rule, { host }, { at: "192.168.0.7" })).toBe(200);
    expect(ask(rule, { host, origin: `http://${host}` }, { at: "192.168.0.7" })).toBe(403);
    for (const at of ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
      expect(ask(rule, { host }, { at })).toBe(403);
  });
});

it("with a key, it may have any name", () => {
  const headers = { host: "gpu.example", origin: "https://gpu.example" };
  expect(ask({ key: "k" }, { ...headers, authorization: "Bearer k" })).toBe(200);
  expect(ask({ key: "k" }, headers, { keyless: true })).toBe(200);
  expect(ask({ key: "k" }, headers)).toBe(401);
  expect(ask({ key: "k" }, { host: "localhost", authorization: "Bearer K" })).toBe(401);
});

it("knows addresses that others cannot reach", () => {
  expect(["localhost", "127.0.0.1", "::1", "::ffff:127.0.0.1"].every(isLoopback)).toBe(true);
  expect(["0.0.0.0", "::", "127.evil.example", "10.0.0.1", ""].some(isLoopback)).toBe(false);
});
