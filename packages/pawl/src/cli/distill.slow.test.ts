import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hermes } from "@pawl/agents/testing.js";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { openRun } from "@pawl/core/runs/run-folder.js";
import { buildTokenizer } from "@pawl/core/text/tokenizer-builder.js";
import { createEmbeddedEngine } from "@pawl/engine-cpu/embedded-engine.js";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { type Behaviour, fails, startChatServer } from "../../../../tests/helpers/chat-server.js";
import { runCli } from "./testing.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-distill-"));
const student = join(parent, "student");
const other = join(parent, "other");
const agent = join("examples", "agent.ts");
const secret = "sk-very-secret-0123456789";

async function saveModel(folder: string, tokenizer: typeof hermes): Promise<void> {
  const { vocabularySize } = tokenizer;
  const model = { preset: "tiny", vocabularySize, maxContext: 2048 } as const;
  const engine = await createEmbeddedEngine({ model, threads: 1 });
  await engine.save(folder, { optimizer: false });
  await engine.dispose();
  await tokenizer.save(folder);
}

beforeAll(async () => {
  process.env.PAWL_TEST_TEACHER = secret;
  await saveModel(student, hermes);
  await saveModel(other, buildTokenizer(["another model"], { chat: true }));
});
afterAll(() => {
  delete process.env.PAWL_TEST_TEACHER;
  rmSync(parent, { recursive: true });
});

const servers: { close(): Promise<void> }[] = [];
afterEach(() => Promise.all(servers.splice(0).map((server) => server.close())));

const PRICES: Readonly<Record<string, number>> = { mug: 4, lamp: 19, rug: 35, chair: 48, desk: 99 };

function answer(response: ServerResponse, message: object): void {
  response.setHeader("content-type", "application/json");
  const usage = { prompt_tokens: 100, completion_tokens: 10 };
  response.end(
    JSON.stringify({ choices: [{ message: { role: "assistant", ...message } }], usage }),
  );
}

/** A stand-in for a stronger model: looks the price up, then says it; it cannot sell rugs. */
const clerk: Behaviour = (response, { body }) => {
  const { messages } = body;
  const asked = messages.find(({ role }) => role === "user")!.content;
  const item = Object.keys(PRICES).find((name) => asked.includes(name))!;
  const last = messages.at(-1)!;
  if (item === "rug") answer(response, { content: "No rugs." });
  else if (last.role === "tool") answer(response, { content: `It costs ${last.content} euros.` });
  else {
    const call = { name: "price", arguments: JSON.stringify({ item }) };
    answer(response, {
      content: null,
      tool_calls: [{ id: "t", type: "function", function: call }],
    });
  }
};

/** Runs the example's agent with this stand-in. */
async function distil(name: string, behaviour: Behaviour, ...more: readonly string[]) {
  const server = await startChatServer(behaviour);
  servers.push(server);
  const out = join(parent, name);
  const outcome = await runCli([
    ...["distill", agent, "--teacher", server.baseUrl, "--teacher.model", "stand-in"],
    ...["--teacher.api-key-variable", "PAWL_TEST_TEACHER", "--student", student],
    ...["--engine.threads", "1", "--teacher.retries", "1", "--out", out, ...more],
  ]);
  return { ...outcome, out, server };
}

const episodesOf = (folder: string): readonly Episode[] => [
  ...openRun(folder, () => undefined).episodes(),
];

/** Few and short updates of the student. */
const train = (out: string, ...more: readonly string[]) => trainAgent(agent, out, ...more);
const trainAgent = (file: string, out: string, ...more: readonly string[]) =>
  runCli([
    ...["train", "--agent", file, "--model.start", student, "--engine.threads", "1"],
    ...["--updates", "1", "--groups", "2", "--group-size", "2", "--max-tokens", "8"],
    ...["--evaluation.every", "0", "--out", out, ...more],
  ]);

it("records a teacher in the student's tokens; the student imitates it, and goes on with RL", async () => {
  const { code, stdout, stderr, out, server } = await distil(
    "taught",
    clerk,
    ...["--prices", "2,10", "--baseline", "--max-tokens", "128"],
  );
  expect(code, stdout + stderr).toBe(0);
  expect(stdout).toMatch(/the teacher, stand-in, on 5 tasks of train:\n.*\n(.*\n)*all +5 +80\.0 %/);
  expect(stdout).toMatch(/the student, .*, greedily:\n.*95 % interval.*\n(.*\n)*all +5 +0\.0 %/);
  expect(stdout).toContain("9 answers: 900 tokens read and 90 written, which cost 0.0027 at 2 and");
  expect(stdout).toContain("4 of 5 episodes are worth 1 or more");
  expect(server.received[0]!.headers.authorization).toBe(`Bearer ${secret}`);
  expect(server.received[0]!.body).toMatchObject({
    model: "stand-in",
    max_tokens: 128,
    tools: [{ type: "function", function: { name: "price" } }],
  });
  for (const file of ["manifest.json", "distill.txt"])
    expect(readFileSync(join(out, file), "utf8")).not.toContain(secret);
  expect(JSON.stringify(episodesOf(out))).not.toContain(secret);
  const { steps } = episodesOf(out).find(({ task }) => task.id === "train/0")!;
  expect(steps.map(({ response }) => response)).toEqual([
    '<tool_call>\n{"name":"price","arguments":{"item":"mug"}}\n</tool_call>',
    "It costs 4 euros.",
  ]);
  const text = hermes.decode(steps[1]!.sequence!.ids);
  expect(text).toContain(`${steps[0]!.response}<|end|>`);
  expect(steps[1]!.sequence).not.toHaveProperty("logprobs");

  const run = join(parent, "run");
  const warm = [
    ...["--warm-start.runs", out, "--warm-start.min-return", "1", "--warm-start.sft.batch", "2"],
  ];
  const trained = await train(run, ...warm, "--warm-start.episodes", "4");
  expect(trained.code, trained.stderr).toBe(0);
  const replayed = await runCli(["replay", run]);
  expect(replayed.code, replayed.stdout + replayed.stderr).toBe(0);
  const resumed = await runCli(["train", "--resume", run, "--updates", "2"]);
  expect(resumed.code, resumed.stderr).toBe(0);
  expect(
    openRun(run, () => undefined)
      .metrics()
      .map(({ update }) => update),
  ).toEqual([-1, 0, 1]);

  const few = await train(join(parent, "few"), ...warm, "--warm-start.episodes", "5");
  expect(few.stderr).toContain(
    "hold 4 worth 1 or more: lower it, or record more with pawl distill",
  );
  const foreign = await train(
    join(parent, "foreign"),
    ...[...warm, "--warm-start.episodes", "4", "--model.start", other],
  );
  expect(foreign.stderr).toContain("was recorded in the tokens of another model");
}, 120_000);

