import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  ask,
  dial,
  noTorch,
  type PawlServer,
  startPawl,
  until,
  writeChatModel,
} from "../helpers/pawl-server.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-requests-"));
const model = join(folder, "tiny-chat");
beforeAll(() => writeChatModel(model));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const servers: readonly { readonly name: string; readonly args: readonly string[] }[] = [
  { name: "serve model", args: ["serve", "model", model, "--engine.threads", "1"] },
  { name: "serve env", args: ["serve", "env", "household"] },
  { name: "serve retriever", args: ["serve", "retriever"] },
  { name: "ui", args: ["ui", folder, "--play"] },
  ...(noTorch === undefined
    ? [{ name: "serve engine", args: ["serve", "engine", "--checkpoints", join(folder, "saved")] }]
    : []),
];

/** What every object has, and what a path may look like besides. */
const NAMES = ["__proto__", "constructor", "toString", "hasOwnProperty", "__defineGetter__"];
const PATHS = [
  ...[
    "//",
    "///",
    "//evil.example/",
    "/%",
    "/%00",
    "/%2e%2e/",
    "/..",
    "/../../etc/passwd",
    "/a//b",
  ],
  ...NAMES.flatMap((name) => [`/${name}`, `/api/${name}`, `/api/v1/${name}`, `/v1/${name}`]),
  ...["/api/play/__proto__", "/api//session", `/api/${"x".repeat(8000)}`],
];

describe("no request makes a server fail or stall", () => {
  for (const { name, args } of servers)
    describe(name, () => {
      let server: PawlServer;
      /** The part of the address before its paths: the key of pawl ui. */
      let before = "";
      beforeAll(async () => {
        server = await startPawl([...args, "--port", "0"]);
        if (name === "ui") before = new URL(server.url).pathname.slice(0, -1);
      });
      afterAll(async () => {
        expect(server.output()).not.toMatch(/Traceback|^ +at /m);
        expect(await server.stop()).toBe(0);
      });

      it.each(PATHS.map((path) => [path.slice(0, 40), path]))(
        "GET %s: there is nothing",
        async (_, path) => {
          const { status, text } = await ask(server.port, { path: before + path });
          expect({ path, status, text }).toMatchObject({ status: 404 });
          expect(text).not.toMatch(/Traceback|\n +at /);
        },
      );

      it.each(["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "PROPFIND"])("%s", async (method) => {
        for (const path of [...PATHS, "/", "*"]) {
          const asked = { method, path: path === "*" ? path : before + path, body: "{}" };
          const { status, text } = await ask(server.port, asked);
          // Python's servers answer methods that they do not have with 501.
          expect(status === 501 ? 405 : status).toSatisfy((code: number) => code < 500);
          expect(status).toBeGreaterThanOrEqual(400);
          expect(text).not.toMatch(/Traceback|\n +at /);
        }
      });

      it("whole addresses, and none at all", async () => {
        const lines = [
          "GET http://[ HTTP/1.1",
          "GET http://a:99999/ HTTP/1.1",
          "GET ? HTTP/1.1",
          "X",
        ];
        for (const line of lines) {
          const { heard, closed } = dial(
            server.port,
            `${line}\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
          );
          await closed;
          // Without a version, Python takes it for HTTP/0.9, whose answers have no status.
          expect(heard()).toMatch(/^HTTP\/1\.1 4|^$|Error code: 400/);
          expect(heard()).not.toMatch(/Traceback|\n +at /);
        }
      });

      // Each, read again from every slash, would take half a second, and all of them a quarter of an hour.
      it("1,500 paths of 16,000 slashes at once", async () => {
        const path = `${"/".repeat(15_900)}x`;
        const asked = `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;
        const line = dial(server.port, asked.repeat(1500));
        const answers = (): number => line.heard().split("HTTP/1.1 ").length - 1;
        await until(() => answers() >= 1500 || line.socket.destroyed);
        line.socket.destroy();
        expect(answers()).toBe(1500);
        expect(new Set(line.heard().match(/HTTP\/1\.1 \d+/g))).toEqual(
          new Set([name === "ui" ? "HTTP/1.1 403" : "HTTP/1.1 404"]),
        );
      });

      it("a path of a megabyte", async () => {
        const line = dial(
          server.port,
          `GET /${"/".repeat(2 ** 20)}x HTTP/1.1\r\nHost: localhost\r\n\r\n`,
        );
        await line.closed;
        expect(line.heard()).toMatch(/^HTTP\/1\.[01] 4(31|14)|^$/);
      });

      it("headers that lie", async () => {
        for (const header of [
          `Content-Length: ${"9".repeat(5000)}`,
          "Content-Length: -1",
          "Content-Length: 5\r\nContent-Length: 6",
          "Transfer-Encoding: chunked, chunked\r\nContent-Length: 3",
          `Host: ${"a".repeat(9000)}`,
        ]) {
          const line = dial(
            server.port,
            `POST ${before}/api/v1/create_session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n${header}\r\n\r\n{} `,
          );
          await until(() => line.heard() !== "" || line.socket.destroyed);
          line.socket.destroy();
          expect(line.heard()).toMatch(/^HTTP\/1\.[01] 4|^$/);
          expect(line.heard()).not.toMatch(/Traceback|\n +at /);
        }
      });

      it.each([
        "",
        "{",
        "null",
        "7",
        "[".repeat(100_000),
        '{"__proto__": {"a": 1}}',
        "\ud800",
        "[]",
      ])("a body of %j", async (body) => {
        const path = {
          "serve model": "/v1/chat/completions",
          "serve env": "/reset",
          "serve retriever": "/retrieve",
          "serve engine": "/api/v1/create_model",
          ui: "/api/play/start",
        }[name]!;
        const { status } = await ask(server.port, { method: "POST", path: before + path, body });
        expect([400, 415, 422]).toContain(status);
      });
    });

  describe.skipIf(noTorch !== undefined)("names of checkpoints in serve engine", () => {
    let server: PawlServer;
    beforeAll(async () => {
      server = await startPawl([
        ...["serve", "engine", "--port", "0", "--checkpoints", join(folder, "saved")],
      ]);
    });
    afterAll(async () => {
      expect(server.output()).not.toContain("Traceback");
      expect(await server.stop()).toBe(0);
    });

    it.each([201, 300, 512, 5000, 60_000])("of %d characters are refused", async (length) => {
      const long = "x".repeat(length);
      for (const path of [`${long}/config.json`, `a/${long}.safetensors`, `a/${long}/config.json`])
        for (const method of ["GET", "PUT"]) {
          const asked = { method, path: `/api/v1/files/${path}`, body: "{}" };
          expect((await ask(server.port, asked)).status).toBe(400);
        }
      for (const path of [long, `a/${long}`]) {
        const call = (name: string, body: object) =>
          ask(server.port, { method: "POST", path: `/api/v1/${name}`, body: JSON.stringify(body) });
        const removed = await call("delete_weights", { path });
        const made = await call("create_model", { base_model: `checkpoint:${path}` });
        expect([removed.status, made.status]).toEqual([400, 400]);
        expect(removed.text).toMatch(
          /path: expected (names of at most 200 characters|a relative path)/,
        );
      }
    });
  });
});
