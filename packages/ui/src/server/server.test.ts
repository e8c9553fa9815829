import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { metricsPath } from "@pawl/core/runs/small-file.js";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { EpisodePage, EpisodeView, MetricsTable, RunDetail, RunList } from "./api.js";
import { createUiServer, type UiOptions } from "./server.js";
import { HOSTILE, playedEpisode, startRun } from "./testing.js";

const KEY = "a-key-for-tests";
let root: string;
let server: Server;
let faults: unknown[];

async function start(more: Partial<UiOptions> = {}): Promise<void> {
  server = createUiServer({
    folder: root,
    key: KEY,
    onFault: (error) => faults.push(error),
    ...more,
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
}
beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "pawl-ui-"));
  faults = [];
  await start();
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  expect(faults).toEqual([]);
});

/** A request with its path as it is written: `fetch` would tidy it. */
function get(
  path: string,
  method = "GET",
): Promise<{ status: number; headers: Record<string, unknown>; body: string }> {
  const { port } = server.address() as AddressInfo;
  return new Promise((resolve, reject) => {
    request({ port, host: "127.0.0.1", path, method }, (answer) => {
      let body = "";
      answer.setEncoding("utf8");
      answer.on("data", (part: string) => {
        body += part;
      });
      answer.on("end", () =>
        resolve({ status: answer.statusCode!, headers: answer.headers, body }),
      );
    })
      .on("error", reject)
      .end();
  });
}
async function api<T>(path: string): Promise<T> {
  const { status, body } = await get(`/${KEY}/api/${path}`);
  expect(`${status} ${status === 200 ? "" : body}`).toBe("200 ");
  return JSON.parse(body) as T;
}
async function refused(path: string): Promise<string> {
  const { status, body } = await get(`/${KEY}/api/${path}`);
  return `${status} ${(JSON.parse(body) as { error: string }).error}`;
}

describe("who may read", () => {
  it("answers only under the key", async () => {
    startRun(join(root, "secret")).finish("done");
    for (const path of [
      "/",
      "/api/runs",
      "/wrong-key/api/runs",
      `/${KEY}`,
      `/${KEY}x/api/runs`,
      "/page.js",
    ]) {
      const { status, body } = await get(path);
      expect([path, status]).toEqual([path, 403]);
      expect(body).not.toContain("secret");
    }
    expect((await get(`/${KEY}/`)).status).toBe(200);
  });

  it("sends a strict policy with everything", async () => {
    for (const path of ["", "page.js", "page.css", "api/runs", "api/nothing"]) {
      const { headers } = await get(`/${KEY}/${path}`);
      expect(headers["content-security-policy"]).toMatch(/^default-src 'none'; script-src 'self';/);
      expect(headers["content-security-policy"]).not.toMatch(/unsafe|\*/);
      expect(headers["referrer-policy"]).toBe("no-referrer");
      expect(headers["x-content-type-options"]).toBe("nosniff");
    }
  });

  it("only reads, unless it may play", async () => {
    expect((await get(`/${KEY}/api/runs`, "POST")).status).toBe(405);
    expect((await get(`/${KEY}/api/runs`, "DELETE")).status).toBe(405);
    const { status, body } = await get(`/${KEY}/api/play/worlds`, "POST");
    expect(status).toBe(403);
    expect(body).toContain("pawl ui --play");
  });
});

describe("paths", () => {
  const outside = mkdtempSync(join(tmpdir(), "pawl-outside-"));
  startRun(join(outside, "private")).finish("done");

  it.each([
    "../private",
    "..",
    "a/../../private",
    "/etc",
    "a//b",
    "./a",
    ".",
    "a\\..\\b",
    "a\0b",
    `x${"/x".repeat(1000)}`,
    join(outside, "private"),
  ])("%j leads nowhere", { timeout: 60_000 }, async (id) => {
    startRun(join(root, "a")).finish("done");
    for (const route of ["run", "metrics", "episodes"])
      expect(await refused(`${route}?run=${encodeURIComponent(id)}`)).toMatch(/^404 there is no/);
  });

  it("does not follow links out of the folder, neither of runs nor of their files", async () => {
    symlinkSync(join(outside, "private"), join(root, "link"));
    const own = startRun(join(root, "own"));
    own.finish("done");
    writeFileSync(join(outside, "passwords"), '{"update":0,"secret":1}\n');
    for (const name of ["metrics.jsonl", "episodes.jsonl.gz"]) {
      rmSync(join(root, "own", name), { force: true });
      symlinkSync(join(outside, "passwords"), join(root, "own", name));
    }
    expect((await api<RunList>("runs")).runs).toEqual([]);
    expect(await refused("run?run=link")).toMatch(/^404/);
    expect(await refused("metrics?run=own")).toMatch(/^404/);
    expect(await refused("episodes?run=own")).toMatch(/^404/);
    mkdirSync(join(root, "odd"));
    symlinkSync(join(outside, "private", "manifest.json"), join(root, "odd", "manifest.json"));
    expect(await refused("run?run=odd")).toMatch(/^404/);
  });
});

