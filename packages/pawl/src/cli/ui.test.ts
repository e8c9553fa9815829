import { mkdirSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import type { NextActions, PlayView, RunDetail, Session, Surprise } from "@pawl/ui/server/api.js";
import { startRun } from "@pawl/ui/server/testing.js";
import { describe, expect, it } from "vitest";
import { createColours } from "./colours.js";
import { main } from "./dispatch.js";
import { runCli } from "./testing.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-ui-cli-"));
startRun(join(folder, "run")).finish("done");

/** Serves until the work with its address is done; resolves with the exit code. */
async function serving(
  args: readonly string[],
  work: (address: string) => Promise<void>,
): Promise<number> {
  const stop = new AbortController();
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  const colors = createColours(false);
  const io = { stdin: Readable.from([""]), stdout, stderr, env: {}, colors };
  const ended = main([...args, "--port", "0"], io, stop.signal);
  const line = await new Promise<string>((resolve, reject) => {
    stdout.setEncoding("utf8").once("data", resolve);
    void ended.then(() => reject(new Error(String(stderr.read()))));
  });
  await work(/http:\S+/.exec(line)![0]);
  stop.abort();
  return ended;
}

describe("pawl ui", () => {
  it("serves under a random key, read-only, and ends when it is told to", async () => {
    const addresses: string[] = [];
    for (let n = 0; n < 2; n++) {
      const code = await serving(["ui", folder], async (address) => {
        addresses.push(address.replace(/:\d+/, ""));
        const session = (await (await fetch(`${address}api/session`)).json()) as Session;
        expect(session).toMatchObject({ folder, play: false });
        const detail = (await (await fetch(`${address}api/run?run=run`)).json()) as RunDetail;
        expect(detail.recipe).toBe("recipes/laptop.ts");
        // A page that listens does not keep the server from ending.
        await fetch(`${address}api/live`);
      });
      expect(code).toBe(0);
    }
    expect(addresses[0]).toMatch(/^http:\/\/127\.0\.0\.1\/[\w-]{22}\/$/);
    expect(addresses[0]).not.toBe(addresses[1]);
  });

  it("plays if it may, with the world of the command line", async () => {
    await serving(["ui", folder, "--play", "--env", "desk"], async (address) => {
      const answer = await fetch(`${address}api/play/worlds`, { method: "POST", body: "{}" });
      expect(await answer.json()).toMatchObject({ chosen: "desk" });
    });
  });

  it.each([
    [["nowhere"], "there is no folder nowhere"],
    [[folder, folder], "Usage: pawl ui [FOLDER]"],
    [[folder, "--host", "0.0.0.0"], "set PAWL_UI_KEY to a secret first"],
    [[folder, "--env", "desk"], "add --play"],
    [[folder, "--key-file", join(folder, "short")], "expected at least 8 letters"],
    [[folder, "--key-file", join(folder, "none")], "--key-file"],
  ])("refuses %j", async (args, message) => {
    writeFileSync(join(folder, "short"), "x/y");
    const { code, stderr } = await runCli(["ui", ...args]);
    expect(stderr).toContain(message);
    expect(code).toBe(2);
  });
});

describe("pawl try", () => {
  const ask = async <T>(address: string, path: string, body?: unknown): Promise<T> => {
    const post = { method: "POST", body: JSON.stringify(body) };
    return (await fetch(`${address}api/${path}`, body === undefined ? {} : post)).json() as T;
  };

  it("shows the agent that comes with the package: it acts, expects, and is surprised", async () => {
    const place = join(folder, "try");
    const code = await serving(["try", place], async (page) => {
      const address = page.replace("#/try", "");
      const { trial } = await ask<Session>(address, "session");
      expect(trial).toEqual({ start: "start", trained: "trained" });
      const agent = trial!.start;
      const { id } = await ask<PlayView>(address, "play/start", { run: agent, seed: 0 });
      expect(await ask(address, "play/surprise", { id, agent })).toHaveProperty("error");
      const { how, actions } = await ask<NextActions>(address, "play/think", { id, agent });
      expect(how).toBe("scored");
      expect(actions[0]!.predicted).toMatch(/You hold nothing\.$/);
      const { action } = actions[0]!;
      const { steps } = await ask<PlayView>(address, "play/step", { id, action });
      const { tokens } = await ask<Surprise>(address, "play/surprise", { id, agent });
      // All of what came, without the marks around it.
      expect(
        tokens
          .map(({ text }) => text)
          .join("")
          .trim(),
      ).toBe(steps[0]!.observation);
      expect(tokens.every(({ logprob }) => logprob! <= 0)).toBe(true);
    });
    expect(code).toBe(0);
    expect(readdirSync(place)).toEqual(["start"]);
  });

  it("refuses a folder whose start is no run", async () => {
    mkdirSync(join(folder, "other", "start"), { recursive: true });
    const { code, stderr } = await runCli(["try", join(folder, "other")]);
    expect(stderr).toContain("name another folder, or remove it");
    expect(code).toBe(2);
  });
});
