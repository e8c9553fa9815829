/**
 * A run in real trackers: Trackio's server and folder, MLflow's server, wandb in offline mode.
 *
 * Runs if PAWL_TRACKERS is a Python that has them; each is skipped if it is not installed:
 *
 *   python -m venv V && V/bin/pip install trackio==0.43.0 wandb==0.31.0 mlflow==3.18.0
 *   PAWL_TRACKERS=V/bin/python npx vitest run tests/trackers.slow.test.ts
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCli } from "../src/cli/testing.js";
import { recordAlarm } from "../src/runs/alarms-file.js";
import { createRun } from "../src/runs/run-folder.js";

const python = process.env.PAWL_TRACKERS;
const has = (name: string): boolean => {
  const found = python !== undefined && spawnSync(python, ["-c", `import ${name}`]).status === 0;
  if (!found) console.warn(`${name} is not tested: PAWL_TRACKERS names no Python that has it`);
  return found;
};
const MINUTES = 60_000;
const folder = mkdtempSync(join(tmpdir(), "pawl-real-trackers-"));
const run = join(folder, "my-run");
const started: ChildProcess[] = [];

beforeAll(() => {
  const config = { groups: 1, optimizer: { learningRate: 1e-3 }, evaluation: { splits: ["a"] } };
  const made = createRun({ folder: run, kind: "train", seed: 0, config }, () => undefined);
  for (let update = -1; update < 40; update++) {
    const line = { update, "train.return": update / 10, "policy.kl": 0.01, "seconds.learn": 1 };
    made.recordMetrics(line);
    if (update < 0) continue;
    made.recordEpisodes([
      {
        task: { id: `train/${update}`, split: "train", type: "pick" },
        ...{ group: update, attempt: 0, seed: 0, policy: "p", goal: "find a cup" },
        firstObservation: "a room",
        steps: [
          {
            ...{ prompt: [], response: "look", action: "look", wellFormed: true, valid: true },
            ...{ observation: "a cup", reward: 1 },
          },
        ],
        ...{ return: 1, success: true, stop: "done" },
      },
    ]);
  }
  recordAlarm(run, { update: 7, alarm: "kl", text: "policy.kl jumped" });
  made.finish("done");
});
afterAll(() => {
  for (const { pid } of started) if (pid !== undefined) process.kill(-pid, "SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Starts a server and waits until it answers. */
async function serve(args: readonly string[], port: number, path: string, env: object = {}) {
  const child = spawn(join(dirname(python!), args[0]!), args.slice(1), {
    cwd: folder,
    env: { ...process.env, BROWSER: "true", ...env },
    stdio: "ignore",
    // Servers have processes of their own: all are ended as a group.
    detached: true,
  });
  started.push(child);
  const url = `http://127.0.0.1:${port}`;
  for (;;) {
    const answer = await fetch(`${url}${path}`).catch(() => undefined);
    if (answer?.ok === true) return url;
    if (child.exitCode !== null) throw new Error(`${args[0]} ended with ${child.exitCode}`);
    await sleep(200);
  }
}

const ask = async (url: string, body?: object) => {
  const init = body && { method: "POST", body: JSON.stringify(body) };
  const headers = { "content-type": "application/json" };
  return (await (await fetch(url, { ...init, headers })).json()) as never;
};

const track = (to: string, env: Record<string, string> = {}) =>
  runCli(["track", run, "--to", to, "--project", "real", "--again"], { env });