describe("runs", () => {
  it("are listed from all folders below, with state, progress and what differs", async () => {
    const one = startRun(join(root, "a", "one"), { seed: 1 });
    one.recordMetrics({
      update: 0,
      "train.success": 0.5,
      "seconds.learn": 3,
      "seconds.rollout": 1,
    });
    startRun(join(root, "a", "b", "two"), { seed: 1, config: { paw: { loss: "off" } } }).finish(
      "done",
    );
    mkdirSync(join(root, "broken"));
    writeFileSync(join(root, "broken", "manifest.json"), "{");
    const { runs, problems } = await api<RunList>("runs");
    expect(problems.join()).toMatch(/broken.*is not JSON/);
    const byId = Object.fromEntries(runs.map((run) => [run.id, run]));
    expect(byId["a/one"]).toMatchObject({
      state: "running",
      update: 1,
      updates: 10,
      success: 0.5,
      successOf: "train.success",
      secondsLeft: 36,
      differs: { "paw.loss": "cmae" },
    });
    expect(byId["a/b/two"]).toMatchObject({
      state: "done",
      update: null,
      differs: { "paw.loss": "off" },
    });
    one.finish("interrupted");
  });

  it("name first the setting that fewest others share", async () => {
    for (const [name, config] of [
      ["a", { groups: 4, split: "train" }],
      ["b", { groups: 4, split: "other" }],
      ["c", { groups: 8, split: "other" }],
    ] as const)
      startRun(join(root, name), { config }).finish("done");
    const { runs } = await api<RunList>("runs");
    const first = runs.map(({ id, differs }) => [id, Object.entries(differs)[0]]);
    expect(Object.fromEntries(first)).toMatchObject({ a: ["split", "train"], c: ["groups", "8"] });
  });

  it("show what differs from their recipe, and the commands", async () => {
    startRun(join(root, "it's"), { config: { groups: 4 } }).finish("interrupted");
    server.close();
    await start({
      recipeOf: () => ({
        name: "recipes/x.ts",
        config: { updates: 10, groups: 8, split: "train" },
      }),
    });
    const detail = await api<RunDetail>(`run?run=${encodeURIComponent("it's")}`);
    expect(detail.recipe).toBe("recipes/x.ts");
    expect(detail.settings.filter(({ recipe }) => recipe !== undefined)).toEqual([
      { path: "env.name", value: "household", recipe: "–" },
      { path: "paw.loss", value: "cmae", recipe: "–" },
      { path: "groups", value: "4", recipe: "8" },
      { path: "split", value: "–", recipe: "train" },
    ]);
    expect(detail.commands[0]!.command).toBe(
      `pawl train --resume '${detail.folder.replace("it's", "it'\\''s")}'`,
    );
  });

  it("have metrics as columns; damaged and unfinished lines are left out", async () => {
    const run = startRun(join(root, "run"));
    run.recordMetrics({ update: -1, "eval.a.success": 0.25 });
    run.recordMetrics({ update: 0, loss: 2 });
    run.finish("done");
    writeFileSync(metricsPath(join(root, "run")), 'nonsense\n{"update":1,"loss":3}\n{"upd', {
      flag: "a",
    });
    const table = await api<MetricsTable>("metrics?run=run");
    expect(table).toMatchObject({
      update: [-1, 0, 1],
      columns: { "eval.a.success": [0.25, null, null], loss: [null, 2, 3] },
    });
    expect(table.problems).toEqual([
      expect.stringMatching(/^damaged lines of metrics\.jsonl are left out: 3; pawl check /),
    ]);
    expect(Object.keys((await api<MetricsTable>("metrics?run=run&names=loss")).columns)).toEqual([
      "loss",
    ]);
  });
});

