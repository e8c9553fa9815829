/** Trackers that are down, refuse, or come back: the run goes on, and what they missed arrives once. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readBody, sendJson } from "@pawl/core/http/http-server.js";
import type { Episode } from "@pawl/core/rollout/episode.js";
import { recordAlarm } from "@pawl/core/runs/alarms-file.js";
import { createRun, type Run } from "@pawl/core/runs/run-folder.js";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { followRun, openCursors, sendRest } from "./follow.js";
import { parseTarget, trackOptions } from "./options.js";
import { openSource } from "./source.js";

const parent = mkdtempSync(join(tmpdir(), "pawl-trackers-"));
const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});
afterAll(() => rmSync(parent, { recursive: true, force: true }));

interface Entry {
  readonly step: number;
  readonly log_id?: string;
  readonly alert_id?: string;
  readonly timestamp: string;
  readonly metrics: Readonly<Record<string, unknown>>;
  readonly config: object;
}

/** A stand-in for Trackio's server: keeps what it has not seen, and can be told to fail. */
async function trackio(port = 0, token?: string) {
  const logs = new Map<string, Entry>();
  const alerts = new Map<string, Entry>();
  const state = { failing: false, requests: 0 };
  const server = createServer(async (asked, reply) => {
    state.requests += 1;
    const { kwargs } = JSON.parse(await readBody(asked, 1e7));
    if (state.failing) return sendJson(reply, 503, { error: "busy" });
    if (asked.headers["x-trackio-write-token"] !== token)
      return sendJson(reply, 400, { error: "A write_token is required." });
    for (const one of kwargs.logs ?? []) if (!logs.has(one.log_id)) logs.set(one.log_id, one);
    for (const one of kwargs.alerts ?? []) alerts.set(one.alert_id, one);
    return sendJson(reply, 200, { data: null });
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  servers.push(server);
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, logs, alerts, state, close: () => server.close() };
}

const episode = (group: number, attempt: number): Episode => ({
  task: { id: `train/${group}`, split: "train", type: "pick" },
  ...{ group, attempt, seed: 0, policy: "p", goal: `goal ${group}`, firstObservation: "a room" },
  steps: [
    {
      ...{ prompt: [], response: "look", action: "look", wellFormed: true, valid: true },
      ...{ observation: "a cup", reward: 1 },
    },
  ],
  ...{ return: 1, success: true, stop: "done" },
});

/** A run of two groups per update, with this many updates recorded. */
function record(name: string, updates: number): { folder: string; run: Run } {
  const folder = join(parent, name);
  const run = createRun(
    { folder, kind: "train", seed: 1, config: { groups: 2, a: { b: [1] } } },
    () => expect.unreachable(),
  );
  for (let update = 0; update < updates; update++) recordUpdate(run, update);
  return { folder, run };
}

function recordUpdate(run: Run, update: number) {
  const episodes = [0, 1].flatMap((k) => [episode(2 * update + k, 0), episode(2 * update + k, 1)]);
  const line = { update, "train.return": update / 10, "seconds.learn": 2 };
  run.recordEpisodes(episodes);
  run.recordMetrics(line);
  return { episodes, line };
}

const TRACES = { traces: 1, groupsPerUpdate: 2 };
const QUICK = { retryMs: 5, mostRetryMs: 10, graceMs: 20_000 };
/** Waits for something that comes by itself. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 5));
}

describe("a run that is followed", () => {
  it("arrives once and in order, whether the tracker is down at first or in between", async () => {
    const server = await trackio();
    const { folder, run } = record("down", 2);
    const problems: string[] = [];
    const source = openSource(folder, "p", TRACES);
    server.state.failing = true;
    const target = parseTarget(`trackio=${server.url}`);
    const options = { folder, environment: {}, times: QUICK };
    const follower = followRun(source, [target], {
      ...options,
      onProblem: (message) => problems.push(message),
    });
    const add = (update: number) => {
      const { episodes, line } = recordUpdate(run, update);
      source.addEpisodes(episodes);
      source.addLine(line);
      follower.more();
    };
    add(2);
    await until(() => server.state.requests > 2);
    expect(problems).toEqual([
      expect.stringMatching(
        /^trackio=.*status 503.*The run goes on; what the tracker misses is sent/,
      ),
    ]);
    server.state.failing = false;
    await until(() => server.logs.size === 3);
    server.state.failing = true;
    add(3);
    const alarm = { update: 3, alarm: "kl", text: "policy.kl jumped" };
    recordAlarm(folder, alarm);
    source.addAlarm(alarm);
    follower.more();
    const before = server.state.requests;
    await until(() => server.state.requests > before + 1);
    server.state.failing = false;
    run.finish("done");
    await follower.end("done");
    const sent = [...server.logs.values()];
    expect(sent.map(({ step }) => step)).toEqual([1, 2, 3, 4]);
    // One outage, one message, each time it begins.
    expect(problems).toHaveLength(2);
    expect([...server.alerts.values()]).toMatchObject([
      { title: "alarm kl", text: "policy.kl jumped", level: "warn", step: 4 },
    ]);
    expect(sent[3]).toMatchObject({
      ...{ project: "p", run: "down", config: { groups: 2, "a.b": "[1]" } },
      metrics: { "train/return": 0.3, episodes: [{ metadata: { task: "train/6", attempt: 0 } }] },
    });
    // Traces read from the record, of lines from before, are those that memory would have given.
    expect(sent[0]!.metrics.episodes).toMatchObject([
      {
        _type: "trackio.trace",
        messages: [
          { role: "user", content: "goal 0\n\na room" },
          { role: "assistant", content: "look" },
          { role: "user", content: "a cup" },
        ],
      },
    ]);
    // The time of a line does not depend on when it is sent.
    const times = sent.map(({ timestamp }) => Date.parse(timestamp));
    expect(times.map((time) => time - source.run.startedAt)).toEqual([2000, 4000, 6000, 8000]);
  });

  it("ends without a tracker that never answers, and says what it missed", async () => {
    const server = await trackio();
    const { url } = server;
    server.close();
    const { folder, run } = record("never", 2);
    const problems: string[] = [];
    const follower = followRun(openSource(folder, "p", TRACES), [parseTarget(`trackio=${url}`)], {
      ...{ folder, environment: {}, times: { ...QUICK, graceMs: 50 } },
      onProblem: (message) => problems.push(message),
    });
    run.finish("done");
    await follower.end("done");
    expect(problems.at(-1)).toBe(
      `trackio=${url} has not received the last 2 lines of metrics: pawl track ${folder} --to trackio=${url} sends them`,
    );
  });

  it("leaves a tracker alone that refuses, and never shows the token", async () => {
    const token = "very-secret-token";
    const server = await trackio(0, token);
    const { folder } = record("refused", 1);
    const problems: string[] = [];
    for (const sent of [undefined, "another-token", token]) {
      const follower = followRun(
        openSource(folder, "p", TRACES),
        [parseTarget(`trackio=${server.url}`)],
        {
          ...{
            folder,
            environment: { TRACKIO_WRITE_TOKEN: sent, HF_TOKEN: "never" },
            times: QUICK,
          },
          onProblem: (message) => problems.push(message),
        },
      );
      await follower.end("done");
    }
    expect(problems[0]).toContain("A write_token is required. Put its write token into TRACKIO_");
    expect(problems).toHaveLength(4);
    expect(server.state.requests).toBe(3);
    expect(server.logs.size).toBe(1);
    expect(`${problems} ${readFileSync(join(folder, "trackers.json"), "utf8")}`).not.toContain(
      "secret",
    );
  });
});

describe("a recorded run", () => {
  it("is sent from where the tracker has got to; what a resume cut off is sent again", async () => {
    const server = await trackio();
    const { folder } = record("cursor", 60);
    const target = parseTarget(`trackio=${server.url}`);
    const source = openSource(folder, "p", TRACES);
    const cursors = openCursors(folder, source.run.id);
    const { signal } = new AbortController();
    const send = (from = source) => sendRest(from, target.open({}), target.name, cursors, signal);
    expect(await send()).toEqual({ lines: 60, alarms: 0 });
    expect(await send()).toEqual({ lines: 0, alarms: 0 });
    expect(server.logs.size).toBe(60);
    expect([...server.logs.values()].every(({ metrics }) => "episodes" in metrics)).toBe(true);
    // Another project of the same tracker has received nothing yet.
    expect((await send(openSource(folder, "q", TRACES))).lines).toBe(60);
    cursors.set(`${target.name} p`, { lines: 70, alarms: 3 });
    expect(await send()).toEqual({ lines: 0, alarms: 0 });
    expect(cursors.get(`${target.name} p`)).toEqual({ lines: 60, alarms: 0 });
    // A copy of the run is another run.
    expect(openCursors(folder, "other").get(`${target.name} p`).lines).toBe(0);
  });

  it("goes to Trackio's folder as files of its inbox", async () => {
    const { folder } = record("folder", 2);
    recordAlarm(folder, { update: 1, alarm: "nan", text: "not finite" });
    const source = openSource(folder, "p", TRACES);
    const place = join(parent, "trackio");
    const target = parseTarget(`trackio=${place}`);
    const cursors = openCursors(folder, source.run.id);
    await sendRest(source, target.open({}), target.name, cursors, new AbortController().signal);
    const inbox = join(place, "inbox", `pawl-${source.run.id}`);
    const [file, ...others] = readdirSync(inbox);
    expect(others).toEqual([]);
    const lines = readFileSync(join(inbox, file!), "utf8").trim().split("\n");
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { v: 1, kind: "metric", project: "p", run: "folder", step: 1 },
      { v: 1, kind: "metric", step: 2 },
      { v: 1, kind: "alert", title: "alarm nan", level: "error", step: 2 },
    ]);
  });
});

it("trackers that make no sense are refused before the run, and secrets in addresses too", () => {
  const to = (text: string) => trackOptions.safeParse({ to: text }).error?.message;
  expect(to("wandb=x")).toContain("expected trackio=URL or FOLDER, mlflow=URL, got");
  expect(to("trackio=")).toContain("expected an address or a folder");
  expect(to("mlflow=folder")).toContain("expected an address such as");
  expect(to("trackio=ftp://a")).toContain("expected http:// or https://");
  for (const bad of ["http://a?write_token=x", "http://me:x@a", "http://a#x"])
    expect(to(`trackio=${bad}`)).toContain("put a token into TRACKIO_WRITE_TOKEN");
  expect(to("trackio=http://127.0.0.1:7860")).toBeUndefined();
});
