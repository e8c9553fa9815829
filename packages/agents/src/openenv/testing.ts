/** Servers and clients for tests. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { WebSocket, WebSocketServer } from "ws";
import { createEnvServer, type EnvServerOptions } from "./env-server.js";

/** A served environment and how to stop it. */
export interface Served {
  /** Without the scheme: `127.0.0.1:PORT`. */
  readonly at: string;
  stop(): Promise<void>;
}

/** Listens on a free port. */
async function listening(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Serves an environment in this process. */
export async function served(options: Partial<EnvServerOptions> = {}): Promise<Served> {
  const environment = options.environment ?? openEnvironment({ name: "household" });
  const { server, stop } = await createEnvServer({ environment, ...options });
  return {
    at: await listening(server),
    async stop() {
      await stop();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A message as it came. */
export interface Came {
  readonly type: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came.
  readonly data: any;
}

/** A bare client: what it is told, in order. */
export async function talker(at: string, path = "/ws", headers: Record<string, string> = {}) {
  const socket = new WebSocket(`ws://${at}${path}`, { headers, perMessageDeflate: false });
  const came: Came[] = [];
  const waiting: ((message: Came) => void)[] = [];
  socket.on("message", (text) => {
    const message = JSON.parse(String(text)) as Came;
    const next = waiting.shift();
    if (next === undefined) came.push(message);
    else next(message);
  });
  const closed = new Promise<readonly [number, string]>((resolve) => {
    socket.on("close", (code, reason) => resolve([code, String(reason)]));
  });
  await once(socket, "open");
  const hear = (): Promise<Came> => {
    const first = came.shift();
    return first === undefined
      ? new Promise((resolve) => waiting.push(resolve))
      : Promise.resolve(first);
  };
  return {
    socket,
    closed,
    hear,
    ask(message: unknown): Promise<Came> {
      socket.send(typeof message === "string" ? message : JSON.stringify(message));
      return hear();
    },
    close() {
      socket.close();
      return closed;
    },
  };
}

/** A stand-in for an OpenEnv server that misbehaves: what it does with each message. */
export async function badServer(
  answer: (text: string, socket: WebSocket, count: number) => void,
): Promise<Served & { readonly connections: () => number }> {
  const server = createServer();
  const sockets = new WebSocketServer({ server });
  let connections = 0;
  sockets.on("connection", (socket) => {
    connections++;
    let count = 0;
    socket.on("error", () => undefined);
    socket.on("message", (text) => answer(String(text), socket, count++));
  });
  return {
    at: await listening(server),
    connections: () => connections,
    async stop() {
      for (const socket of sockets.clients) socket.terminate();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
