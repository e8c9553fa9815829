/** Who may use a server of ours: those with its key, or, without one, programs of this machine. */
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { HttpError } from "./http-server.js";

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
      throw new HttpError(
        401,
        headers.authorization === undefined
          ? "there is no key: send it as Authorization: Bearer KEY"
          : "the key is wrong",
        "invalid_api_key",
      );
    }
    // A page of another site can reach this machine under a name of its own.
    const host = (headers.host ?? "").replace(/:\d+$/, "");
    if (!isLoopback(host))
      throw new HttpError(403, "without a key, only requests to localhost are answered");
    // Any page may open a WebSocket to this machine; its browser says whose page it is.
    const { origin } = headers;
    if (origin !== undefined && !isLoopback(hostOf(origin)))
      throw new HttpError(403, `without a key, pages of ${origin} are not answered`);
  };
}

const hostOf = (origin: string): string => (URL.canParse(origin) ? new URL(origin).hostname : "");

/** Equal lengths, so that comparing takes the same time for every text. */
const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
