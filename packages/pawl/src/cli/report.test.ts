import { chmodSync, existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRun } from "@pawl/core/runs/run-folder.js";
import { trainRun } from "@pawl/training/run.js";
import { tinyConfig } from "@pawl/training/testing.js";
import { EVIL, episode, risingMetrics } from "@pawl/ui/report/testing.js";
import type { ReportView } from "@pawl/ui/report/views.js";
import { chromium } from "playwright-core";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { openFile } from "./report.js";
import { runCli } from "./testing.js";

const folder = mkdtempSync(join(tmpdir(), "pawl-report-"));
const fail = (message: string): never => {
  throw new Error(message);
};

/** A run folder without the training. */
function record(name: string, seed: number, loss: string, slope: number): string {
  const run = createRun(
    {
      folder: join(folder, name),
      kind: "train",
      seed,
      config: tinyConfig({ seed, paw: { loss } }),
    },
    fail,
  );
  for (const line of risingMetrics(6, slope)) run.recordMetrics(line);
  run.recordEpisodes([
    episode(0, 0, { goal: EVIL, step: { observation: EVIL } }),
    episode(9, 0, { success: true, return: 10 }),
  ]);
  run.finish("done");
  return run.folder;
}

let runs: readonly string[];
beforeAll(() => {
  runs = [
    record("cmae-1", 1, "cmae", 0.1),
    record("cmae-2", 2, "cmae", 0.12),
    record("off-1", 1, "off", 0.05),
  ];
});

/** The data inside a report. */
function viewIn(file: string): ReportView {
  const [, data] = /id="data">(.*?)<\/script>/s.exec(readFileSync(file, "utf8"))!;
  return JSON.parse(data!) as ReportView;
}

describe("pawl report", () => {
  it("writes one file with the data of all runs", async () => {
    const out = join(folder, "report.html");
    const { code, stdout } = await runCli(["report", ...runs, "--out", out]);
    expect(stdout).toBe(`wrote ${out}\n`);
    expect(code).toBe(0);
    const view = viewIn(out);
    expect(view.lead).toContain("3 runs in 2 groups");
    expect(view.groups.map(({ label, runs: of }) => [label, of.map(({ seed }) => seed)])).toEqual([
      ["paw.loss cmae", [1, 2]],
      ["paw.loss off", [1]],
    ]);
    expect(view.groups[0]!.episodes.map(({ goal }) => goal)).toContain(EVIL);
    expect(view.groups[0]).not.toHaveProperty("predictions");
    expect(view.groups[0]!.unpredicted).toMatch(/^Its checkpoint cannot be asked: /);
    expect(view.groups[0]!.runs[0]).toMatchObject({ ended: "done", updates: 6 });
  });

  it.each([
    ["wm-train", { data: ["data/house"] }, { update: 0, "wm.loss": 2, "wm.exactMatch": 0.5 }],
    ["rwml", { env: { name: "household" } }, { update: 0, "heldOut.reward": 0.25 }],
  ])("has the metrics of %s", async (kind, config, line) => {
    const run = createRun({ folder: join(folder, kind), kind, seed: 0, config }, fail);
    run.recordMetrics(line);
    run.recordMetrics({ ...line, update: 1 });
    run.finish("done");
    const out = join(folder, `${kind}.html`);
    expect((await runCli(["report", run.folder, "--predictions", "--out", out])).code).toBe(0);
    const view = viewIn(out);
    const { update: _, ...metrics } = line;
    expect(Object.keys(view.groups[0]!.tables[0]!.columns)).toEqual(Object.keys(metrics));
    expect(view.title).toContain(kind === "rwml" ? "household" : "data/house");
    expect(view.plays).toBe(false);
  });

  it("asks a trained run for predictions", async () => {
    const run = join(folder, "trained");
    await trainRun(tinyConfig({ updates: 1, evaluation: { every: 0 } }), { folder: run });
    const out = join(folder, "predictions.html");
    const { code } = await runCli(["report", run, "--out", out]);
    expect(code).toBe(0);
    const { predictions, settings, recipe } = viewIn(out).groups[0]!;
    const { steps } = predictions!;
    // Of the two recipes of this world, the nearer one.
    expect(recipe).toBe("recipes/quick.ts");
    expect(settings).toContainEqual({ path: "updates", value: "1", recipe: "36" });
    for (const { rows } of steps)
      expect(rows.map(({ weights }) => weights)).toEqual(["before RL", "latest"]);
    expect(steps.flatMap(({ rows }) => rows[0]!.tokens).length).toBeGreaterThan(5);
  });

  it("rejects what it cannot report", async () => {
    expect((await runCli(["report"])).stderr).toContain("pawl report needs a run folder");
    expect((await runCli(["report", "nowhere"])).stderr).toContain("is not a run folder");
    const rollout = join(folder, "rollout");
    await runCli(["rollout", "--groups", "1", "--group-size", "1", "--out", rollout]);
    const refused = await runCli(["report", rollout]);
    expect(refused.stderr).toContain("expected a run of pawl train, pawl wm train or pawl rwml");
    expect(refused.code).toBe(1);
  });
});

