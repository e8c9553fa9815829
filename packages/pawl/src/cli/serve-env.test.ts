import { PassThrough, Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { createColours } from "./colours.js";
import { main } from "./dispatch.js";
import { runCli } from "./testing.js";

/** Starts the command; resolves when it says where it listens. */
async function serve(args: readonly string[], env: Record<string, string> = {}) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const controller = new AbortController();
  const colors = createColours(false);
  const io = { stdin: Readable.from([""]), stdout, stderr, env, colors };
  const ended = main(["serve", "env", ...args, "--port", "0"], io, controller.signal);
  const line = await new Promise<string>((resolve) => {
    stdout.setEncoding("utf8").once("data", resolve);
  });
  return { line, url: /http:\S+(?=,)/.exec(line)?.[0], ended, stop: () => controller.abort() };
}

describe("pawl serve env", () => {
  it("serves the environment that is named first, with its own settings, until Ctrl-C", async () => {
    const { line, url, ended, stop } = await serve([
      ...["desk", "--env.level", "easy", "--max-sessions", "3"],
    ]);
    expect(line).toMatch(/^desk at http:\/\/127\.0\.0\.1:\d+, up to 3 sessions; Ctrl-C stops it/);
    const { action, observation } = (await (await fetch(`${url}/schema`)).json()) as {
      action: { title: string };
      observation: { "x-pawl": object };
    };
    expect(action.title).toBe("CallToolAction");
    expect(observation["x-pawl"]).toMatchObject({ env: "desk", stepLimit: 10, sessions: 3 });
    stop();
    expect(await ended).toBe(0);
  });

  it("listens elsewhere only with a key", async () => {
    const open = await runCli(["serve", "env", "household", "--host", "0.0.0.0"]);
    expect([open.code, open.stderr]).toEqual([
      2,
      expect.stringMatching(/0\.0\.0\.0 can be reached .* set PAWL_SERVE_KEY/),
    ]);
    const { url, ended, stop } = await serve(["household", "--host", "0.0.0.0"], {
      PAWL_SERVE_KEY: "secret-of-16-and-more",
    });
    const at = url!.replace("0.0.0.0", "127.0.0.1");
    expect((await fetch(`${at}/schema`)).status).toBe(401);
    const headers = { authorization: "Bearer secret-of-16-and-more" };
    expect((await fetch(`${at}/schema`, { headers })).status).toBe(200);
    stop();
    expect(await ended).toBe(0);
  });

  it("refuses what it cannot serve by name", async () => {
    const refused = async (...args: readonly string[]) => {
      const { code, stderr } = await runCli(["serve", "env", ...args]);
      return [code, stderr] as const;
    };
    expect(await refused("househlod")).toEqual([
      expect.any(Number),
      expect.stringContaining('Did you mean "household"?'),
    ]);
    expect(await refused("household", "--env", "desk")).toEqual([
      2,
      expect.stringContaining("named twice"),
    ]);
    expect(await refused("household", "--max-sessions", "0")).toEqual([
      2,
      expect.stringContaining("--max-sessions"),
    ]);
    expect(await refused("alfworld", "--env.data", "nowhere")).toEqual([
      1,
      expect.stringContaining("nowhere"),
    ]);
  });
});
