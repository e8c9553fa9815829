/**
 * Who may use a server of ours: whoever sends its key or, if it has none, programs of this machine.
 *
 * Any web page can make a browser send requests to this machine, by `localhost` or by a name of the
 * page's own that leads here. The browser says which name was asked for (Host) and whose page asks
 * (Origin). No page knows the key, so with a key a server may have any name, as behind a proxy.
 * The PyTorch server has the same rule: servers/torch/pawl_server/access.py.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { HttpError } from "./http-server.js";

const loopback = /^(localhost|(::ffff:)?127(\.\d{1,3}){3}|\[::1\]|::1)$/i;
const loopbackHost = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i;

/** Whether an address to listen on can be reached from this machine only. */
export function isLoopback(host: string): boolean {
  return loopback.test(host);
}

/** Whom a server answers. */
export interface AccessRule {
  /** What clients send as `Authorization: Bearer KEY`, or as `X-API-Key`. */
  readonly key?: string | undefined;
  /** Whether programs of other machines are answered without a key. */
  readonly open?: boolean;
}

/** Refuses a request; `keyless` is for what is told without the key, such as the server's health. */
export type Access = (asked: IncomingMessage, keyless?: boolean) => void;

/** The check that every request passes before anything else is done with it. */
export function createAccess({ key, open = false }: AccessRule): Access {
  const expected = key === undefined ? undefined : digest(`Bearer ${key}`);
  return (asked, keyless = false) => {
    if (expected === undefined) refusePages(asked, open);
    else if (!keyless) requireKey(asked, expected);
  };
}

function requireKey({ headers }: IncomingMessage, expected: Buffer): void {
  const named = headers["x-api-key"];
  const authorization =
    headers.authorization ?? (typeof named === "string" ? `Bearer ${named}` : undefined);
  if (timingSafeEqual(digest(authorization ?? ""), expected)) return;
  throw new HttpError(
    401,
    authorization === undefined
      ? "there is no key: send it as Authorization: Bearer KEY"
      : "the key is wrong",
    "invalid_api_key",
  );
}

function refusePages({ headers, socket }: IncomingMessage, open: boolean): void {
  const { host = "", origin } = headers;
  const isHere = loopbackHost.test(host);
  if (!isHere && !(open && !isLoopback(socket.localAddress ?? "localhost")))
    throw new HttpError(
      403,
      `without a key, only requests to localhost are answered, not to ${JSON.stringify(host.slice(0, 100))}`,
    );
  if (origin === undefined || (isHere && isOwn(origin, host))) return;
  throw new HttpError(
    403,
    `without a key, web pages are not answered, such as those of ${origin.slice(0, 100)}`,
  );
}

/** Some clients that are no browsers name the server itself. */
const isOwn = (origin: string, host: string): boolean =>
  origin === `http://${host}` || origin === `https://${host}`;

/** Equal lengths, so that comparing takes the same time for every text. */
const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
