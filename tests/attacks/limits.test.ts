import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MAX_PROCESSES } from "@pawl/core/envs/isolated-environment.js";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import {
  ask,
  childrenOf,
  dial,
  type PawlServer,
  startPawl,
  tellsProcesses,
  until,
  writeChatModel,
} from "../helpers/pawl-server.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-limits-"));
const running: PawlServer[] = [];
afterEach(async () => {
  for (const server of running.splice(0)) await server.stop();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function start(args: readonly string[]): Promise<PawlServer> {
  const server = await startPawl([...args, "--port", "0"]);
  running.push(server);
  return server;
}

/** The most children that a process has while something is done. */
async function mostChildren(pid: number, work: () => Promise<void>): Promise<number> {
  let most = 0;
  const timer = setInterval(() => {
    most = Math.max(most, childrenOf(pid).length);
  }, 10);
  try {
    await work();
  } finally {
    clearInterval(timer);
  }
  return Math.max(most, childrenOf(pid).length);
}

/** A session of serve env: what it was told first, and how to end it. */
async function sessionOf(port: number) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/ws`);
  const told = new Promise<{ type: string; data: { code?: string } }>((resolve, reject) => {
    socket.once("message", (text) => resolve(JSON.parse(String(text))));
    socket.once("error", reject);
  });
  socket.once("open", () => socket.send('{"type": "reset", "data": {"seed": 1}}'));
  const { type, data } = await told;
  return { type, code: data.code, close: () => socket.close() };
}

// It counts processes as Linux lists them.
describe.skipIf(!tellsProcesses)(
  "every limit of a server holds, and what was opened is closed",
  () => {
    it("40 resets at once of serve env with isolated worlds, and then 30 sessions", async () => {
      const server = await start(["serve", "env", "household", "--env.limits.isolate"]);
      const { port, pid } = server;
      const reset = () => ask(port, { method: "POST", path: "/reset", body: '{"seed": 1}' });
      const most = await mostChildren(pid, async () => {
        const answers = await Promise.all(Array.from({ length: 40 }, reset));
        const statuses = answers.map(({ status }) => status);
        expect(new Set(statuses)).toEqual(new Set([200, 503]));
        expect(answers.find(({ status }) => status === 503)!.text).toContain("which is the limit");
        expect((await reset()).status).toBe(200);
        const sessions = await Promise.all(Array.from({ length: 30 }, () => sessionOf(port)));
        const played = sessions.filter(({ type }) => type === "observation");
        const refused = sessions.filter(({ code }) => code === "CAPACITY_REACHED");
        expect([played.length, refused.length]).toEqual([MAX_PROCESSES, 30 - MAX_PROCESSES]);
        expect((await reset()).status).toBe(503);
        for (const { close } of sessions) close();
        // A place is free as soon as a session has ended.
        while ((await reset()).status === 503);
      });
      // The process that ends children with their parent is one more.
      expect(most).toBeLessThanOrEqual(MAX_PROCESSES + 1);
      const children = childrenOf(pid);
      expect(await server.stop()).toBe(0);
      await until(() => !children.some(isAlive));
    });

    it("games of pawl ui --play: the oldest makes room, one that is replaced is closed", async () => {
      const server = await start([
        "ui",
        folder,
        "--play",
        "--env",
        "household",
        "--env.limits.isolate",
      ]);
      const { pid, port, url } = server;
      const call = (name: string, body: object) =>
        ask(port, {
          method: "POST",
          path: `${new URL(url).pathname}api/play/${name}`,
          body: JSON.stringify(body),
        });
      const game = async (body: object): Promise<string> => {
        const { status, text } = await call("start", { seed: 1, ...body });
        expect(status, text).toBe(200);
        return (JSON.parse(text) as { id: string }).id;
      };
      const ids: string[] = [];
      const most = await mostChildren(pid, async () => {
        for (let i = 0; i < 10; i++) ids.push(await game({}));
      });
      expect(most).toBeLessThanOrEqual(8 + 1);
      expect((await call("step", { id: ids[0], action: "look" })).status).toBe(404);
      expect((await call("step", { id: ids[9], action: "look" })).status).toBe(200);
      // Undo plays again, and keeps no copies.
      for (let i = 0; i < 6; i++) await call("step", { id: ids[9], action: "look" });
      expect(JSON.parse((await call("undo", { id: ids[9] })).text).steps).toHaveLength(6);
      const before = childrenOf(pid).length;
      await game({ replaces: ids[9] });
      expect(childrenOf(pid).length).toBeLessThanOrEqual(before);
      // All of them at once: as many as fit are started, the others are refused.
      const many = await mostChildren(pid, async () => {
        const answers = await Promise.all(
          Array.from({ length: 12 }, () => call("start", { seed: 1 })),
        );
        expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 503]));
      });
      expect(many).toBeLessThanOrEqual(2 * 8 + 1);
      // One that cannot be started leaves nothing.
      const kept = childrenOf(pid).length;
      expect((await call("start", { task: "train/none" })).status).toBe(422);
      expect(childrenOf(pid).length).toBeLessThanOrEqual(kept);
      const children = childrenOf(pid);
      expect(await server.stop()).toBe(0);
      await until(() => !children.some(isAlive));
    });

    describe("serve model", () => {
      const model = join(folder, "tiny-chat");
      const HEAD =
        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
      const body = JSON.stringify({
        ...{ model: "tiny-chat", max_tokens: 1 },
        messages: [{ role: "user", content: "go on" }],
      });

      it("24 half-sent bodies, calls of a session, and sessions", async () => {
        await writeChatModel(model);
        const { port } = await start([
          ...["serve", "model", model, "--engine.threads", "1"],
          ...["--max-calls", "2", "--max-sessions", "2"],
        ]);
        const size = 2 ** 23;
        const half = `${HEAD}Content-Length: ${size}\r\n\r\n${" ".repeat(size - 1)}`;
        // 16 of them are as much as all requests may take.
        const lines = Array.from({ length: 24 }, () => dial(port, half));
        const refused = (): number => lines.filter(({ heard }) => heard() !== "").length;
        await until(() => refused() >= 24 - 16);
        for (const { heard } of lines)
          if (heard() !== "") expect(heard()).toMatch(/^HTTP\/1\.1 503/);
        expect((await ask(port, { path: "/v1/models" })).status).toBe(200);
        for (const { socket } of lines) socket.destroy();
        await Promise.all(lines.map(({ closed }) => closed));
        const chat = (session: string) =>
          ask(port, { method: "POST", path: `${session}/v1/chat/completions`, body });
        for (;;) {
          const { status } = await chat("");
          expect([200, 503]).toContain(status);
          if (status === 200) break;
        }
        for (const status of [200, 200, 400, 400]) {
          const { status: came, text } = await chat("/sessions/a");
          expect(came).toBe(status);
          if (status === 400) expect(text).toContain("has made 2 calls, which is its limit");
        }
        expect((await chat("/sessions/b")).status).toBe(200);
        expect((await chat("/sessions/c")).status).toBe(429);
        await ask(port, { method: "DELETE", path: "/sessions/a" });
        expect((await chat("/sessions/c")).status).toBe(200);
      });
    });
  },
);

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