describe("metrics that are not what was written", () => {
  /** Six updates, and an evaluation before the last; then a text in the place of another. */
  function damage(from: string, to: string): void {
    const run = startRun(join(root, "run"));
    for (let update = 0; update < 6; update++)
      run.recordMetrics({ update, loss: 2, ...(update === 4 && { "eval.a.success": 0.25 }) });
    run.finish("done");
    const path = metricsPath(join(root, "run"));
    const text = readFileSync(path, "utf8");
    expect(text).toContain(from);
    writeFileSync(path, text.replace(from, to));
  }

  it("are left out and named, although they can be read", async () => {
    damage('"update":2,"loss":2', '"update":2,"loss":9');
    const table = await api<MetricsTable>("metrics?run=run");
    expect(table).toMatchObject({ update: [0, 1, 3, 4, 5], columns: { loss: [2, 2, 2, 2, 2] } });
    expect(table.problems).toEqual([
      `damaged lines of metrics.jsonl are left out: 3; pawl check ${join(root, "run")} says more`,
    ]);
  });

  it("are no success in the list of runs, which says so", async () => {
    damage('"eval.a.success":0.25', '"eval.a.success":0.95');
    const { runs, problems } = await api<RunList>("runs");
    expect(runs[0]).toMatchObject({ update: 6, success: null });
    expect(problems).toEqual(["run: metrics.jsonl has damaged lines, which are left out"]);
  });

  it("are said to be missing from the end, or altogether", async () => {
    damage('{"update":4,"loss":2,"eval.a.success":0.25}\n{"update":5,"loss":2}\n', "");
    const cut = await api<MetricsTable>("metrics?run=run");
    expect(cut.problems).toEqual([expect.stringContaining("lacks its last lines: 2 are missing")]);
    rmSync(metricsPath(join(root, "run")));
    const none = await api<MetricsTable>("metrics?run=run");
    expect(none.problems).toEqual([expect.stringContaining("metrics.jsonl is missing: it had 6")]);
  });
});

describe("an episode", () => {
  const long = "x".repeat(1_000_000);
  beforeEach(() => {
    const run = startRun(join(root, "run"));
    run.recordEpisodes([
      playedEpisode(0, 0),
      playedEpisode(0, 1, { goal: HOSTILE, step: { observation: long, response: "wait" } }),
    ]);
    run.finish("done");
  });

  it("is cut where it is long, and the rest is had piece by piece", async () => {
    const { rows } = await api<EpisodePage>("episodes?run=run&sort=best");
    const { status, body } = await get(`/${KEY}/api/episode?run=run&id=${rows[0]!.id}`);
    expect(status).toBe(200);
    expect(body.length).toBeLessThan(50_000);
    const episode = JSON.parse(body) as EpisodeView;
    expect(episode.steps[0]!.observation).toEqual({ text: "x".repeat(4000), length: 1_000_000 });
    const more = await api<{ text: string }>(
      `text?run=run&id=${rows[0]!.id}&step=1&field=observation&from=999990`,
    );
    expect(more.text).toBe("x".repeat(10));
    expect(await refused(`text?run=run&id=${rows[0]!.id}&step=9&field=observation`)).toMatch(
      /^404/,
    );
    expect(await refused(`text?run=run&id=${rows[0]!.id}&step=0&field=prompt`)).toMatch(/^404/);
  });

  it("of an agent has its task, its calls, what it returned and why it was rewarded", async () => {
    const call = { tool: "find", arguments: '{"item":"cup"}', result: long };
    const run = startRun(join(root, "agent"));
    run.recordEpisodes([
      playedEpisode(0, 0, {
        ...{ given: { item: "cup" }, result: { sold: true }, why: HOSTILE },
        step: { calls: [call], seconds: 2 },
      }),
    ]);
    run.finish("done");
    const { rows } = await api<EpisodePage>("episodes?run=agent&sort=best");
    const id = rows[0]!.id;
    const episode = await api<EpisodeView>(`episode?run=agent&id=${id}`);
    expect(episode.given!.text).toBe('{"item":"cup"}');
    expect(episode.result!.text).toBe('{"sold":true}');
    expect(episode.why!.text).toBe(HOSTILE);
    const [{ calls, seconds }] = episode.steps as [EpisodeView["steps"][number]];
    expect([calls[0]!.tool, calls[0]!.arguments.text, seconds]).toEqual([
      ...["find", '{"item":"cup"}', 2],
    ]);
    expect(calls[0]!.result!.length).toBe(1_000_000);
    expect(calls[0]!.result!.text).toMatch(/^x{500,4000}$/);
    expect(await api(`text?run=agent&id=${id}&step=-1&field=why&from=0`)).toMatchObject({
      text: HOSTILE,
    });
  });

  it("stands beside its group, with neighbours", async () => {
    const { rows } = await api<EpisodePage>("episodes?run=run&sort=oldest");
    const episode = await api<EpisodeView>(`episode?run=run&id=${rows[0]!.id}`);
    expect(episode.group.map(({ attempt }) => attempt)).toEqual([0, 1]);
    expect([episode.older, episode.newer]).toEqual([null, rows[1]!.id]);
    // What is not known is said.
    expect(episode.notes).toEqual([
      "Which steps the world model learns from is not shown: the update is not complete yet.",
    ]);
    const { attempts } = await api<{ attempts: { steps: { action: string }[] }[] }>(
      `group?run=run&id=${rows[0]!.id}`,
    );
    expect(attempts.map(({ steps }) => steps.map(({ action }) => action))).toEqual([
      ["take cup", "put cup"],
      ["take cup", "put cup"],
    ]);
    expect(await refused("episode?run=run&id=99-0")).toMatch(/^404 there is no episode/);
  });

  it("says where attempts branch off one another, or begin after a teacher's steps", async () => {
    const run = startRun(join(root, "tree"), { config: { groups: 1 } });
    run.recordEpisodes([
      playedEpisode(0, 0),
      playedEpisode(0, 1, { branch: { from: 0, step: 1 } }),
      playedEpisode(0, 2, { hint: 1 }),
    ]);
    run.finish("done");
    const { rows } = await api<EpisodePage>("episodes?run=tree&sort=oldest");
    const { group, checkpoint } = await api<EpisodeView>(`episode?run=tree&id=${rows[1]!.id}`);
    expect(group.map(({ attempt, branch, hint }) => [attempt, branch, hint])).toEqual([
      [0, null, 0],
      [1, { from: 0, step: 1 }, 0],
      [2, null, 1],
    ]);
    expect(checkpoint).toBe(false);
  });
});

