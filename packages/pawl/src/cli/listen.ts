/** How our servers start to listen, and how they stop. */
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { UserError } from "@pawl/core/errors.js";

/** How long requests in flight may take to finish after Ctrl-C. */
const GRACE_MS = 5000;

/** Where a server listens. */
export interface Listening {
  readonly address: string;
  /** Address and port, as they stand in a URL. */
  readonly host: string;
}

/** Listens, and says where; a port of 0 is any free one. */
export async function listen(server: Server, port: number, host: string): Promise<Listening> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const remedy =
        error.code === "EADDRINUSE"
          ? "Something else listens there: choose another --port."
          : "Choose another --host or --port.";
      reject(new UserError(`cannot listen at ${host}:${port}: ${error.message}. ${remedy}`));
    });
    server.listen(port, host, resolve);
  });
  const bound = server.address() as AddressInfo;
  const shown = bound.family === "IPv6" ? `[${bound.address}]` : bound.address;
  return { address: bound.address, host: `${shown}:${bound.port}` };
}

/** Waits for the signal. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** Lets requests in flight finish, for a while. */
export async function close(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  server.closeIdleConnections();
  const done = new AbortController();
  const late = wait(GRACE_MS, undefined, { signal: done.signal }).then(
    () => server.closeAllConnections(),
    () => undefined,
  );
  await closed;
  done.abort();
  await late;
}
