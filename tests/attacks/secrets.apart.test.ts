/** Keys in settings: refused, or named by their variable; what older versions recorded stays where it is. */
import "@pawl/pawl/cli/all-worlds.js";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { gunzipSync, inflateRawSync } from "node:zlib";
import { some } from "@pawl/core/dose-testing.js";
import { envConfig, envKinds } from "@pawl/core/envs/registry.js";
import { type Manifest, readManifest, writeManifest } from "@pawl/core/runs/manifest.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { secretSettings } from "@pawl/core/trust/secret-settings.js";
import { loadCommands } from "@pawl/pawl/cli/command-entry.js";
import { commands } from "@pawl/pawl/cli/commands.js";
import { type Outcome, runCli } from "@pawl/pawl/cli/testing.js";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { z } from "zod";

const folder = mkdtempSync(join(tmpdir(), "pawl-attack-secrets-"));
/** Nothing but its place says that it is a secret. */
const SECRET = "hunter2-hunter2";
const script = resolve("packages/agents/src/mcp/fixtures/server.mjs");
const before = { ...process.env };

beforeAll(() => {
  process.env.XDG_CACHE_HOME = join(folder, "cache");
  process.env.TMPDIR = folder;
});
afterAll(() => {
  process.env = before;
});

let files = 0;
function tasks(...lines: readonly object[]): string {
  const path = join(folder, `tasks-${++files}.jsonl`);
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  return path;
}

/** The tool `where` tells the value of SECRET_KEY. */
const telling = { goal: "Where?", answer: "here", solution: [{ tool: "where", arguments: {} }] };

function configFile(servers: object, more: object = {}, task: object = telling): string {
  const path = join(folder, `run-${++files}.json`);
  const train = tasks(task);
  writeFileSync(
    path,
    JSON.stringify({ env: { name: "mcp", servers, train, valid: train }, ...more }),
  );
  return path;
}

const out = (): string => join(folder, `out-${++files}`);

function setVariable(name: string, value: string): void {
  process.env[name] = value;
  onTestFinished(() => {
    delete process.env[name];
  });
}

/** The files of an archive, whose headers hold their sizes. */
function* unzipped(bytes: Buffer): Generator<string> {
  for (let at = 0; bytes.readUInt32LE(at) === 0x04034b50; ) {
    const start = at + 30 + bytes.readUInt16LE(at + 26) + bytes.readUInt16LE(at + 28);
    at = start + bytes.readUInt32LE(at + 18);
    yield inflateRawSync(bytes.subarray(start, at)).toString();
  }
}

/** The words around each place where a text holds the secret. */
const leaks = (text: string): readonly string[] =>
  text.match(new RegExp(`.{0,40}${SECRET}`, "g")) ?? [];