it("leaves out what the teacher's server breaks, and what the teacher garbles", async () => {
  const faulty: Behaviour = (response, request) => {
    const asked = request.body.messages.find(({ role }) => role === "user")!.content;
    const garbled = { name: "price", arguments: "{item:" };
    const call = { id: "t", type: "function", function: garbled };
    if (asked.includes("lamp")) fails(429, "slow down", { "retry-after": "0" })(response, request);
    else if (asked.includes("desk")) answer(response, { content: null, tool_calls: [call] });
    else clerk(response, request);
  };
  const { code, stdout, out } = await distil("faulty", faulty);
  expect(code).toBe(0);
  expect(stdout).toMatch(/1 × POST .* failed 2 times, most recently with status 429: slow down/);
  expect(stdout).toContain("1 × the teacher called price with arguments that are no JSON object");
  expect(stdout).toContain("2 of 5 episodes are worth 1 or more");
  expect(stdout).not.toContain("cost");
  const broken = episodesOf(out).filter(({ stop }) => stop === "broken");
  expect(broken.map(({ task }) => task.id).sort()).toEqual(["train/1", "train/4"]);
}, 60_000);

/** How far a run's model was from its teacher in each update. */
const distancesOf = (run: string) =>
  openRun(run, () => undefined)
    .metrics()
    .flatMap((line) => line["distillation.kl"] ?? []);

it("a run teaches an agent's model on its own tokens, where distill points to, under masks too", async () => {
  const { out } = await distil("shown", clerk);
  const teacher = join(parent, "teacher");
  const warm = [
    "--warm-start.runs",
    out,
    "--warm-start.episodes",
    "4",
    "--warm-start.min-return",
    "1",
  ];
  const sft = ["--warm-start.sft.epochs", "12", "--warm-start.sft.optimizer.learning-rate", "2e-3"];
  await train(teacher, ...warm, ...sft, "--updates", "0");
  const pointed = await runCli(["distill", agent, "--teacher", teacher, "--student", student]);
  expect(pointed.code).toBe(2);
  expect(pointed.stderr).toContain("pawl train --distillation.teacher), got");

  const pupil = join(parent, "pupil");
  const faster = ["--optimizer.learning-rate", "5e-3", "--optimizer.warmup", "0", "--groups", "4"];
  const learnt = await train(pupil, "--distillation.teacher", teacher, "--updates", "4", ...faster);
  expect(learnt.code, learnt.stderr).toBe(0);
  const distances = distancesOf(pupil);
  expect(distances.at(-1)!).toBeLessThan(0.9 * distances[0]!);
  const replayed = await runCli(["replay", pupil]);
  expect(replayed.code, replayed.stdout + replayed.stderr).toBe(0);

  // A teacher that is the student itself says the same of answers that are held to a schema.
  const same = join(parent, "same");
  const orders = join("examples", "orders-agent.ts");
  const long = ["--max-tokens", "48"];
  const masked = await trainAgent(orders, same, "--distillation.teacher", student, ...long);
  expect(masked.code, masked.stderr).toBe(0);
  expect(episodesOf(same)[0]!.steps[0]!.sequence).toHaveProperty("constraint");
  expect(Math.abs(distancesOf(same)[0]!)).toBeLessThan(1e-5);
}, 240_000);

it("says that nothing is worth imitating, and what may help", async () => {
  const { code, stdout } = await distil("worthless", (response) =>
    answer(response, { content: "I cannot help with that." }),
  );
  expect(code).toBe(1);
  expect(stdout).toContain("0 of 5 episodes are worth 1 or more");
  expect(stdout).toContain("nothing of it is good enough to imitate: look at it with pawl show");
  expect(stdout).not.toContain("pawl train");
}, 60_000);

it("names a server that only fails, and refuses worlds", async () => {
  const { code, stderr } = await distil("failed", fails(401, "who?"));
  expect(code).toBe(1);
  expect(stderr).toContain("status 401: who?");
  const world = await runCli([
    ...["distill", "household", "--teacher", "http://localhost:1/v1", "--teacher.model", "x"],
    ...["--student", student],
  ]);
  expect(world.stderr).toContain("household is a world: name the agent's file");
}, 60_000);
