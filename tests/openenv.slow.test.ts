/**
 * OpenEnv's own packages on the other side: its client plays what `pawl serve env` serves, and we
 * play what its server serves (the environment of its own template, and a game of TextArena's).
 *
 * Runs if PAWL_OPENENV_PYTHON is a Python with `openenv` (and, for the game, `textarena`).
 */
import { type ChildProcess, execFile, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { isWhole } from "@pawl/core/dose-testing.js";
import type { RemoteEnv } from "@pawl/core/envs/env.js";
import { openEnvironment } from "@pawl/core/envs/open.js";
import { afterAll, describe, expect, it } from "vitest";

const { PAWL_OPENENV_PYTHON: python } = process.env;
const has = (module: string): boolean =>
  python !== undefined && spawnSync(python, ["-c", `import ${module}`]).status === 0;
if (python === undefined)
  console.warn("OpenEnv is not tested: PAWL_OPENENV_PYTHON names no Python");
const textarena = has("textarena");
if (python !== undefined && !textarena) console.warn("no textarena: its game is not played");
const here = (name: string): string => fileURLToPath(new URL(`openenv/${name}`, import.meta.url));

const children: ChildProcess[] = [];
const scratch = mkdtempSync(join(tmpdir(), "pawl-openenv-"));
afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(scratch, { recursive: true });
});

async function serve(...args: readonly string[]): Promise<string> {
  const cli = fileURLToPath(new URL("../dist/lib/main.js", import.meta.url));
  const child = spawn(process.execPath, [cli, "serve", "env", ...args, "--port", "0"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  const [line] = (await once(child.stdout!, "data")) as [Buffer];
  return /http:\S+(?=,)/.exec(String(line))![0];
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Starts a server in Python, and waits until it is healthy. */
async function started(args: (port: string) => readonly string[], cwd: string): Promise<string> {
  const port = String(await freePort());
  const child = spawn(python!, args(port), { cwd, stdio: ["ignore", "inherit", "inherit"] });
  children.push(child);
  const url = `http://127.0.0.1:${port}`;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}`);
    const healthy = await fetch(`${url}/health`).catch(() => undefined);
    if (healthy?.ok) return url;
    await wait(200);
  }
}

// biome-ignore lint/suspicious/noExplicitAny: what a script printed.
async function said(script: string, ...args: readonly string[]): Promise<any> {
  const { stdout } = await promisify(execFile)(python!, [here(script), ...args]);
  return JSON.parse(stdout);
}

describe.skipIf(python === undefined)("OpenEnv's client", () => {
  it("plays a served household: the episode is the one that is played here", async () => {
    const url = await serve("household", "--env.noise", "all");
    const { seen, state, refused, together } = await said("play_house.py", url, "train", "6", "3");
    const environment = openEnvironment({ name: "household", noise: "all" });
    const env = environment.create();
    const expected: unknown[] = [[await env.reset(environment.tasks("train")[6]!, 3), env.goal]];
    for (let step = 0; step < 20; step++) {
      const actions = env.admissibleActions!();
      const action = actions[(7 * step + 3) % actions.length]!;
      const { observation, reward, done } = await env.step(action);
      expected.push([action, observation, reward, done]);
      if (done) break;
    }
    expect(seen).toEqual(expected);
    expect(state).toEqual({ step_count: seen.length - 1, split: "train", index: 6, seed: 3 });
    expect(refused).toContain("VALIDATION_ERROR");
    expect(together).toEqual(
      Array.from({ length: 16 }, (_, index) => Array(11).fill(`train/${index}`)),
    );
  });

  it("works at a served desk by calling its tools", async () => {
    const told = await said("call_desk.py", await serve("desk", "--env.level", "easy"));
    expect(told).toMatchObject({ steps: 2, wrong: expect.stringContaining("do not fit") });
    expect(told.tools).toContain("get_order");
    expect(told.goal).toMatch(/order/);
    expect(told.said).toEqual(expect.any(String));
  });
});

describe.skipIf(python === undefined)("OpenEnv's server", () => {
  it("with the environment of its own template is played here", async () => {
    execFileSync(join(dirname(python!), "openenv"), ["init", "echo_env"], { cwd: scratch });
    const url = await started(
      (port) => ["-m", "uvicorn", "server.app:app", "--port", port, "--log-level", "warning"],
      join(scratch, "echo_env"),
    );
    const environment = openEnvironment({ name: "openenv", url, seeds: 5 });
    expect(environment).toMatchObject({ parallel: 1, splits: ["train", "valid"] });
    expect(environment.tasks("train")).toHaveLength(5);
    const env = environment.create() as RemoteEnv;
    expect(await env.reset(environment.tasks("train")[0]!)).toContain("ready");
    expect(await env.step("Hello there")).toMatchObject({
      observation: expect.stringContaining("Hello there"),
      info: { valid: true },
    });
    expect(await env.step('{"shout": "x"}')).toMatchObject({ info: { valid: false } });
    // Its one session is taken.
    const second = openEnvironment({ name: "openenv", url, connectSeconds: 0.3 });
    const late = second.create() as RemoteEnv;
    await expect(late.reset(second.tasks("train")[0]!)).rejects.toThrow("it has 1");
    await env.close();
    expect(await late.reset(second.tasks("train")[1]!)).toContain("ready");
    await late.close();
  });

  it.skipIf(!isWhole || !textarena)(
    "with a game of TextArena's is played here, to its end",
    async () => {
      const url = await started((port) => [here("textarena_server.py"), port], scratch);
      const environment = openEnvironment({ name: "openenv", url, parallel: 2 });
      const env = environment.create() as RemoteEnv;
      const first = await env.reset(environment.tasks("train")[7]!);
      expect(env.goal).toBe("Guess the number; write [7].");
      let [low, high] = [1, 20];
      for (;;) {
        const guess = Math.floor((low + high) / 2);
        const { observation, reward, done, info } = await env.step(`[${guess}]`);
        if (done) {
          expect([reward, info.success]).toEqual([1, true]);
          break;
        }
        expect(observation).toMatch(/higher|lower/i);
        if (/higher/i.test(observation.slice(observation.toLowerCase().lastIndexOf("target"))))
          low = guess + 1;
        else high = guess - 1;
        expect(low).toBeLessThanOrEqual(high);
      }
      await expect(env.step("[1]")).rejects.toThrow("over");
      // The same seed is the same game.
      expect(await env.reset(environment.tasks("train")[7]!)).toBe(first);
      await env.close();
    },
  );
});
