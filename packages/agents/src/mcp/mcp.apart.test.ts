import "@pawl/pawl/cli/all-worlds.js";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { envChecks } from "@pawl/core/envs/conformance.js";
import type { Environment, RemoteEnv } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { isAlive } from "@pawl/core/processes/process-alive.js";
import type { Policy } from "@pawl/core/rollout/policy.js";
import { rollout } from "@pawl/core/rollout/rollout.js";
import { promptStyle } from "@pawl/core/text/prompt.js";
import { callText } from "@pawl/core/text/tool.js";
import { describe, expect, it } from "vitest";
import { registerReward } from "../tasks/rewards.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-mcp-test-"));
const script = resolve("packages/agents/src/mcp/fixtures/server.mjs");
const windows = process.platform === "win32";
let written = 0;

function file(...lines: readonly object[]): string {
  const path = join(folder, `${++written}.jsonl`);
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  return path;
}

const sum = { goal: "2 + 3?", answer: 5, solution: [{ tool: "add", arguments: { a: 2, b: 3 } }] };
const fixture = { command: process.execPath, args: [script] };

function open(more: Record<string, unknown> = {}, ...tasks: readonly object[]): Environment {
  const train = file(...(tasks.length > 0 ? tasks : [sum]));
  return openEnvironment({ name: "mcp", servers: { one: fixture }, train, ...more });
}

/** Uses a world at the start of its first task. */
async function using<T>(environment: Environment, use: (env: RemoteEnv) => Promise<T>): Promise<T> {
  const env = environment.create() as RemoteEnv;
  try {
    await env.reset(environment.tasks("train")[0]!);
    return await use(env);
  } finally {
    await env.close();
  }
}

const call = (tool: string, given: Record<string, unknown> = {}): string =>
  callText({ tool, arguments: given });

async function until(condition: () => boolean): Promise<boolean> {
  for (let i = 0; i < 4000 && !condition(); i++) await wait(25);
  return condition();
}