/** Everything in a file or a folder as one text, unpacked. */
function contentOf(path: string): string {
  if (statSync(path).isDirectory())
    return readdirSync(path)
      .map((name) => `${name}\n${contentOf(join(path, name))}`)
      .join("\n");
  const bytes = readFileSync(path);
  if (path.endsWith(".eval")) return [...unzipped(bytes)].join("\n");
  return (path.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString("latin1");
}

const web = (headers: object) => ({ web: { url: "http://127.0.0.1:9/mcp", headers } });
const local = (more: object) => ({ local: { command: process.execPath, ...more } });

/** Settings whose names users choose, and those whose names speak of secrets. */
function* placesOf(schema: z.core.$ZodType, path: readonly string[]): Generator<string> {
  const def = schema._zod.def as z.core.$ZodTypeDef & {
    shape?: Readonly<Record<string, z.core.$ZodType>>;
    valueType?: z.core.$ZodType;
    element?: z.core.$ZodType;
    innerType?: z.core.$ZodType;
    out?: z.core.$ZodType;
    options?: readonly z.core.$ZodType[];
  };
  for (const [key, inner] of Object.entries(def.shape ?? {}))
    yield* placesOf(inner, [...path, key]);
  if (def.valueType !== undefined) yield* placesOf(def.valueType, [...path, "*"]);
  if (def.element !== undefined) yield* placesOf(def.element, [...path, "0"]);
  for (const inner of [def.innerType, def.out, ...(def.options ?? [])])
    if (inner !== undefined) yield* placesOf(inner, path);
  const name = path.at(-1) ?? "";
  if (
    def.type === "string" &&
    /^\*$|(key|token|secret|password|credentials?)(Variable)?$/i.test(name)
  )
    yield path.join(".");
}

describe("secrets are neither recorded nor published", () => {
  describe("in settings", () => {
    it.each([
      ["Authorization", web({ Authorization: `Bearer ${SECRET}` }), "Bearer {env:WEB_TOKEN}"],
      ["a header in small letters", web({ authorization: SECRET }), "{env:WEB_TOKEN}"],
      ["x-api-key", web({ "X-Api-Key": SECRET }), "{env:WEB_API_KEY}"],
      ["a cookie", web({ cookie: `session=${SECRET}` }), "{env:WEB_COOKIE}"],
      [
        "a header of any name that looks like a key",
        web({ who: `Bearer ${SECRET}` }),
        "{env:WEB_WHO}",
      ],
      ["escaped braces", web({ authorization: `{{env:WEB_TOKEN}} ${SECRET}` }), "{env:WEB_TOKEN}"],
      ["a placeholder beside a key", web({ who: `sk-${SECRET}-0 {env:HOME}` }), "{env:WEB_WHO}"],
      ["a token in env", local({ env: { GITHUB_TOKEN: SECRET } }), "{env:GITHUB_TOKEN}"],
      ["a password in env", local({ env: { PGPASSWORD: SECRET } }), "{env:PGPASSWORD}"],
      ["credentials in env", local({ env: { credentials: SECRET } }), "{env:credentials}"],
      ["a key by its look in env", local({ env: { OTHER: `sk-${SECRET}-0` } }), "{env:OTHER}"],
      ["an argument", local({ args: ["--api-key", SECRET] }), "{env:LOCAL_API_KEY}"],
      ["an argument with =", local({ args: [`--token=${SECRET}`] }), "--token={env:LOCAL_TOKEN}"],
      ["an address", local({ args: [`postgres://u:${SECRET}@db/x`] }), "{env:NAME}"],
      ["a query", { web: { url: `http://h/mcp?apiKey=${SECRET}` } }, "{env:NAME}"],
    ])("%s", async (_, servers, instead) => {
      for (const args of [
        ["--config", configFile(servers)],
        ["--env", "mcp", "--env.train", tasks(telling), "--env.servers", JSON.stringify(servers)],
      ]) {
        const run = out();
        const { code, stdout, stderr } = await runCli(["rollout", ...args, "--out", run]);
        expect(code, stderr).toBe(2);
        expect(stderr).toContain(instead);
        expect(leaks(stdout + stderr)).toEqual([]);
        expect(existsSync(run)).toBe(false);
      }
    });

    it.each([
      ["a key in place of a variable's name", ["--policy.api-key-variable", `sk-${SECRET}-0`]],
      ["a password in place of a variable's name", ["--policy.api-key-variable", `${SECRET}!`]],
      ["a key as a model's name", ["--policy.model", `sk-${SECRET}-0`]],
      ["damaged JSON", ["--env", "mcp", "--env.servers", `{"a": {"headers": {"k": "${SECRET}}}`]],
    ])("%s", async (_, args) => {
      const run = out();
      const chat = ["--policy", "chat", "--policy.base-url", "http://127.0.0.1:9/v1"];
      const model = args[0] === "--policy.model" ? [] : ["--policy.model", "m"];
      const line = ["rollout", ...chat, ...model, ...args, "--out", run];
      const { code, stdout, stderr } = await runCli(line);
      expect(code, stderr).toBe(2);
      expect(leaks(stdout + stderr)).toEqual([]);
      expect(existsSync(run)).toBe(false);
    });

    it.each([
      ["is not set", undefined],
      ["is empty", " "],
      ["would break a header", "a\nb: c"],
    ])("a variable that %s is named before anything starts", async (_, value) => {
      if (value !== undefined) setVariable("ATTACKED_WORD", value);
      const run = out();
      const config = configFile(web({ authorization: "Bearer {env:ATTACKED_WORD}" }));
      for (const more of [[], ["--dry-run"]]) {
        const { code, stderr } = await runCli([
          "rollout",
          "--config",
          config,
          "--out",
          run,
          ...more,
        ]);
        expect(code).not.toBe(0);
        expect(stderr).toMatch(/servers\.web\.headers\.authorization: .* ATTACKED_WORD /);
        expect(existsSync(run)).toBe(false);
      }
    });

    it("a task cannot name a variable of its own", async () => {
      setVariable("ATTACKED_KEY", SECRET);
      const servers = local({ args: [script, "{word}"] });
      const run = out();
      const config = configFile(servers, {}, { ...telling, word: "{env:ATTACKED_KEY}" });
      const { code } = await runCli(["rollout", "--config", config, "--groups", "1", "--out", run]);
      expect(code).toBe(0);
      const [{ steps } = expect.unreachable()] = openRun(run, expect.unreachable).episodes();
      expect(steps[0]!.observation).toBe("{env:ATTACKED_KEY} no key");
    });

    it("a server that writes its key as it dies writes it into no record", async () => {
      setVariable("ATTACKED_WORD", SECRET);
      const dies = "console.error('bad key', process.env.SECRET_KEY); process.exit(1)";
      const servers = local({ args: ["-e", dies], env: { SECRET_KEY: "{env:ATTACKED_WORD}" } });
      const run = out();
      const args = ["rollout", "--config", configFile(servers), "--groups", "1", "--out", run];
      const { stdout, stderr } = await runCli(args);
      const content = contentOf(run);
      expect(content).toContain("bad key [secret]");
      expect(leaks(content + stdout + stderr)).toEqual([]);
    });

    it("no setting can be forgotten: wherever users choose names, keys are found", async () => {
      const places = new Set<string>();
      const schemas = [
        ...envKinds().map((kind) => ({ path: ["env"], schema: envConfig(kind) })),
        ...(await loadCommands(commands)).map((command) => ({
          path: [],
          schema: command.options(() => undefined),
        })),
      ];
      for (const { path, schema } of schemas)
        for (const place of placesOf(schema, path)) places.add(place);
      const found = [...places].filter((place) => !place.endsWith("Variable"));
      expect(found).toEqual(["env.servers.*.env.*", "env.servers.*.headers.*"]);
      for (const place of places) {
        const keys = place.replace(/\*$/, "X-Api-Key").split(".");
        const settings = keys.reduceRight<unknown>(
          (inner, key) => ({ [key]: inner }),
          `${SECRET}!`,
        );
        expect(secretSettings(settings), place).toHaveLength(1);
      }
    });
  });

  describe("in what leaves a run", () => {
    const trained = join(folder, "trained");
    const tracker = join(folder, "trackio");
    const said: string[] = [];
    const pawl = async (...args: readonly string[]): Promise<Outcome> => {
      const outcome = await runCli(args);
      said.push(outcome.stdout, outcome.stderr);
      expect(outcome.code, outcome.stderr).toBe(0);
      return outcome;
    };
    const settings = {
      prompt: { style: "compact", history: "all" },
      model: { start: "tiny", maxContext: 256 },
      warmStart: { teacher: "expert", episodes: 2, sft: { epochs: 1, batch: 2 } },
      ...{ updates: 1, groups: 1, groupSize: 2, stepLimit: 2, maxTokens: 8 },
      evaluation: { every: 1, splits: ["valid"], tasks: 1 },
    };

    beforeAll(async () => {
      process.env.ATTACKED_WORD = SECRET;
      const servers = local({
        args: [script, "me"],
        env: { SECRET_KEY: "{env:ATTACKED_WORD}" },
        tools: ["where"],
      });
      const config = configFile(servers, settings);
      await pawl("train", "--config", config, "--out", trained, "--track", `trackio=${tracker}`);
    });
    afterAll(() => {
      delete process.env.ATTACKED_WORD;
    });

    /** The same run as an older version would have recorded it. */
    function recordLiteral(): void {
      const { checksum: _, ...manifest } = readManifest(trained);
      const text = JSON.stringify(manifest).replace("{env:ATTACKED_WORD}", SECRET);
      writeManifest(trained, JSON.parse(text) as Manifest);
    }

    /** A configuration with the world of a recorded run. */
    function worldOf(run: string): string {
      const path = join(folder, `run-${++files}.json`);
      writeFileSync(path, JSON.stringify({ env: readManifest(run).config.env }));
      return path;
    }

    /** Where a run's settings go. */
    const leaving: readonly (readonly [string, (to: string) => readonly string[]])[] = [
      ["pawl push", (to) => ["push", trained, "me/agent", "--dry-run", "--out", to]],
      ["pawl export", (to) => ["export", trained, "--to", "inspect", "--out", `${to}.eval`]],
      ["pawl report", (to) => ["report", trained, "--no-predictions", "--out", `${to}.html`]],
      ["a tracker", (to) => ["track", trained, "--to", `trackio=${to}`]],
    ];

    it("a run, its evaluation, its tracker and its terminal never hold what a variable held", async () => {
      const evaluated = out();
      await pawl("eval", "--checkpoint", trained, "--split", "valid", "--out", evaluated);
      await pawl("show", trained);
      await pawl("train", "--resume", trained, "--print-config");
      // The expert asks the server, which tells its key.
      const asked = out();
      await pawl("rollout", "--config", worldOf(trained), "--groups", "1", "--out", asked);
      expect(contentOf(asked)).toContain("me [secret]");
      const all = [trained, evaluated, tracker, asked].map(contentOf).join();
      expect(all).toContain("{env:ATTACKED_WORD}");
      expect(leaks(all + said.join())).toEqual([]);
    });

    it.each(some(leaving))("%s of that run", async (_, args) => {
      const to = out();
      const { stdout, stderr } = await pawl(...args(to));
      const written = [to, `${to}.eval`, `${to}.html`].find(existsSync)!;
      expect(leaks(contentOf(written) + stdout + stderr)).toEqual([]);
      expect(stderr).not.toContain("left out");
    });

    it.each(some(leaving))("%s of an older run, which says what it left out", async (_, args) => {
      recordLiteral();
      const to = out();
      const { stdout, stderr } = await pawl(...args(to));
      const written = [to, `${to}.eval`, `${to}.html`].find(existsSync)!;
      expect(leaks(contentOf(written) + stdout + stderr)).toEqual([]);
      expect(stderr).toContain(
        `${trained} was recorded with a key in env.servers.local.env.SECRET_KEY`,
      );
    });

    it("an older run is evaluated, resumed and replayed, and its key stays in its manifest", async () => {
      recordLiteral();
      delete process.env.ATTACKED_WORD;
      const evaluated = out();
      const line = ["eval", "--checkpoint", trained, "--split", "valid", "--out", evaluated];
      // Older versions remembered no program.
      line.push("--trust", trained);
      const { stdout, stderr } = await pawl(...line);
      expect(stderr).toContain(
        "env.servers.local.env.SECRET_KEY: holds a key, which is not recorded",
      );
      expect(leaks(contentOf(evaluated) + stdout + stderr)).toEqual([]);
      const shown = [
        await pawl("replay", trained),
        await pawl("train", "--resume", trained, "--updates", "2"),
        await pawl("train", "--resume", trained, "--print-config"),
        await pawl("show", trained),
      ];
      expect(leaks(JSON.stringify(shown))).toEqual([]);
      expect(contentOf(join(trained, "manifest.json"))).toContain(SECRET);
      // What was left out is not used by mistake.
      const used = await runCli(["rollout", "--config", worldOf(evaluated), "--out", out()]);
      expect([used.code, used.stderr]).toEqual([1, expect.stringContaining("a key stood here")]);
      // Settings of a new run are recorded anew.
      const fresh = out();
      const next = await runCli([
        "train",
        "--model.start",
        trained,
        "--updates",
        "0",
        "--out",
        fresh,
      ]);
      expect([next.code, next.stderr]).toEqual([2, expect.stringContaining("{env:SECRET_KEY}")]);
      expect(existsSync(fresh)).toBe(false);
    });
  });
});