describe.skipIf(!has("trackio"))("Trackio", () => {
  const read = async (url: string, call: string, body: object) =>
    ((await ask(`${url}/api/${call}`, { project: "real", ...body })) as { data: never[] }).data;
  const expectRun = async (url: string) => {
    const metric = { run: "my-run", metric_name: "train/return" };
    const values = await read(url, "get_metric_values", metric);
    expect(values).toHaveLength(41);
    expect(values.at(-1)).toMatchObject({ step: 40, value: 3.9 });
    expect(await read(url, "get_alerts", {})).toMatchObject([
      { title: "alarm kl", text: "policy.kl jumped", level: "warn", step: 8 },
    ]);
    const traces = await read(url, "get_traces", { run: "my-run" });
    expect(traces.length).toBeGreaterThan(0);
    expect(traces[0]).toMatchObject({
      messages: [{ content: "find a cup\n\na room" }, { content: "look" }, { content: "a cup" }],
    });
  };

  it(
    "has a run once, however often it is sent to its server",
    async () => {
      const port = await freePort();
      const env = {
        GRADIO_SERVER_PORT: String(port),
        TRACKIO_DIR: join(folder, "server"),
        TRACKIO_WRITE_TOKEN: "secret-1",
      };
      const url = await serve(["trackio", "show"], port, "/version", env);
      expect((await track(`trackio=${url}`)).stderr).toContain("TRACKIO_WRITE_TOKEN");
      for (let time = 0; time < 2; time++)
        expect((await track(`trackio=${url}`, { TRACKIO_WRITE_TOKEN: "secret-1" })).stdout).toBe(
          `trackio=${url}: sent 41 lines of metrics and 1 alarms\n`,
        );
      await expectRun(url);
    },
    5 * MINUTES,
  );

  it(
    "finds a run in its folder",
    async () => {
      const port = await freePort();
      const place = join(folder, "place");
      for (let time = 0; time < 2; time++) expect((await track(`trackio=${place}`)).code).toBe(0);
      const env = {
        ...{ GRADIO_SERVER_PORT: String(port), TRACKIO_DIR: place },
        TRACKIO_INBOX_POLL_INTERVAL: "1",
      };
      const url = await serve(["trackio", "show"], port, "/version", env);
      const isThere = async () =>
        (await read(url, "get_runs_for_project", {}).catch(() => [])).length > 0;
      while (!(await isThere())) await sleep(500);
      await expectRun(url);
    },
    5 * MINUTES,
  );
});

it.skipIf(!has("mlflow"))(
  "MLflow has a run once, however often it is sent",
  async () => {
    const port = await freePort();
    const store = `sqlite:///${join(folder, "mlflow.db")}`;
    const args = ["server", "--port", String(port), "--backend-store-uri", store, "--workers", "1"];
    const env = { MLFLOW_SERVER_ENABLE_JOB_EXECUTION: "false" };
    const url = await serve(["mlflow", ...args], port, "/health", env);
    for (let time = 0; time < 2; time++) expect((await track(`mlflow=${url}`)).stderr).toBe("");
    const api = `${url}/api/2.0/mlflow`;
    const { experiment } = (await ask(`${api}/experiments/get-by-name?experiment_name=real`)) as {
      experiment: { experiment_id: string };
    };
    const { runs } = (await ask(`${api}/runs/search`, {
      experiment_ids: [experiment.experiment_id],
    })) as { runs: { info: { run_id: string }; data: { params: object[]; tags: object[] } }[] };
    expect(runs).toHaveLength(1);
    expect(runs[0]).toMatchObject({ info: { run_name: "my-run", status: "FINISHED" } });
    expect(runs[0]!.data.params).toContainEqual({ key: "optimizer.learningRate", value: "0.001" });
    expect(runs[0]!.data.tags).toContainEqual({
      key: "pawl.alarm.kl",
      value: "update 8: policy.kl jumped",
    });
    const { metrics } = (await ask(
      `${api}/metrics/get-history?run_id=${runs[0]!.info.run_id}&metric_key=train/return`,
    )) as { metrics: object[] };
    expect(metrics).toHaveLength(41);
  },
  5 * MINUTES,
);

it.skipIf(!has("wandb"))(
  "wandb takes a run offline, and only what is new the second time",
  () => {
    const copy = join(folder, "offline");
    cpSync(run, copy, { recursive: true });
    // As an older version would have recorded a key.
    const manifest = JSON.parse(readFileSync(join(copy, "manifest.json"), "utf8"));
    manifest.config.env = {
      name: "mcp",
      servers: { web: { env: { OTHER: "hunter2-hunter2" }, headers: { key: "Bearer {env:KEY}" } } },
    };
    writeFileSync(join(copy, "manifest.json"), JSON.stringify(manifest));
    const follow = () =>
      spawnSync(python!, [join(process.cwd(), "integrations/wandb_follow.py"), copy], {
        cwd: folder,
        env: { ...process.env, WANDB_MODE: "offline", WANDB_SILENT: "true" },
        encoding: "utf8",
      });
    expect(follow().stdout, "first").toBe("sent 41 lines of metrics and 1 alarms\n");
    expect(follow().stdout, "second").toBe("sent 0 lines of metrics and 0 alarms\n");
    const [first] = readdirSync(join(folder, "wandb")).filter((name) => /^offline-run/.test(name));
    const inside = readdirSync(join(folder, "wandb", first!));
    const file = inside.find((name) => name.endsWith(".wandb"))!;
    // The file's format is wandb's own; names and values stand in it as they are.
    const text = readFileSync(join(folder, "wandb", first!, file), "latin1");
    for (const said of ["train/return", "3.9", "learningRate", "policy.kl jumped", "{env:KEY}"])
      expect(text).toContain(said);
    expect(text).not.toContain("hunter2");
    expect(follow().status).toBe(0);
  },
  5 * MINUTES,
);
