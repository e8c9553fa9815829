/** Who may use an endpoint: those with its key, or, without one, programs of this machine. */
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { Refusal } from "./refusal.js";

const loopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\]|::1)$/;

/** Whether an address to listen on can be reached from this machine only. */
export function isLoopback(host: string): boolean {
  return loopback.test(host);
}

/** Refuses requests without the key; without a key, those that web pages could send. */
export function createAccess(key: string | undefined): (asked: IncomingMessage) => void {
  const expected = key === undefined ? undefined : digest(`Bearer ${key}`);
  return ({ headers }) => {
    if (expected !== undefined) {
      if (timingSafeEqual(digest(headers.authorization ?? ""), expected)) return;
      throw new Refusal(
        401,
        headers.authorization === undefined
          ? "there is no key: send it as Authorization: Bearer KEY"
          : "the key is wrong",
        { code: "invalid_api_key" },
      );
    }
    // A page of another site can reach this machine under a name of its own.
    const host = (headers.host ?? "").replace(/:\d+$/, "");
    if (!isLoopback(host))
      throw new Refusal(403, "without a key, only requests to localhost are answered");
  };
}

/** Equal lengths, so that comparing takes the same time for every text. */
const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
