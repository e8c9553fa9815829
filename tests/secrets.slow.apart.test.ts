/** Secrets of the user's are in no file of a run and in no output, whatever servers and worlds do with them. */
import "@pawl/pawl/cli/all-worlds.js";
import { spawn } from "node:child_process";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { runCli } from "@pawl/pawl/cli/testing.js";
import { afterAll, beforeAll, expect, it } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "pawl-secrets-"));
const KEY = "sk-planted-0123456789";
const PASSWORD = "hunter2-planted";
let server: Server;
let address: string;

beforeAll(async () => {
  // A chat server that repeats the key it was sent in every error.
  server = createServer((asked, reply) => {
    reply.writeHead(400).end(`no such model for ${asked.headers.authorization}`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  writeFileSync(
    join(folder, "leak.ts"),
    `import { defineTaskEnv, definePlugin } from "pawl";
     export default definePlugin({
       environments: [defineTaskEnv({
         name: "leak",
         summary: "repeats secrets in its errors",
         splits: { train: () => [{ goal: "fine" }, { goal: "leak" }] },
         reward: ({ task }) => {
           if (task.goal === "leak")
             throw new Error("no answer from http://me:${PASSWORD}@db with " + process.env.OPENAI_API_KEY);
           return 1;
         },
         expert: () => "yes",
       })],
     });`,
  );
});
afterAll(() => server.close());

function pawl(args: readonly string[]): Promise<{ code: number | null; text: string }> {
  const child = spawn(process.execPath, ["dist/lib/main.js", ...args], {
    env: { ...process.env, OPENAI_API_KEY: KEY, XDG_CACHE_HOME: join(folder, "cache") },
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
  return new Promise((resolve) => child.on("close", (code) => resolve({ code, text })));
}

/** Everything in a folder as one text, unpacked. */
function contentOf(path: string): string {
  if (!existsSync(path)) return "";
  if (statSync(path).isDirectory())
    return readdirSync(path)
      .map((name) => `${name}\n${contentOf(join(path, name))}`)
      .join("\n");
  const bytes = readFileSync(path);
  return (path.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString("latin1");
}

it.each([
  ["an engine's address", ["train", "--engine", `http://u:${PASSWORD}@localhost:9`]],
  ["a sampler's", ["train", "--engine.sampler", `http://${PASSWORD}@localhost:9`]],
  [
    "a chat model's",
    ["rollout", "--policy", "chat", "--policy.base-url", `http://u:${PASSWORD}@h/v1`],
  ],
  ["an address with quotes", ["train", "--engine", `http://u:a"${PASSWORD}@localhost:9`]],
  ["a broken address", ["train", "--engine", `http:/u:${PASSWORD}@localhost:9`]],
  ["a query", ["train", "--engine", `http://localhost:9/?api_key=${PASSWORD}`]],
  ["an unknown setting's", ["train", "--enigne", `http://u:${PASSWORD}@localhost:9`]],
])("a password in %s is refused before anything is recorded", async (_, args) => {
  const out = join(mkdtempSync(join(folder, "refused-")), "run");
  const { code, stdout, stderr } = await runCli([...args, "--out", out]);
  expect(code).toBe(2);
  expect(stderr).toMatch(/^error: /);
  expect(stdout + stderr).not.toContain(PASSWORD);
  expect(existsSync(out)).toBe(false);
});

it("a key that a server repeats, or a world puts into an error, is nowhere", async () => {
  const chat = join(folder, "chat");
  const asked = await pawl([
    ...["rollout", "--policy", "chat", "--policy.base-url", `http://${address}/v1`],
    ...["--policy.model", "m", "--groups", "2", "--group-size", "1", "--out", chat],
  ]);
  expect(asked.code).toBe(1);
  expect(asked.text).toContain("no such model for Bearer [key]");
  const world = join(folder, "world");
  const played = await pawl([
    ...["eval", "--plugin", join(folder, "leak.ts"), "--env", "leak", "--policy", "expert"],
    ...["--split", "train", "--out", world],
  ]);
  expect(played.code, played.text).toBe(0);
  expect(played.text).toContain("1 × no answer from http://[secret]@db with [secret]");
  const shown = await pawl(["show", world, "broken"]);
  expect(contentOf(world)).toContain("[secret]@db");
  for (const text of [asked.text, played.text, shown.text, contentOf(chat), contentOf(world)])
    for (const secret of [KEY, PASSWORD]) expect(text).not.toContain(secret);
});