describe("an environment of MCP servers", () => {
  describe("keeps the contract", () => {
    const actions = [call("add", { a: 1, b: 1 }), call("count"), call("answer", { answer: "5" })];
    for (const check of envChecks(open(), { tasksPerSplit: 1, steps: 3, actions }))
      it(check.name, check.run);
  });

  it("lists the tools, calls them, shows what they give, and judges the answer", async () => {
    await using(open(), async (env) => {
      expect(env.goal).toBe("2 + 3?");
      expect(env.tools!().map(({ name }) => name)).toEqual(
        expect.arrayContaining(["add", "fail", "answer"]),
      );
      const step = async (tool: string, given = {}) => {
        const { observation, reward, done, info } = await env.step(call(tool, given));
        return [observation, info.valid, reward, done];
      };
      expect(await step("add", { a: 2, b: 3 })).toEqual(["5", true, 0, false]);
      expect(await step("fail")).toEqual(["it went wrong", false, 0, false]);
      expect(await step("picture")).toEqual(["[image, image/png]", true, 0, false]);
      expect(await step("unknown")).toEqual([
        expect.stringContaining("no such tool any more"),
        false,
        0,
        false,
      ]);
      expect((await step("add", { a: "2" }))[0]).toMatch(/The arguments of add do not fit: a: /);
      expect((await step("ad"))[0]).toMatch(/There is no tool ad\. Did you mean "add"/);
      expect(await step("answer", { answer: " 5 " })).toEqual(["Done.", true, 1, true]);
    });
  });

  it("starts a fresh server for every episode, without this process's keys", async () => {
    process.env.SECRET_KEY = "hunter2";
    try {
      const environment = open(
        { servers: { one: { ...fixture, args: [script, "{who}"] } } },
        {
          ...sum,
          who: "me",
        },
      );
      const env = environment.create() as RemoteEnv;
      for (let episode = 0; episode < 2; episode++) {
        await env.reset(environment.tasks("train")[0]!);
        expect((await env.step(call("count"))).observation).toBe("call 1");
      }
      expect((await env.step(call("where"))).observation).toBe("me no key");
      await env.close();
    } finally {
      delete process.env.SECRET_KEY;
    }
  });

  it("gives an episode a folder of its own, with files, under a name that never changes", async () => {
    const environment = open(
      { servers: { one: { ...fixture, args: [script, "{scratch}/a"] } } },
      { ...sum, files: { "a/note.txt": "hello" } },
    );
    const folders = () => readdirSync(tmpdir()).filter((name) => name.startsWith("pawl-scratch-"));
    const known = folders().length;
    await using(environment, async (env) => {
      expect((await env.step(call("where"))).observation).toBe("/scratch/a no key");
      const made = folders().map((name) => join(tmpdir(), name, "a/note.txt"));
      expect(made.some((path) => existsSync(path))).toBe(true);
    });
    expect(folders().length).toBe(known);
  });

  it("writes a task's files nowhere else", async () => {
    const outside = `pawl-outside-${process.pid}`;
    for (const name of [`../${outside}`, `a/../../${outside}`, join(tmpdir(), outside)])
      await expect(
        using(open({ servers: { one: fixture } }, { ...sum, files: { [name]: "x" } }), async () => {
          throw new Error("it began");
        }),
      ).rejects.toThrow("expected a path inside the episode's folder");
    expect(existsSync(join(tmpdir(), outside))).toBe(false);
  });

  it("breaks an episode whose server dies, hangs or cannot be started, by reason", async () => {
    const play = async (environment: Environment, tool: string) => {
      const policy: Policy = {
        name: "scripted",
        batch: 1,
        act: async (all) => all.map(({ format }) => ({ response: format(call(tool)) })),
      };
      const groups = await rollout({
        environment,
        policy,
        style: promptStyle(undefined),
        tasks: [environment.tasks("train")[0]!, environment.tasks("train")[0]!],
        groupSize: 1,
        seed: 0,
        stepLimit: 2,
      }).catch((error: Error) => error);
      return groups instanceof Error ? groups.message : JSON.stringify(groups);
    };
    expect(await play(open(), "die")).toMatch(
      /server one was lost in a call of die: .*it wrote: out of coffee/,
    );
    expect(await play(open({ limits: { stepSeconds: 1.5 } }), "hang")).toMatch(
      /a step took longer than env\.limits\.stepSeconds/,
    );
    const missing = open({ servers: { one: { command: "no-such-command-here" } } });
    expect(await play(missing, "add")).toMatch(/server one could not be started: .*ENOENT/);
  });

  it("hands a finished episode to a plugin's function, which may call tools", async () => {
    registerReward("counted", async ({ task, actions, observations, answer, call: again }) => {
      expect([task.goal, actions.length, observations, answer]).toEqual([
        "2 + 3?",
        2,
        ["call 1"],
        "x",
      ]);
      return (await again!({ tool: "count", arguments: {} })) === "call 2" ? 1 : 0;
    });
    await using(open({ reward: "counted" }), async (env) => {
      await env.step(call("count"));
      expect((await env.step(call("answer", { answer: "x" }))).reward).toBe(1);
    });
  });

  it("judges by a pattern", async () => {
    const environment = open({ reward: "match" }, { goal: "A year?", pattern: "^19\\d\\d$" });
    for (const [answer, reward] of [
      ["1984", 1],
      ["2001", 0],
    ] as const)
      await using(environment, async (env) =>
        expect((await env.step(call("answer", { answer }))).reward).toBe(reward),
      );
  });

  it.skipIf(windows)("leaves no process behind, not even a server's own children", async () => {
    const ids = await using(open(), async (env) =>
      (await env.step(call("child"))).observation.split(" ").map(Number),
    );
    expect(await until(() => ids.every((id) => !isAlive(id)))).toBe(true);
  });

  it.skipIf(windows)("leaves none behind when its own process is killed", async () => {
    const config = { name: "mcp", servers: { one: fixture }, train: file(sum) };
    const child = spawn(
      process.execPath,
      [
        "--input-type=module",
        "-e",
        `const { openEnvironment } = await import(${JSON.stringify(resolve("dist/lib/index.js"))});
         const environment = openEnvironment(${JSON.stringify(config)});
         const env = environment.create();
         await env.reset(environment.tasks("train")[0]);
         console.log((await env.step('{"tool":"child","arguments":{}}')).observation);
         setInterval(() => {}, 1000);`,
      ],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    const said = await new Promise<string>((done) => {
      child.stdout.once("data", (chunk: Buffer) => done(chunk.toString()));
    });
    const ids = said.trim().split(" ").map(Number);
    expect(ids.map(isAlive)).toEqual([true, true]);
    child.kill("SIGKILL");
    expect(await until(() => ids.every((id) => !isAlive(id)))).toBe(true);
  });

  it("shows the solutions of its tasks, if they have any", async () => {
    const environment = open();
    await using(environment, async (env) => {
      const first = environment.expert!(env);
      expect(first).toBe(call("add", { a: 2, b: 3 }));
      await env.step(first);
      expect(environment.expert!(env)).toBe(call("answer", { answer: "5" }));
    });
    expect(open({}, { goal: "?", answer: 1 }).expert).toBeUndefined();
  });

  it("keeps tools of several servers apart, or refuses", async () => {
    const two = (more: object) => open({ servers: { one: fixture, two: { ...fixture, ...more } } });
    const names = (environment: Environment) =>
      using(environment, async (env) => env.tools!().map(({ name }) => name));
    expect(await names(two({ prefix: "b_" }))).toEqual(expect.arrayContaining(["add", "b_add"]));
    await expect(names(two({}))).rejects.toThrow(
      /servers one and two both have a tool "add": set servers.two.prefix/,
    );
    await expect(names(two({ tools: ["multiply"] }))).rejects.toThrow(
      /servers.two.tools: the server has no tool "multiply"; it has add/,
    );
    await expect(
      names(open({ servers: { one: { ...fixture, args: [script, "{nothing}"] } } })),
    ).rejects.toThrow(/servers.one.args: there is no value for \{nothing\}; the task has /);
  });

  it.each<[object, RegExp]>([
    [{ servers: {} }, /expected one server or more/],
    [{ servers: { a: {} } }, /expected a command to start, or the url/],
    [{ servers: { a: { command: "x", url: "http://x" } } }, /expected a command to start, or/],
    [{ servers: { a: { url: "http://x", args: ["y"] } } }, /args, env and cwd belong to a command/],
    [{ servers: { a: { command: "x", headers: { k: "v" } } } }, /headers belong to a url/],
    [{ servers: { a: { url: "ftp://x" } } }, /expected http/],
    [{ reward: "nice" }, /reward/],
  ])("refuses %j", (more, message) => {
    expect(() => open(more as Record<string, unknown>)).toThrow(message);
  });

  it("speaks to a server at a url, with a session per episode and a key that it does not show", async () => {
    const seen: string[] = [];
    const server = createServer((request, response) => {
      const session = String(request.headers["mcp-session-id"] ?? "");
      let body = "";
      request.on("data", (chunk) => {
        body += chunk;
      });
      request.on("end", () => {
        if (request.method === "DELETE") {
          seen.push(`end ${session}`);
          response.writeHead(200).end();
          return;
        }
        if (request.method !== "POST") {
          response.writeHead(405).end();
          return;
        }
        const { authorization } = request.headers;
        const { id, method, params } = JSON.parse(body);
        if (id === undefined) {
          response.writeHead(202).end();
          return;
        }
        const result =
          method === "initialize"
            ? {
                protocolVersion: params.protocolVersion,
                capabilities: { tools: {} },
                serverInfo: { name: "h", version: "1" },
              }
            : method === "tools/list"
              ? { tools: [{ name: "hello", inputSchema: { type: "object" } }] }
              : { content: [{ type: "text", text: `hello ${authorization} from ${session}` }] };
        if (method === "initialize") seen.push(`start ${authorization}`);
        response.writeHead(200, {
          "content-type": "application/json",
          ...(method === "initialize" && { "mcp-session-id": `s${seen.length}` }),
        });
        response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
      });
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    const { port } = server.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}/mcp`;
    process.env.WORD_OF_WEB = "one-and-only";
    try {
      const environment = open({
        servers: { web: { url, headers: { authorization: "Bearer {env:WORD_OF_WEB}" } } },
      });
      for (let episode = 0; episode < 2; episode++)
        await using(environment, async (env) => {
          expect((await env.step(call("hello"))).observation).toMatch(
            /^hello Bearer \[secret\] from s\d$/,
          );
        });
      expect(seen).toEqual([
        "start Bearer one-and-only",
        "end s1",
        "start Bearer one-and-only",
        "end s3",
      ]);
    } finally {
      delete process.env.WORD_OF_WEB;
      server.closeAllConnections();
      server.close();
    }
  });
});
