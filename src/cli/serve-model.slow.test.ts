import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hermes } from "../agents/testing.js";
import { createEmbeddedEngine } from "../engine/embedded/embedded-engine.js";
import { buildTokenizer } from "../text/tokenizer-builder.js";
import { createColours } from "./colours.js";
import { main } from "./dispatch.js";
import { runCli } from "./testing.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-serve-model-"));
const model = join(parent, "tiny-chat");
beforeAll(async () => {
  const { vocabularySize } = hermes;
  const engine = await createEmbeddedEngine({
    model: { preset: "tiny", vocabularySize, maxContext: 8192 },
    threads: 1,
  });
  await engine.save(model, { optimizer: false });
  await engine.dispose();
  await hermes.save(model);
});
afterAll(() => rmSync(parent, { recursive: true }));

/** Starts the command; resolves when it says where it listens. */
async function serve(args: readonly string[], env: Record<string, string> = {}) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const controller = new AbortController();
  const colors = createColours(false);
  const io = { stdin: Readable.from([""]), stdout, stderr, env, colors };
  const ended = main(["serve", "model", model, "--port", "0", ...args], io, controller.signal);
  const line = await new Promise<string>((resolve) => {
    stdout.setEncoding("utf8").once("data", resolve);
  });
  const url = /http:\S+(?=;)/.exec(line)![0];
  return { line, url, ended, stop: () => controller.abort(), stderr };
}

const headers = { "content-type": "application/json" };
const request = (more: object = {}) => ({
  method: "POST",
  headers,
  body: JSON.stringify({
    ...{ model: "tiny-chat", messages: [{ role: "user", content: "go on" }], ...more },
  }),
});

describe("pawl serve model", () => {
  it("serves a model by the name of its folder, and records sessions until Ctrl-C", async () => {
    const out = join(parent, "sessions.jsonl");
    const { line, url, ended, stop, stderr } = await serve([
      ...["--out", out, "--max-tokens", "7", "--engine.threads", "1"],
    ]);
    expect(line).toMatch(/^tiny-chat at http:\/\/127\.0\.0\.1:\d+\/v1; Ctrl-C stops it/);
    const session = url.replace("/v1", "/sessions/a/v1");
    const ask = async (to: string, more = {}) =>
      (await (await fetch(`${to}/chat/completions`, request(more))).json()) as {
        readonly choices: readonly { readonly message: { readonly content: string } }[];
        readonly usage: { readonly completion_tokens: number };
      };
    const first = await ask(session);
    expect(first.usage.completion_tokens).toBe(7);
    // Without a session, the same question is answered anew every time.
    const texts = [await ask(url), await ask(url), await ask(url)].map(
      ({ choices }) => choices[0]!.message.content,
    );
    expect(new Set(texts).size).toBeGreaterThan(1);
    expect((await ask(url, { seed: 5 })).choices).toEqual((await ask(url, { seed: 5 })).choices);
    stop();
    expect(await ended).toBe(0);
    expect(stderr.read()).toBeNull();
    const records = readFileSync(out, "utf8").trim().split("\n");
    expect(records.map((record) => JSON.parse(record))).toMatchObject([
      { id: "a", calls: [{ answer: { content: first.choices[0]!.message.content } }] },
    ]);
  });

  it("listens elsewhere only with a key, from a file or the environment", async () => {
    const file = join(parent, "key");
    writeFileSync(file, "secret-of-the-file\n");
    for (const [args, env, key] of [
      [["--key-file", file], { PAWL_SERVE_KEY: "ignored" }, "secret-of-the-file"],
      [["--name", "x"], { PAWL_SERVE_KEY: "secret-of-the-variable" }, "secret-of-the-variable"],
    ] as const) {
      const { line, url, ended, stop, stderr } = await serve(
        ["--host", "0.0.0.0", ...args],
        env as Record<string, string>,
      );
      const models = (sent: string) =>
        fetch(`${url}/models`, { headers: { authorization: `Bearer ${sent}` } });
      expect([(await models(key)).status, (await models("ignored")).status]).toEqual([200, 401]);
      stop();
      expect(await ended).toBe(0);
      expect(line + String(stderr.read())).not.toContain(key);
    }
    const open = await runCli(["serve", "model", model, "--host", "0.0.0.0"]);
    expect([open.code, open.stderr]).toEqual([
      2,
      expect.stringMatching(/0\.0\.0\.0 can be reached .* PAWL_SERVE_KEY .*--key-file/),
    ]);
  });

  it("says what is wrong with a model or a key", async () => {
    const failed = async (...args: readonly string[]) =>
      (await runCli(["serve", "model", ...args])).stderr;
    expect(await failed()).toContain("needs a model: pawl serve model MODEL");
    expect(await failed("tiny")).toContain("tiny is a model from scratch");
    expect(await failed(join(parent, "nothing"))).toContain("holds no model");
    const empty = join(parent, "empty");
    writeFileSync(empty, "\n");
    expect(await failed(model, "--key-file", empty)).toContain("empty is empty; expected a secret");
    expect(await failed(model, "--key-file", join(parent, "none"))).toContain("--key-file: ENOENT");
    const mute = join(parent, "mute");
    const tokenizer = buildTokenizer(["go on"]);
    const { vocabularySize } = tokenizer;
    const engine = await createEmbeddedEngine({
      model: { preset: "tiny", vocabularySize },
      threads: 1,
    });
    await engine.save(mute, { optimizer: false });
    await engine.dispose();
    await tokenizer.save(mute);
    expect(await failed(mute)).toMatch(/mute has no chat template.*--prompt.style chat/);
  });

  it.skipIf(process.platform === "win32").each(["SIGINT", "SIGTERM"] as const)(
    "ends a real process cleanly on %s while it samples",
    async (signal) => {
      const cli = join(process.cwd(), "dist/lib/main.js");
      const args = ["serve", "model", model, "--port", "0", "--max-tokens", "8000"];
      const child = spawn(process.execPath, [cli, ...args, "--engine.threads", "1"], {
        stdio: ["ignore", "pipe", "pipe"],
      });
      let errors = "";
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        errors += text;
      });
      const ended = new Promise((resolve) => child.on("exit", (...how) => resolve(how)));
      const line = await new Promise<string>((resolve) => {
        child.stdout.setEncoding("utf8").once("data", resolve);
      });
      const url = /http:\S+(?=;)/.exec(line)![0];
      // With this seed the answer has more than a thousand tokens.
      const sessions = url.replace("/v1", "/sessions");
      const asked = fetch(`${sessions}/long-8/v1/chat/completions`, request({ stream: true }));
      while (!(await (await fetch(sessions)).text()).includes("long-8"));
      child.kill(signal);
      expect(await ended).toEqual([0, null]);
      expect((await asked).status).toBe(503);
      expect(errors).toBe("");
    },
  );
});