const browser = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(
  existsSync,
);

describe.skipIf(browser === undefined)("the report in Chromium (skipped if there is none)", () => {
  it("shows charts, tables and the read-out, and allows no script of others", async () => {
    const out = join(folder, "browser.html");
    await runCli(["report", ...runs, "--out", out]);
    const started = await chromium.launch({ executablePath: browser!, args: ["--no-sandbox"] });
    try {
      const page = await started.newPage();
      const errors: string[] = [];
      page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
      page.on("pageerror", (error) => errors.push(error.message));
      await page.goto(`file://${out}`);
      await page.getByRole("heading", { level: 1 }).waitFor();
      expect(await page.title()).toBe("Training report: household");
      const charts = await page.locator("figure.chart figcaption").allTextContents();
      expect(charts.map((caption) => caption.split(" ")[0])).toEqual([
        "Success",
        "Success",
        "Balance",
        "Playing",
        "Learning",
      ]);
      expect(await page.locator("#results").textContent()).toContain("66.0 ± 8.5 %");
      await page.locator(".plot").first().press("End");
      const readout = await page.locator(".readout").first().textContent();
      expect(readout).toMatch(/^update 6.*66 % ± 8\.5 % \(n 2\).*30 %/);
      expect(await page.locator("#episodes").textContent()).toContain("</script><script>throw");
      expect(await page.locator("#predictions").textContent()).toContain("cannot be asked");
      const [wide, window] = await page.evaluate<[number, number]>(
        "[document.documentElement.scrollWidth, innerWidth]",
      );
      expect(wide).toBeLessThanOrEqual(window);
      expect(errors).toEqual([]);
      // What others put into the file does not run.
      writeFileSync(out, `${readFileSync(out, "utf8")}<script>document.title = "taken"</script>`);
      await page.goto(`file://${out}`);
      await page.getByRole("heading", { level: 1 }).waitFor();
      expect(await page.title()).toBe("Training report: household");
      expect(errors.join()).toMatch(/Content Security Policy/);
    } finally {
      await started.close();
    }
  });
});

it.skipIf(process.platform !== "linux")(
  "gives the file to the desktop's opener, and says if there is none",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "pawl-open-"));
    const opener = join(folder, "xdg-open");
    const opened = join(folder, "opened");
    writeFileSync(opener, `#!/bin/sh\necho "$1" > ${opened}\n`);
    chmodSync(opener, 0o755);
    expect(await openFile("report.html", { PATH: `${folder}:/usr/bin:/bin` })).toBe(true);
    await vi.waitUntil(() => existsSync(opened) && readFileSync(opened, "utf8") !== "", {
      timeout: 60_000,
    });
    expect(readFileSync(opened, "utf8")).toBe(`${join(process.cwd(), "report.html")}\n`);
    expect(await openFile("report.html", { PATH: join(folder, "empty") })).toBe(false);
  },
);
