import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { httpRetriever } from "@pawl/worlds/retrieval/retriever-open.js";
import { afterAll, describe, expect, it } from "vitest";
import { createColours } from "./colours.js";
import { main } from "./dispatch.js";
import { runCli } from "./testing.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-serve-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Starts the command; resolves when it says where it listens. */
async function serve(...args: readonly string[]) {
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  const controller = new AbortController();
  const io = {
    stdin: Readable.from([""]),
    stdout,
    stderr,
    env: {},
    colors: createColours(false),
  };
  const ended = main(["serve", "retriever", "--port", "0", ...args], io, controller.signal);
  const [line] = await new Promise<readonly string[]>((resolve) => {
    stdout.setEncoding("utf8").once("data", (text: string) => resolve(text.split("\n")));
  });
  return { line: line!, ended, stop: () => controller.abort(), stderr };
}

const urlIn = (line: string): string => /http:\S+(?=;)/.exec(line)![0];

describe("pawl serve retriever", () => {
  it("serves a corpus to our client until Ctrl-C", async () => {
    const corpus = join(folder, "c.jsonl");
    writeFileSync(corpus, '{"id": "x", "contents": "Oak\\nA tree."}\n');
    const { line, ended, stop, stderr } = await serve("--corpus", corpus);
    expect(line).toMatch(/^BM25 over .*c\.jsonl at http:\/\/127\.0\.0\.1:\d+\/retrieve; Ctrl-C/);
    const retriever = httpRetriever({ url: urlIn(line), retries: 0 });
    const found = await retriever.search("tree", 3);
    expect(found.map(({ passage }) => passage)).toEqual([{ id: "x", contents: "Oak\nA tree." }]);
    stop();
    expect(await ended).toBe(0);
    expect(stderr.read()).toBeNull();
    await expect(retriever.search("tree", 3)).rejects.toThrow(/ECONNREFUSED/);
  });

  it("serves the made-up world without a corpus, warns off loopback, and reports a taken port", async () => {
    const first = await serve("--host", "0.0.0.0");
    expect(first.line).toContain("BM25 over the made-up world 1 of 400 things at http://0.0.0.0:");
    expect(String(first.stderr.read())).toMatch(/anyone who can reach .* no authentication/);
    const { port } = new URL(urlIn(first.line));
    const second = await runCli(["serve", "retriever", "--host", "0.0.0.0", "--port", port]);
    expect([second.code, second.stderr]).toEqual([
      1,
      expect.stringMatching(/cannot listen at 0\.0\.0\.0:\d+: .*choose another --port/),
    ]);
    first.stop();
    expect(await first.ended).toBe(0);
  });

  it.skipIf(process.platform === "win32")("ends a real process cleanly on Ctrl-C", async () => {
    const cli = join(process.cwd(), "dist/lib/main.js");
    const child = spawn(process.execPath, [cli, "serve", "retriever", "--port", "0"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const ended = new Promise((resolve) => child.on("exit", (...how) => resolve(how)));
    const line = await new Promise<string>((resolve) => {
      child.stdout.setEncoding("utf8").once("data", resolve);
    });
    // The client keeps its connection open, which must not delay the server's exit.
    const found = await httpRetriever({ url: urlIn(line) }).search("who wrote the book", 3);
    expect(found).toHaveLength(3);
    child.kill("SIGINT");
    expect(await ended).toEqual([0, null]);
  });

  it("says what is wrong with a corpus or an encoder", async () => {
    const missing = await runCli(["serve", "retriever", "--corpus", "none.jsonl"]);
    expect([missing.code, missing.stderr]).toEqual([
      1,
      expect.stringMatching(/none\.jsonl: ENOENT/),
    ]);
    const dense = await runCli(["serve", "retriever", "--retriever", "dense", "--encoder", folder]);
    expect([dense.code, dense.stderr]).toEqual([
      1,
      expect.stringMatching(/is not a sentence encoder/),
    ]);
  });
});