describe("the live stream", () => {
  /** Events as they come, until there are as many as asked for. */
  function events(
    query: string,
    stop: (seen: readonly string[]) => boolean,
  ): Promise<readonly string[]> {
    const { port } = server.address() as AddressInfo;
    return new Promise((resolve) => {
      const seen: string[] = [];
      let text = "";
      const asked = request(
        { port, host: "127.0.0.1", path: `/${KEY}/api/live${query}` },
        (answer) => {
          answer.setEncoding("utf8");
          answer.on("error", () => undefined);
          answer.on("data", (part: string) => {
            text += part;
            for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
              seen.push(text.slice(0, end));
              text = text.slice(end + 2);
              if (!stop(seen)) continue;
              resolve(seen);
              asked.destroy();
              return;
            }
          });
        },
      );
      asked.on("error", () => undefined);
      asked.end();
    });
  }
  const has = (name: string) => (seen: readonly string[]) =>
    seen.some((one) => one.startsWith(`event: ${name}`));

  it("brings new metrics to two pages at once, then says that the run is gone", async () => {
    const run = startRun(join(root, "run"));
    run.recordMetrics({ update: 0, loss: 2 });
    const { end } = await api<MetricsTable>("metrics?run=run");
    const pages = [1, 2].map(() => events(`?run=run&from=${end}`, has("metrics")));
    run.recordMetrics({ update: 1, loss: 1 });
    for (const seen of await Promise.all(pages)) {
      const data = seen.find((one) => one.startsWith("event: metrics"))!;
      expect(JSON.parse(data.split("data: ")[1]!).lines).toEqual([{ update: 1, loss: 1 }]);
    }
    run.finish("done");
    const gone = events(`?run=run&from=${end}`, has("gone"));
    rmSync(join(root, "run"), { recursive: true });
    expect((await gone).at(-1)).toContain("there is no");
  });

  it("starts again when a resumed run has cut its metrics", async () => {
    const run = startRun(join(root, "run"));
    run.recordMetrics({ update: 0, loss: 2 });
    run.finish("done");
    const { end } = await api<MetricsTable>("metrics?run=run");
    expect((await events(`?run=run&from=${end + 100}`, has("again"))).length).toBeGreaterThan(0);
  });

  it("lets a page start again, and be told, when a new line is damaged", async () => {
    const run = startRun(join(root, "run"));
    run.recordMetrics({ update: 0, loss: 2 });
    const { end } = await api<MetricsTable>("metrics?run=run");
    run.recordMetrics({ update: 1, loss: 1 });
    run.finish("done");
    const path = metricsPath(join(root, "run"));
    writeFileSync(path, readFileSync(path, "utf8").replace('"loss":1', '"loss":7'));
    const seen = await events(`?run=run&from=${end}`, has("run"));
    expect(seen.map((one) => one.split("\n")[0])).toEqual(["event: again", "event: run"]);
  });

  it("lists runs as they appear", async () => {
    const seen = events("", (all) => all.at(-1)!.includes('"id":"late"'));
    startRun(join(root, "late")).finish("done");
    expect((await seen)[0]).toMatch(/^event: runs\n/);
  });
});
