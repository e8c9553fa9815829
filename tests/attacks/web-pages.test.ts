import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import {
  ask,
  noTorch,
  type PawlServer,
  startPawl,
  writeChatModel,
} from "../helpers/pawl-server.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-pages-"));
const model = join(folder, "tiny-chat");
const KEY = "a-secret-that-no-page-knows";
const running = new Map<string, Promise<PawlServer>>();
afterAll(async () => {
  for (const server of running.values()) await (await server).stop();
  rmSync(folder, { recursive: true, force: true });
});

interface Attacked {
  readonly name: string;
  readonly args: () => Promise<readonly string[]>;
  /** What it answers with 200. */
  readonly path: string;
  /** The variable that holds its key. */
  readonly key?: string;
  readonly absent?: string | undefined;
}

const servers: readonly Attacked[] = [
  {
    name: "serve engine",
    args: async () => ["serve", "engine", "--checkpoints", join(folder, "checkpoints")],
    path: "/api/v1/get_server_capabilities",
    key: "PAWL_API_KEY",
    absent: noTorch,
  },
  {
    name: "serve model",
    async args() {
      await writeChatModel(model);
      return ["serve", "model", model, "--engine.threads", "1"];
    },
    path: "/v1/models",
    key: "PAWL_SERVE_KEY",
  },
  {
    name: "serve env",
    args: async () => ["serve", "env", "household"],
    path: "/schema",
    key: "PAWL_SERVE_KEY",
  },
  { name: "serve retriever", args: async () => ["serve", "retriever"], path: "/health" },
];

/** One process for all attacks. */
function started({ name, args, key }: Attacked, withKey = false): Promise<PawlServer> {
  const id = `${name}${withKey}`;
  const server =
    running.get(id) ??
    args().then((all) => startPawl([...all, "--port", "0"], withKey ? { [key!]: KEY } : {}));
  running.set(id, server);
  return server;
}

const HOSTS = [
  ...["evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example"],
  ...["0.0.0.0", "192.168.1.7:8000", "evil.example:127.0.0.1", "evil.example@localhost"],
];
const ORIGINS = [
  ...["https://evil.example", "null", "http://localhost:3000", "http://127.0.0.1"],
  ...["file://", "chrome-extension://abc", "http://localhost.evil.example"],
];

describe("no web page reaches a server", () => {
  for (const server of servers)
    describe.skipIf(server.absent !== undefined)(server.name, () => {
      const { path } = server;
      const health = server.name === "serve engine" ? "/healthz" : "/health";

      it.each(HOSTS)("under the name %s", async (host) => {
        const { port } = await started(server);
        for (const asked of [path, health])
          expect(await ask(port, { path: asked, headers: { host } })).toMatchObject({
            status: 403,
            text: expect.stringContaining("only requests to localhost"),
          });
        // A page under such a name says that it is its own.
        const headers = { host, origin: `http://${host}` };
        expect((await ask(port, { path, headers })).status).toBe(403);
      });

      it.each(ORIGINS)("from a page of %s", async (origin) => {
        const { port } = await started(server);
        for (const asked of [path, health])
          expect(await ask(port, { path: asked, headers: { origin } })).toMatchObject({
            status: 403,
            text: expect.stringContaining("web pages are not answered"),
          });
      });

      it("but programs do, by every name of this machine and through a tunnel's port", async () => {
        const { port } = await started(server);
        for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, "localhost:9999", "[::1]:80"])
          expect((await ask(port, { path, headers: { host } })).status).toBe(200);
        const origin = `http://127.0.0.1:${port}`;
        expect((await ask(port, { path, headers: { origin } })).status).toBe(200);
      });

      if (server.key === undefined) return;
      it("and with a key nobody without it, by any name", async () => {
        const { port } = await started(server, true);
        for (const host of [...HOSTS, "localhost"]) {
          expect((await ask(port, { path, headers: { host } })).status).toBe(401);
          const wrong = { host, authorization: `Bearer ${KEY}x`, origin: `https://${host}` };
          expect((await ask(port, { path, headers: wrong })).status).toBe(401);
          const right = { ...wrong, authorization: `Bearer ${KEY}` };
          expect((await ask(port, { path, headers: right })).status).toBe(200);
        }
        expect((await ask(port, { path: health })).status).toBe(200);
      });
    });

  it.skipIf(noTorch !== undefined)(
    "to create sessions, or read, write and delete checkpoints of serve engine",
    async () => {
      const { port } = await started(servers[0]!);
      const file = "/api/v1/files/run/config.json";
      const write = { method: "PUT", path: file, body: "{}" };
      const remove = {
        ...{ method: "POST", path: "/api/v1/delete_weights", body: '{"path": "run"}' },
      };
      expect((await ask(port, write)).status).toBe(200);
      const foreign: Record<string, string>[] = [
        { host: "evil.example:8000" },
        { origin: "https://evil.example" },
      ];
      for (const headers of foreign)
        for (const asked of [
          write,
          remove,
          { path: file },
          { method: "POST", path: "/api/v1/create_session", body: "{}" },
        ])
          expect((await ask(port, { ...asked, headers })).status).toBe(403);
      expect(await ask(port, { path: file })).toEqual({ status: 200, text: "{}" });
      expect(JSON.parse((await ask(port, remove)).text)).toEqual({ deleted: true });
    },
  );

  it.each([{ origin: "https://evil.example" }, { host: "evil.example" }])(
    "by a WebSocket of serve env with %j",
    async (headers) => {
      const { port } = await started(servers[2]!);
      const socket = new WebSocket(`ws://127.0.0.1:${port}/ws`, { headers });
      const error = await new Promise<Error>((resolve) => socket.once("error", resolve));
      expect(error.message).toContain("403");
    },
  );

  const ui: Attacked = {
    name: "ui",
    args: async () => ["ui", folder, "--play"],
    path: "/api/session",
  };
  it.each(["", "/api/session", "/x/api/session", "//api/session", "/api/play/start"])(
    "at %j of pawl ui, without the key in its address",
    async (path) => {
      const { port } = await started(ui);
      for (const host of [...HOSTS, `127.0.0.1:${port}`])
        for (const method of ["GET", "POST"]) {
          const headers = { host, origin: `http://${host}` };
          expect((await ask(port, { method, path: path || "/", headers })).status).toBe(403);
        }
    },
  );

  it("and pawl ui allows no other page to show or read it", async () => {
    const { url } = await started(ui);
    const { headers, status } = await fetch(`${url}api/session`);
    expect(status).toBe(200);
    expect(headers.get("access-control-allow-origin")).toBeNull();
    expect(headers.get("cross-origin-resource-policy")).toBe("same-origin");
    expect(headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
    expect(headers.get("referrer-policy")).toBe("no-referrer");
  });
});
